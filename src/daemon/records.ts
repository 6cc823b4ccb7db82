// The records of one execution of a stage process: where they are, and what they say (engine.md 10.4).

import { readFacts } from "../store/evidence.ts";
import { readRun } from "../store/runs.ts";
import { channelSocket, runDirectory } from "../system/paths.ts";
import type { Daemon } from "./context.ts";
import type { Execution } from "./stage.ts";
import {
  type Ending,
  type ExitFacts,
  executionName,
  exitFacts,
  exitRecordPath,
  readExitRecord,
  readStartRecord,
  type Spawned,
  startRecordPath,
} from "./supervise.ts";

export type ProcessFacts = Pick<ExitFacts, "exitCode" | "startedAtMs" | "finishedAtMs" | "captureComplete">;

export type Phase = { phase: "action" | "check"; seat: number | null };

export type Records = { exit: string; start: string; channel: string };

/** Where an execution's records are, and its supervisor's socket. */
export function recordsOf(daemon: Daemon, { run, index, attempt }: Execution, { phase, seat }: Phase): Records {
  const directory = runDirectory(daemon.paths, run.runId);
  const execution = { stageIndex: index, attempt, phase, seat };
  return {
    exit: exitRecordPath(directory, execution),
    start: startRecordPath(directory, execution),
    channel: channelSocket(daemon.paths, run.runId, executionName(execution)),
  };
}

/** How an execution ended by its exit record; null without one, or with one that says nothing about the work (*lost*). */
export function recordedExit(daemon: Daemon, execution: Execution, phase: Phase): ProcessFacts | null {
  const record = readExitRecord(recordsOf(daemon, execution, phase).exit);
  if (record === null || (record.signal !== null && !record.attended)) return null;
  return exitFacts(record);
}

/** Whether this execution was ever started. */
export function executionKnown(daemon: Daemon, execution: Execution, phase: Phase): boolean {
  const { exit, start } = recordsOf(daemon, execution, phase);
  return readExitRecord(exit) !== null || readStartRecord(start) !== null;
}

/** A record of a signal that nobody attended: whatever took the process says nothing about its work. */
export function isLost(ending: Ending): boolean {
  return ending.lost || (ending.facts.signal !== null && !ending.facts.attended);
}

/** A process that the store names for this execution although its start record is gone: never started a second time. */
export function knownProcess(
  daemon: Daemon,
  execution: Execution,
  plan: Phase & { source: "agent" | "stage" },
): Spawned | null {
  const { run, stage, attempt } = execution;
  const startedAtMs = daemon.clock.now();
  const stored = readFacts(daemon.store.db, run.runId).process;
  if (stored !== null) {
    const ours = stored.stage === stage.name && stored.attempt === attempt && stored.phase === plan.phase;
    if (!ours || (stored.seat ?? null) !== plan.seat) return null;
    const { pid, pid_start_time: pidStartTime, process_group_id: processGroupId } = stored;
    return { pid, pidStartTime, processGroupId, startedAtMs };
  }
  const row = plan.source === "agent" ? readRun(daemon.store.db, run.runId) : null;
  if (row?.state !== "running" || row.pid === null) return null;
  return { pid: row.pid, pidStartTime: row.pidStartTime, processGroupId: row.processGroupId ?? row.pid, startedAtMs };
}

// The records of one execution of a stage process: where they are, and what they say (engine.md 10.4).

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

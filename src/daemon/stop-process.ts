// Ending the process a run stands on: only a group whose leader is still the one that was recorded (engine.md 14.1, 16.1).

import type { StageProcess } from "../core/evidence.ts";
import { readFacts } from "../store/evidence.ts";
import { readRun } from "../store/runs.ts";
import { identify, processAlive, stopGroup } from "../system/process.ts";
import type { Daemon } from "./context.ts";
import { openMerges } from "./merge-lock.ts";

type Group = Pick<StageProcess, "pid" | "pid_start_time" | "process_group_id">;

/** The process a run stands on: its checkpoint, else what its row says of a running agent. */
export function recordedProcess(daemon: Daemon, runId: string): Group | null {
  const stored = readFacts(daemon.store.db, runId).process;
  if (stored !== null) return stored;
  const run = readRun(daemon.store.db, runId);
  if (run?.state !== "running" || run.pid === null) return null;
  return { pid: run.pid, pid_start_time: run.pidStartTime, process_group_id: run.processGroupId ?? 0 };
}

/** How long a merge that is under way may go on after a cancel. With the rest of a stop it fits the client's 30 s. */
const mergePatienceMs = 20_000;
/** How long what is left of an ended merge may take to be put right. */
const tidyMs = 4000;
const stepMs = 20;

/** Whether the run stands on a merge whose git may be at work in somebody's checkout. */
export function isMerging(daemon: Daemon, runId: string): boolean {
  const stored = readFacts(daemon.store.db, runId).process;
  if (stored?.merge === undefined || stored.process_group_id !== stored.pid) return false;
  // One that no memory has is an earlier daemon's, which had opened its gate: behind a closed one git dies with the daemon.
  return openMerges.get(runId)?.open !== false;
}

/** Lets a merge come to its end: cut short, it would leave a checkout half merged. */
async function letMergeEnd({ pid, pid_start_time: start }: Group): Promise<void> {
  const began = performance.now();
  while (performance.now() - began < mergePatienceMs) {
    if (identify(pid, start) !== "matches" || !processAlive(pid)) return;
    await Bun.sleep(stepMs);
  }
}

/** Ends a merge after having let it go on for a while, and waits until its checkout was put right. */
async function stopMerge(daemon: Daemon, runId: string, group: Group): Promise<boolean> {
  const whole = openMerges.get(runId)?.whole;
  await letMergeEnd(group);
  const there = identify(group.pid, group.pid_start_time) === "matches";
  const ended = there ? await stopGroup(group.process_group_id, daemon.config.cancelGraceMs) : true;
  if (whole !== undefined) await Promise.race([whole, Bun.sleep(tidyMs)]);
  return ended;
}

/** A process that may not be signalled: whose wish it was, and what it is, name the event. */
function logRefusal({ store, log }: Daemon, runId: string, { pid }: Group): void {
  const fields = { run_id: runId, pid };
  const { stall, cancelRequested } = readFacts(store.db, runId);
  if (stall !== null && !cancelRequested) log.warn("sloop::dispatcher", "output_stall_signal_refused", fields);
  else if (readRun(store.db, runId)?.state === "running")
    log.warn("sloop::driver", "agent_cancel_signal_refused", fields);
  else log.warn("sloop::driver", "stage_cancel_signal_refused", fields);
}

/**
 * SIGTERM to the run's process group, SIGKILL after the grace, and a wait until it is empty (5 s at most). A merge that is
 * under way is let go on for 20 s before that. Resolves to false when there was nothing that may be signalled; the log
 * says why.
 */
export async function stopRecordedProcess(daemon: Daemon, runId: string): Promise<boolean> {
  const group = recordedProcess(daemon, runId);
  if (group === null) return false;
  const fields = { run_id: runId, pid: group.pid };
  const identity = identify(group.pid, group.pid_start_time);
  if (identity === "gone") {
    daemon.log.warn("sloop::driver", "stale_stage_group_not_signalled", fields);
    return false;
  }
  if (identity === "unverifiable" || group.process_group_id !== group.pid) {
    logRefusal(daemon, runId, group);
    return false;
  }
  if (isMerging(daemon, runId)) return stopMerge(daemon, runId, group);
  return stopGroup(group.process_group_id, daemon.config.cancelGraceMs);
}

// Ending the process a run stands on: only a group whose leader is still the one that was recorded (engine.md 14.1, 16.1).

import type { StageProcess } from "../core/evidence.ts";
import { readFacts } from "../store/evidence.ts";
import { readRun } from "../store/runs.ts";
import { identify, stopGroup } from "../system/process.ts";
import type { Daemon } from "./context.ts";

type Group = Pick<StageProcess, "pid" | "pid_start_time" | "process_group_id">;

/** The process a run stands on: its checkpoint, else what its row says of a running agent. */
export function recordedProcess(daemon: Daemon, runId: string): Group | null {
  const stored = readFacts(daemon.store.db, runId).process;
  if (stored !== null) return stored;
  const run = readRun(daemon.store.db, runId);
  if (run?.state !== "running" || run.pid === null) return null;
  return { pid: run.pid, pid_start_time: run.pidStartTime, process_group_id: run.processGroupId ?? 0 };
}

/**
 * SIGTERM to the run's process group, SIGKILL after the grace, and a wait until it is empty (5 s at most). Resolves to
 * false when there was nothing that may be signalled; the log says why.
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
    daemon.log.warn("sloop::driver", "stage_cancel_signal_refused", fields);
    return false;
  }
  return stopGroup(group.process_group_id, daemon.config.cancelGraceMs);
}

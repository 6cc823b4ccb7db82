// Before a run may settle: nothing of it goes on. Quiet where nothing does.

import { readFacts } from "../store/evidence.ts";
import { identify, processAlive } from "../system/process.ts";
import type { Daemon } from "./context.ts";
import { recordedProcess, stopRecordedProcess } from "./stop-process.ts";

/** Ends the process a run still stands on and waits until its group is empty; a merge is left to its own rules. */
export async function endRecordedProcess(daemon: Daemon, runId: string): Promise<void> {
  if (readFacts(daemon.store.db, runId).process?.merge !== undefined) return;
  const group = recordedProcess(daemon, runId);
  if (group === null || identify(group.pid, group.pid_start_time) !== "matches" || !processAlive(group.pid)) return;
  await stopRecordedProcess(daemon, runId);
}

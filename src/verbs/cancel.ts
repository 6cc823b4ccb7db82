// `cancel`: ends a live run; its branch, its worktree and what it printed stay.

import { SloopError } from "../core/errors.ts";
import { runAlias } from "../core/ids.ts";
import type { Daemon } from "../daemon/context.ts";
import { isMerging, stopRecordedProcess } from "../daemon/stop-process.ts";
import { requestCancel } from "../store/evidence.ts";
import type { RunRow } from "../store/tables.ts";
import type { Handler } from "./handler.ts";
import { resolveRun } from "./reference.ts";

/** Whether a run of this row may be cancelled: it executes, and has not ended. */
export function cancellable(run: RunRow): boolean {
  return run.exitedAtMs === null && (run.state === "running" || run.state === "driving");
}

const replyMs = 5000;

/** Records the intent durably; what kept it from being stored, or null. */
function recordIntent(daemon: Daemon, run: RunRow): { error: unknown } | null {
  try {
    daemon.store.write((tx) => requestCancel(tx, run.id, daemon.clock.now()));
    return null;
  } catch (error) {
    return { error };
  }
}

/**
 * Records the intent durably, then ends the executing process; resolves once it is gone, or as long after as
 * `stopRecordedProcess` waits. An intent that cannot be stored is kept in memory and carried out all the same (what fills
 * the disk may be the very agent); then it rejects with what kept it from being stored.
 */
export async function cancelRun(daemon: Daemon, run: RunRow): Promise<void> {
  const unstored = recordIntent(daemon, run);
  const live = daemon.live.get(run.id);
  if (live !== undefined) live.cancelling = true;
  await stopRecordedProcess(daemon, run.id);
  if (unstored !== null) throw unstored.error;
}

export const cancel: Handler<"cancel"> = (daemon, args) => {
  const { run } = resolveRun(daemon.store.db, args.run);
  const alias = runAlias(run.ticketId, run.attempt);
  if (!cancellable(run)) throw new SloopError("conflict", `run ${alias} is \`${run.state}\` and cannot be cancelled`);
  const merging = isMerging(daemon, run.id);
  const stopping = cancelRun(daemon, run);
  // A merge may go on for a while, and is ended after that; nobody has to wait for it.
  const waited = merging ? Promise.race([stopping, Bun.sleep(replyMs)]) : stopping;
  return waited.then(() => ({
    id: run.id,
    alias,
    state: "cancelling" as const,
    worktree: run.worktreePath,
    preserved: true as const,
  }));
};

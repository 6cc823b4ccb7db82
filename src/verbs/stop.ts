// `stop`: ends the daemon, not its runs; with `force` the runs too.

import { SloopError } from "../core/errors.ts";
import { runAlias } from "../core/ids.ts";
import type { Daemon } from "../daemon/context.ts";
import type { StopReply } from "../protocol/replies.ts";
import { listUnsettled } from "../store/runs.ts";
import type { RunRow } from "../store/tables.ts";
import { cancellable, cancelRun } from "./cancel.ts";
import type { Handler } from "./handler.ts";

function aliasOf(run: RunRow): string {
  return runAlias(run.ticketId, run.attempt);
}

function refuse(active: RunRow[]): SloopError {
  const runs = active.length === 1 ? "1 run is" : `${active.length} runs are`;
  const aliases = active.map(aliasOf).join(", ");
  return new SloopError("conflict", `${runs} active: ${aliases}; \`sloop stop --force\` cancels them`, {
    hint: "`sloop wait RUN` waits for one of them to end",
  });
}

async function stopForced(daemon: Daemon, active: RunRow[]): Promise<StopReply> {
  const cancelled = active.filter(cancellable);
  // One that cannot even be stored is ended all the same: whoever forces a stop wants nothing left running.
  await Promise.allSettled(cancelled.map((run) => cancelRun(daemon, run)));
  daemon.shutDown();
  return { stopping: true, pid: daemon.pid, cancelled_runs: cancelled.map(aliasOf).sort() };
}

export const stop: Handler<"stop"> = (daemon, args) => {
  const active = listUnsettled(daemon.store.db);
  if (active.length > 0 && args.force !== true) throw refuse(active);
  // From here on nothing new is dispatched; the door closes once the reply was written.
  daemon.conditions.stopping = true;
  if (active.length > 0) return stopForced(daemon, active);
  daemon.shutDown();
  return { stopping: true, pid: daemon.pid, cancelled_runs: [] };
};

// Which runs are really going on: leases that memory lost are taken up again, leases of ended runs are given back (engine.md 16.2, 16.3).

import { listLeased } from "../store/runs.ts";
import { releaseInterrupted } from "../store/settle.ts";
import { identify, processAlive } from "../system/process.ts";
import type { Daemon, LiveRun, WatchedProcess } from "./context.ts";
import type { Launcher } from "./launch.ts";
import { adoptRun } from "./recovery.ts";
import { forgetRun } from "./settle.ts";

/** Drops runs that nobody drives any more from memory, so that what the store says of them decides: an unsettled one is taken up anew. */
function forgetUnsupervised({ daemon, pending }: Launcher): void {
  for (const live of [...daemon.live.values()]) {
    if (!live.supervised && !live.recovering && !pending.has(live.runId)) forgetRun(daemon, live.runId);
  }
}

/** Gone, or a zombie that its supervisor does not reap. */
function isGone({ pid, pidStartTime }: WatchedProcess): boolean {
  return identify(pid, pidStartTime) === "gone" || !processAlive(pid);
}

function suspect(daemon: Daemon, live: LiveRun, watched: WatchedProcess): void {
  live.suspectedDead = isGone(watched);
  if (!live.suspectedDead) {
    watched.seenGone = false;
  } else if (watched.seenGone === true) {
    watched.giveUp();
  } else {
    watched.seenGone = true;
    const fields = { run_id: live.runId, ticket_id: live.ticketId, pid: watched.pid };
    daemon.log.warn("sloop::recovery", "supervised_run_exit_observed", fields);
  }
}

/** Gives up processes that are gone for the second tick in a row: their supervisors were stopped, or hang, and say nothing. */
function suspectDead(daemon: Daemon): void {
  for (const live of daemon.live.values()) {
    if (live.supervised && !live.recovering && live.watched != null) suspect(daemon, live, live.watched);
    else live.suspectedDead = false;
  }
}

function scan(launcher: Launcher): void {
  const { daemon } = launcher;
  const freed = releaseInterrupted(daemon.store, daemon.clock.now());
  for (const ticket of freed) daemon.log.warn("sloop::recovery", "interrupted_claim_released", { ticket_id: ticket });
  forgetUnsupervised(launcher);
  for (const { run } of listLeased(daemon.store.db)) if (!daemon.live.has(run.id)) adoptRun(launcher, run);
}

/** Looks before a dispatch may be milliseconds apart, so only ticks say for how long something has been so. */
export type Occasion = "tick" | "dispatch";

/** One liveness check, within the dispatcher's queue; a failure closes dispatch until one succeeds. Never throws. */
export async function checkLiveness(launcher: Launcher, occasion: Occasion = "dispatch"): Promise<void> {
  const { daemon } = launcher;
  if (daemon.conditions.stopping) return;
  try {
    if (occasion === "tick") suspectDead(daemon);
    scan(launcher);
    daemon.conditions.unreconciled = false;
  } catch (error) {
    daemon.conditions.unreconciled = true;
    const fields = { error: error instanceof Error ? error.message : String(error) };
    daemon.log.error("sloop::recovery", "run_reconciliation_failed", fields);
  }
  await daemon.hook("after-run-liveness-reconciliation");
}

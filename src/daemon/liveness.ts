// Which runs are really going on: leases that memory lost are taken up again, leases of ended runs are given back (engine.md 16.2, 16.3).

import { listLeased } from "../store/runs.ts";
import { releaseInterrupted } from "../store/settle.ts";
import type { Launcher } from "./launch.ts";
import { adoptRun } from "./recovery.ts";
import { forgetRun } from "./settle.ts";

/** Drops runs that nobody drives any more from memory, so that what the store says of them decides: an unsettled one is taken up anew. */
function forgetUnsupervised({ daemon, pending }: Launcher): void {
  for (const live of [...daemon.live.values()]) {
    if (!live.supervised && !live.recovering && !pending.has(live.runId)) forgetRun(daemon, live.runId);
  }
}

function scan(launcher: Launcher): void {
  const { daemon } = launcher;
  const freed = releaseInterrupted(daemon.store, daemon.clock.now());
  for (const ticket of freed) daemon.log.warn("sloop::recovery", "interrupted_claim_released", { ticket_id: ticket });
  forgetUnsupervised(launcher);
  for (const { run } of listLeased(daemon.store.db)) if (!daemon.live.has(run.id)) adoptRun(launcher, run);
}

/** One liveness check; a failure closes dispatch until one succeeds. Never throws. */
export async function checkLiveness(launcher: Launcher): Promise<void> {
  const { daemon } = launcher;
  try {
    scan(launcher);
    daemon.conditions.unreconciled = false;
  } catch (error) {
    daemon.conditions.unreconciled = true;
    const fields = { error: error instanceof Error ? error.message : String(error) };
    daemon.log.error("sloop::recovery", "run_reconciliation_failed", fields);
  }
  await daemon.hook("after-run-liveness-reconciliation");
}

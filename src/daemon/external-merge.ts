// Branches that a person merged by hand: noticed, and their tickets settled (engine.md 15.2).

import { isAncestor, readBaseline, readBranchTip, readTarget } from "../git/inspect.ts";
import { readFacts } from "../store/evidence.ts";
import { listReviewRuns, releaseMergedTicket, settleExternalMerge } from "../store/review.ts";
import type { RunRow } from "../store/tables.ts";
import type { Daemon } from "./context.ts";
import { reportOutcome } from "./source.ts";

type Tips = { branch: string; branchTip: string; targetTip: string };

/** The branch's tip and that of the branch it should have landed on; null when one cannot be read, or they are equal. */
function readTips(daemon: Daemon, run: RunRow): Tips | null {
  const { root } = daemon.paths;
  const { branch } = run;
  if (branch === null) return null;
  const branchTip = readBranchTip(root, branch);
  const named = run.targetBranch ?? null;
  const target = named === null ? readTarget(root, daemon.config.mergeTarget) : null;
  const targetTip =
    named === null ? (target !== null && "tip" in target ? target.tip : null) : readBranchTip(root, named);
  if (branchTip === null || targetTip === null || branchTip === targetTip) return null;
  return { branch, branchTip, targetTip };
}

/** A branch that provably carries no work would be "merged" by any later commit on the target. */
async function carriesNothing(daemon: Daemon, run: RunRow, tips: Tips): Promise<boolean> {
  const { commits } = readFacts(daemon.store.db, run.id);
  if (commits?.complete !== true || commits.oids.length > 0) return false;
  return (await readBaseline(daemon.paths.root, tips.branch)) === tips.branchTip;
}

async function landed(daemon: Daemon, run: RunRow, tips: Tips): Promise<boolean> {
  if ((await isAncestor(daemon.paths.root, tips.branchTip, tips.targetTip)) !== true) return false;
  return !(await carriesNothing(daemon, run, tips));
}

function settle(daemon: Daemon, run: RunRow, tips: Tips): void {
  const merge = { branch: tips.branch, branch_tip: tips.branchTip, observed_default_tip: tips.targetTip };
  if (!settleExternalMerge(daemon.store, run, merge, daemon.clock.now())) return;
  const fields = { ticket_id: run.ticketId, run_id: run.id, ...merge };
  daemon.log.info("sloop::dispatcher", "external_merge_reconciled", fields);
  void reportOutcome(daemon, run.ticketId, "merged");
}

export type MergeWatch = { look(): void };

/** Asks git only about a branch whose tip, or whose target's tip, moved since the last answer; one at a time, beside the pass. */
export function openMergeWatch(daemon: Daemon): MergeWatch {
  const answered = new Map<string, string>();
  let busy = false;

  /** Judges one run; whether there was anything to ask git about. */
  async function judge(run: RunRow): Promise<void> {
    if (readFacts(daemon.store.db, run.id).externalMerge !== null) {
      await daemon.enqueue(() => releaseMergedTicket(daemon.store, run.ticketId, daemon.clock.now()));
      return;
    }
    const tips = readTips(daemon, run);
    const key = tips === null ? null : `${tips.branchTip} ${tips.targetTip}`;
    if (tips === null || key === null || answered.get(run.id) === key) return;
    const merged = await landed(daemon, run, tips);
    answered.set(run.id, key);
    if (merged) await daemon.enqueue(() => settle(daemon, run, tips));
  }

  async function judgeAll(waiting: RunRow[]): Promise<void> {
    for (const run of waiting) {
      try {
        await judge(run);
      } catch (error) {
        const fields = { run_id: run.id, error: String(error) };
        daemon.log.error("sloop::dispatcher", "external_merge_settle_failed", fields);
      }
    }
  }

  return {
    look() {
      if (busy) return;
      const waiting = listReviewRuns(daemon.store.db);
      if (waiting.length === 0) return;
      busy = true;
      void judgeAll(waiting).finally(() => {
        busy = false;
      });
    },
  };
}

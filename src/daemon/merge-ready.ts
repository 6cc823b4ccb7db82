// Whether a merge may begin in somebody's checkout, and what of theirs is in its way (engine.md 11.6).

import { checkoutReady } from "../git/checkout.ts";
import { readHead } from "../git/inspect.ts";
import { type MergePlan, overwriteReason } from "../git/merge.ts";
import { overwrittenPaths } from "../git/overwrite.ts";
import type { Daemon } from "./context.ts";
import { requireNotCancelled } from "./execute.ts";
import type { DrivenRun } from "./stage.ts";

export type Tips = { targetTip: string; branchTip: string };
export type Entry = { daemon: Daemon; run: DrivenRun; checkout: string; tips: Tips; plan: MergePlan };

/** Somebody's edits that the merge would overwrite: git would refuse too, but only after putting them away and back. */
async function inTheWay(checkout: string, tips: Tips, plan: MergePlan): Promise<string | null> {
  const to = plan.kind === "merge_tree" ? plan.tree : tips.branchTip;
  const paths = plan.kind === "in_checkout" ? [] : await overwrittenPaths({ checkout, from: tips.targetTip, to });
  return paths === null || paths.length === 0 ? null : overwriteReason(checkout, paths);
}

/** A branch that is being rebased or bisected is in use, but HEAD stands elsewhere. */
function detached(checkout: string, target: string): string | null {
  const head = readHead(checkout);
  if (head !== null && "branch" in head) return null;
  return `${checkout} is not ready: HEAD is detached there in the middle of work on \`${target}\``;
}

const readyWaitMs = 3000;
const readyLookMs = 100;

/** Somebody's own git, or a commit about to be made, is in the way for a moment only; null once the checkout is ready. */
async function awaitReady({ daemon, run, checkout }: Entry): Promise<string | null> {
  const until = performance.now() + readyWaitMs;
  for (;;) {
    const problem = await checkoutReady(checkout);
    if (problem === null || performance.now() >= until) return problem;
    requireNotCancelled(daemon, run.runId);
    await Bun.sleep(readyLookMs);
  }
}

/** Why git must not merge in this checkout, once what was only passing has passed; null when it may. Throws Cancelled. */
export async function whyNotReady(entry: Entry): Promise<string | null> {
  const { run, checkout, tips, plan } = entry;
  return (await awaitReady(entry)) ?? detached(checkout, run.targetBranch) ?? (await inTheWay(checkout, tips, plan));
}

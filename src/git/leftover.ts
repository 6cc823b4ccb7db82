// What an interrupted or failed merge left in the merge checkout, and what may be done about it (engine.md 16.5).

import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  abortMerge,
  indexClean,
  indexLocked,
  indexTree,
  onlyAutoMerge,
  operationInProgress,
  unmergedPaths,
} from "./checkout.ts";
import { isAncestor, readBranchTip, readHeadCommit } from "./inspect.ts";
import { readLayout, readLine } from "./layout.ts";
import { planMerge } from "./merge.ts";
import { git, splitNul } from "./run.ts";

/** What was checkpointed before the merge's process was let go. */
export type MergeCheckpoint = { targetHead: string; branchTip: string; completedTarget: string | null };

export type LeftoverQuestion = {
  root: string;
  /** The checkout the merge ran in; null when it only moved the target's reference. */
  checkout: string | null;
  target: string;
  /** The run's branch. */
  branch: string;
  checkpoint: MergeCheckpoint;
};

/** `done`: the branch has landed. `unsafe`: touch nothing and fail. The other two: merge normally, for `abort_then_retry` after `abortMerge`. */
export type LeftoverVerdict = "done" | "retry" | "unsafe" | "abort_then_retry";

async function treeOf(root: string, commit: string): Promise<string | null> {
  const { code, stdout } = await git(["rev-parse", "--verify", "--quiet", `${commit}^{tree}`], { cwd: root });
  return code === 0 ? stdout.trim() : null;
}

async function changedPaths(checkout: string, range: string[]): Promise<string[] | null> {
  const args = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", ...range, "--"];
  const { code, stdout } = await git(args, { cwd: checkout });
  return code === 0 ? splitNul(stdout) : null;
}

/** For git before 2.38, which may leave conflicts: nothing is staged or unmerged but what the branch itself changed. */
async function onlyBranchPaths(checkout: string, { targetHead, branchTip }: MergeCheckpoint): Promise<boolean> {
  const staged = await changedPaths(checkout, ["--cached", "HEAD"]);
  const unmerged = await unmergedPaths(checkout);
  const branch = await changedPaths(checkout, [`${targetHead}...${branchTip}`]);
  if (staged === null || unmerged === null || branch === null) return false;
  const ours = new Set(branch);
  return [...staged, ...unmerged].every((path) => ours.has(path));
}

/** Whether the merge in progress is the checkpointed one and nobody has staged anything since. */
export async function mergeIsOurs(root: string, checkout: string, checkpoint: MergeCheckpoint): Promise<boolean> {
  const layout = readLayout(checkout);
  if (layout === null || readLine(join(layout.gitDir, "MERGE_HEAD")) !== checkpoint.branchTip) return false;
  if (indexLocked(checkout)) return false;
  const { targetHead: targetTip, branchTip } = checkpoint;
  const plan = await planMerge({ root, targetTip, branchTip, ffOnly: false });
  if (plan.kind === "in_checkout") return onlyBranchPaths(checkout, checkpoint);
  const index = await indexTree(checkout);
  if (index === null) return false;
  return (plan.kind === "merge_tree" && index === plan.tree) || index === (await treeOf(root, targetTip));
}

async function unusable(checkout: string): Promise<boolean> {
  if (operationInProgress(checkout) !== null || indexLocked(checkout)) return true;
  const unmerged = await unmergedPaths(checkout);
  return unmerged === null || unmerged.length > 0;
}

/** Decides an interrupted merge by the table of engine.md 16.5, first match first. Changes nothing. */
export async function inspectLeftoverMerge(question: LeftoverQuestion): Promise<LeftoverVerdict> {
  const { root, checkout, branch, checkpoint } = question;
  if (checkout !== null) {
    if (await mergeIsOurs(root, checkout, checkpoint)) return "abort_then_retry";
    if (await unusable(checkout)) return "unsafe";
  }
  const tip = readBranchTip(root, branch);
  if (tip === null || tip !== checkpoint.branchTip) return "unsafe";
  return judgeHead(question, tip);
}

async function judgeHead(
  { root, checkout, target, checkpoint }: LeftoverQuestion,
  tip: string,
): Promise<LeftoverVerdict> {
  const head = checkout === null ? readBranchTip(root, target) : readHeadCommit(checkout);
  if (head === null) return "unsafe";
  if (checkpoint.completedTarget === null && head === checkpoint.targetHead) {
    return checkout === null || (await indexClean(checkout)) === true ? "retry" : "unsafe";
  }
  return (await isAncestor(root, tip, head)) === true ? "done" : "unsafe";
}

/** Whether a checkout has a merge in progress. */
export function mergeInProgress(checkout: string): boolean {
  const layout = readLayout(checkout);
  return layout !== null && existsSync(join(layout.gitDir, "MERGE_HEAD"));
}

/**
 * After a merge that failed: gives up what it left in progress. Null when the checkout is as it was before; else why the
 * merge stays (a person staged something meanwhile, or git could not abort it).
 */
export async function undoFailedMerge(
  root: string,
  checkout: string,
  checkpoint: MergeCheckpoint,
): Promise<string | null> {
  // A refused merge puts edits back by way of the stash, which leaves this behind; it was not there when the merge began.
  if (onlyAutoMerge(checkout)) return abortMerge(checkout);
  if (!mergeInProgress(checkout)) return null;
  if (await mergeIsOurs(root, checkout, checkpoint)) return abortMerge(checkout);
  return `the merge in ${checkout} was left in progress: something else was staged there meanwhile`;
}

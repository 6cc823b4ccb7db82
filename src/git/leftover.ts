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
  readAutoMerge,
  unmergedPaths,
} from "./checkout.ts";
import { fullyStaged, undoCutShort } from "./cut-short.ts";
import { isAncestor, readBranchTip, readHeadCommit } from "./inspect.ts";
import { readLayout, readLine } from "./layout.ts";
import { messageStart, planMerge } from "./merge.ts";
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

/** `done`: the branch has landed. `unsafe`: touch nothing and fail. The other two: merge normally after `undoFailedMerge`. */
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

/** Whether git stopped at conflicts in a merge of ours and nobody has begun to resolve them. */
async function untouchedConflict(checkout: string, checkpoint: MergeCheckpoint): Promise<boolean> {
  const layout = readLayout(checkout);
  const message = layout === null ? null : readLine(join(layout.gitDir, "MERGE_MSG"));
  // A person who merges the branch by hand gets git's own message.
  if (message?.startsWith(messageStart) !== true) return false;
  const made = readAutoMerge(checkout);
  if (made === null) return onlyBranchPaths(checkout, checkpoint);
  const [staged, edited, unmerged, brought] = await Promise.all([
    changedPaths(checkout, ["--cached", made]),
    changedPaths(checkout, [made]),
    unmergedPaths(checkout),
    changedPaths(checkout, ["HEAD", made]),
  ]);
  if (staged === null || edited === null || unmerged === null || brought === null) return false;
  const open = new Set(unmerged);
  const ours = new Set(brought);
  return staged.every((path) => open.has(path)) && !edited.some((path) => ours.has(path));
}

/** Whether the merge in progress is the checkpointed one and nobody has staged anything since. */
export async function mergeIsOurs(root: string, checkout: string, checkpoint: MergeCheckpoint): Promise<boolean> {
  const layout = readLayout(checkout);
  if (layout === null || readLine(join(layout.gitDir, "MERGE_HEAD")) !== checkpoint.branchTip) return false;
  if (indexLocked(checkout)) return false;
  // Somebody may have committed just before git began: what it merged into is where HEAD stands, not where it was looked at.
  const targetTip = readHeadCommit(checkout);
  if (targetTip === null) return false;
  const plan = await planMerge({ root, targetTip, branchTip: checkpoint.branchTip, ffOnly: false });
  if (plan.kind === "in_checkout") return onlyBranchPaths(checkout, checkpoint);
  if (plan.kind === "conflict") return untouchedConflict(checkout, checkpoint);
  const index = await indexTree(checkout);
  if (index === null) return false;
  return (plan.kind === "merge_tree" && index === plan.tree) || index === (await treeOf(root, targetTip));
}

/** The tree the checkpointed merge was to bring; null when this git cannot tell without a checkout. */
async function resultOf(root: string, { targetHead: targetTip, branchTip }: MergeCheckpoint): Promise<string | null> {
  const plan = await planMerge({ root, targetTip, branchTip, ffOnly: false });
  if (plan.kind === "merge_tree") return plan.tree;
  return plan.kind === "fast_forward" ? treeOf(root, branchTip) : null;
}

/** Whether git was killed before it noted our merge as in progress, and left something that only it can have left. */
async function cutShort(root: string, checkout: string, checkpoint: MergeCheckpoint): Promise<boolean> {
  const { targetHead } = checkpoint;
  if (indexLocked(checkout) || readHeadCommit(checkout) !== targetHead) return false;
  if (operationInProgress(checkout) !== null && !onlyAutoMerge(checkout)) return false;
  const result = await resultOf(root, checkpoint);
  if (result === null) return false;
  if (await fullyStaged({ checkout, targetHead, result })) return true;
  return readAutoMerge(checkout) === result && (await indexClean(checkout)) === true;
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
    if (await cutShort(root, checkout, checkpoint)) return "abort_then_retry";
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
 * After a merge that failed, was killed or was left by an earlier daemon: gives up what it left. Null when the checkout is as
 * it was before; else why the merge stays (a person staged something meanwhile, or git could not take it back). No git of
 * the merge may still run.
 */
export async function undoFailedMerge(
  root: string,
  checkout: string,
  checkpoint: MergeCheckpoint,
): Promise<string | null> {
  if (mergeInProgress(checkout)) {
    if (await mergeIsOurs(root, checkout, checkpoint)) return abortMerge(checkout);
    return `the merge in ${checkout} was left in progress: something else was staged there meanwhile`;
  }
  const result = await resultOf(root, checkpoint);
  const left = result === null ? null : await undoCutShort({ checkout, targetHead: checkpoint.targetHead, result });
  // Git leaves this note behind also where it refused a merge; it was not there when the merge began.
  if (left === null && onlyAutoMerge(checkout)) return abortMerge(checkout);
  return left;
}

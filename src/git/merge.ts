// Merging a run's branch: decided in the object database, landed whole or not at all (engine.md 11.6-11.8).

import { isAncestor, readBranchTip } from "./inspect.ts";
import { git, lastLine, sloopIdentity, sloopIdentityVariables, splitNul } from "./run.ts";

export type MergePlan =
  | { kind: "nothing" }
  | { kind: "fast_forward" }
  | { kind: "merge_tree"; tree: string }
  /** Git before 2.38 cannot merge without a checkout: merge there and abort on a conflict. */
  | { kind: "in_checkout" }
  | { kind: "conflict"; paths: string[] }
  | { kind: "refused"; reason: string };

export type MergeQuestion = { root: string; targetTip: string; branchTip: string; ffOnly: boolean };

/** What merging `branchTip` into `targetTip` comes to. Touches no checkout and no reference. */
export async function planMerge({ root, targetTip, branchTip, ffOnly }: MergeQuestion): Promise<MergePlan> {
  const contained = await isAncestor(root, branchTip, targetTip);
  const forward = contained === false ? await isAncestor(root, targetTip, branchTip) : false;
  if (contained === null || forward === null) return { kind: "refused", reason: "git cannot compare the branches" };
  if (contained) return { kind: "nothing" };
  if (forward) return { kind: "fast_forward" };
  if (ffOnly) return { kind: "refused", reason: "the target branch has moved on, and ff_only allows no merge commit" };
  return mergeTrees(root, targetTip, branchTip);
}

const usageError = 129;

async function mergeTrees(root: string, targetTip: string, branchTip: string): Promise<MergePlan> {
  const args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", targetTip, branchTip];
  const { code, stdout, stderr } = await git(args, { cwd: root, write: true });
  const [tree, ...paths] = splitNul(stdout);
  if (code === 0 && tree !== undefined) return { kind: "merge_tree", tree };
  if (code === 1) return { kind: "conflict", paths: [...new Set(paths.filter((path) => path !== ""))] };
  if (code === usageError) return { kind: "in_checkout" };
  return { kind: "refused", reason: lastLine(stderr, "git merge-tree failed") };
}

const mostPaths = 10;

function listPaths(paths: readonly string[]): string {
  const shown = paths.slice(0, mostPaths).join(", ");
  const more = paths.length - mostPaths;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/** The reason of a stage that failed by conflicts: at most ten paths, then how many more. */
export function conflictReason(paths: readonly string[]): string {
  return `conflicts in ${listPaths(paths)}`;
}

/** The reason of a merge that somebody's edited or untracked files stand in the way of. */
export function overwriteReason(checkout: string, paths: readonly string[]): string {
  return `files in ${checkout} would be overwritten by merge: ${listPaths(paths)}`;
}

function mergeMessage(branch: string): string {
  return `Merge run branch '${branch}'`;
}

export type MergeCommand = { branch: string; branchTip: string; ffOnly: boolean };

/** The git that lands a run's branch in the merge checkout. */
export function mergeArgv({ branch, branchTip, ffOnly }: MergeCommand): string[] {
  const how = ffOnly ? ["--ff-only"] : ["-m", mergeMessage(branch)];
  return ["git", ...sloopIdentity, "merge", "--quiet", ...how, branchTip];
}

/** The git that brings the target branch's commit `oid` into a run's worktree. */
export function syncArgv(branch: string, oid: string): string[] {
  const message = `Merge the default branch into run branch '${branch}'`;
  return ["git", ...sloopIdentity, "merge", "--no-edit", "-m", message, oid];
}

export type RefMerge = {
  root: string;
  target: string;
  targetTip: string;
  branch: string;
  branchTip: string;
  plan: Extract<MergePlan, { kind: "fast_forward" | "merge_tree" }>;
};
export type RefMergeResult =
  | { kind: "moved"; tip: string }
  /** Somebody else moved the target first: plan again. */
  | { kind: "lost" }
  | { kind: "failed"; reason: string };

async function commitMerge(merge: RefMerge & { tree: string }): Promise<RefMergeResult> {
  const parents = ["-p", merge.targetTip, "-p", merge.branchTip];
  const args = [...sloopIdentity, "commit-tree", merge.tree, ...parents, "-m", mergeMessage(merge.branch)];
  const made = await git(args, { cwd: merge.root, write: true, env: sloopIdentityVariables });
  if (made.code !== 0) return { kind: "failed", reason: lastLine(made.stderr, "git commit-tree failed") };
  return { kind: "moved", tip: made.stdout.trim() };
}

/** Lands a planned merge on a target branch that no checkout has, by a compare-and-swap of its reference. */
export async function mergeByRef(merge: RefMerge): Promise<RefMergeResult> {
  const { root, target, targetTip, branch, branchTip, plan } = merge;
  const made: RefMergeResult =
    plan.kind === "fast_forward" ? { kind: "moved", tip: branchTip } : await commitMerge({ ...merge, tree: plan.tree });
  if (made.kind !== "moved") return made;
  const args = ["update-ref", "-m", `merge ${branch}`, `refs/heads/${target}`, made.tip, targetTip];
  const swapped = await git(args, { cwd: root, write: true, env: sloopIdentityVariables });
  if (swapped.code === 0) return made;
  if (readBranchTip(root, target) !== targetTip) return { kind: "lost" };
  return { kind: "failed", reason: lastLine(swapped.stderr, "git update-ref failed") };
}

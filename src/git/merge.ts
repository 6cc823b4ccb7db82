// Merging a run's branch: decided in the object database, landed whole or not at all (engine.md 11.6-11.8).

import { mergeBase, readBranchTip } from "./inspect.ts";
import { type GitResult, git, lastLine, longestGitMs, sloopIdentity, sloopIdentityVariables, splitNul } from "./run.ts";

export type MergePlan =
  | { kind: "nothing" }
  | { kind: "fast_forward" }
  | { kind: "merge_tree"; tree: string }
  /** Git before 2.38 cannot merge without a checkout: merge there and abort on a conflict. */
  | { kind: "in_checkout" }
  | { kind: "conflict"; paths: string[] }
  | { kind: "refused"; reason: string };

export type MergeQuestion = {
  root: string;
  targetTip: string;
  branchTip: string;
  ffOnly: boolean;
  /** After this long a git that hangs in a driver or hook is ended. */
  timeoutMs?: number;
};

/** Git's own last line, or that it was ended because it hung. */
function problemOf({ code, stderr }: GitResult, what: string): string {
  return lastLine(
    stderr,
    code === null ? `${what} was ended before it was done; something it runs may hang` : `${what} failed`,
  );
}

/** What merging `branchTip` into `targetTip` comes to. Touches no checkout and no reference. */
export async function planMerge(question: MergeQuestion): Promise<MergePlan> {
  const { root, targetTip, branchTip, ffOnly } = question;
  const base = await mergeBase(root, targetTip, branchTip);
  if (base === null) return { kind: "refused", reason: "git cannot compare the branches" };
  if (base === branchTip) return { kind: "nothing" };
  if (base === targetTip) return { kind: "fast_forward" };
  if (ffOnly) return { kind: "refused", reason: "the target branch has moved on, and ff_only allows no merge commit" };
  return mergeTrees(question);
}

const usageError = 129;

async function mergeTrees({ root, targetTip, branchTip, timeoutMs }: MergeQuestion): Promise<MergePlan> {
  const args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", targetTip, branchTip];
  const done = await git(args, { cwd: root, write: true, timeoutMs: timeoutMs ?? longestGitMs });
  const [tree, ...paths] = splitNul(done.stdout);
  if (done.code === 0 && tree !== undefined) return { kind: "merge_tree", tree };
  if (done.code === 1) return { kind: "conflict", paths: [...new Set(paths.filter((path) => path !== ""))] };
  if (done.code === usageError) return { kind: "in_checkout" };
  return { kind: "refused", reason: problemOf(done, "git merge-tree") };
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

/** How the message of a merge commit that lands a run's branch begins. */
export const messageStart = "Merge run branch '";

function mergeMessage(branch: string): string {
  return `${messageStart}${branch}'`;
}

/** What a person set for merges of their own must not make this one something else: squashed, uncommitted, or refused. */
function ownOptions(into: string): string[] {
  const plain = ["-c", "merge.ff=true", "-c", "merge.autoStash=false"];
  // Git would take the first `=` for the end of the name; the options given on the command line win anyway.
  return into.includes("=") ? plain : [...plain, "-c", `branch.${into}.mergeOptions=`];
}

const whole = ["--commit", "--no-squash"];

export type MergeCommand = { target: string; branch: string; branchTip: string; ffOnly: boolean };

/** The git that lands a run's branch in the merge checkout. */
export function mergeArgv({ target, branch, branchTip, ffOnly }: MergeCommand): string[] {
  const how = ffOnly ? ["--ff-only"] : ["--ff", "-m", mergeMessage(branch)];
  return ["git", ...sloopIdentity, ...ownOptions(target), "merge", "--quiet", ...whole, ...how, branchTip];
}

/** What a guarded merge exits with when the checkout does not stand where it stood when it was looked at; nothing ran. */
export const movedCode = 124;

// One git tells all three; a branch may be a symbolic reference to another, so both names are followed.
const guard = `git rev-parse HEAD --symbolic-full-name HEAD "$1" 2>/dev/null | {
  IFS= read -r tip && IFS= read -r head && IFS= read -r target && [ "$tip" = "$2" ] && [ "$head" = "$target" ]
} || exit ${movedCode}
shift 2
exec "$@"`;

/** The same behind a last look: git starts only where HEAD still is the target branch, at `targetTip`. */
export function guardedMergeArgv(command: MergeCommand & { targetTip: string }): string[] {
  const label = "sloop-merge";
  return ["/bin/sh", "-c", guard, label, `refs/heads/${command.target}`, command.targetTip, ...mergeArgv(command)];
}

/** The git that brings the target branch's commit `oid` into a run's worktree. */
export function syncArgv(branch: string, oid: string): string[] {
  const message = `Merge the default branch into run branch '${branch}'`;
  const how = [...whole, "--ff", "--no-edit", "-m", message];
  return ["git", ...sloopIdentity, ...ownOptions(branch), "merge", ...how, oid];
}

export type RefMerge = {
  root: string;
  target: string;
  targetTip: string;
  branch: string;
  branchTip: string;
  plan: Extract<MergePlan, { kind: "fast_forward" | "merge_tree" }>;
  /** After this long a git that hangs in a hook is ended. */
  timeoutMs?: number;
};
export type RefMergeResult =
  | { kind: "moved"; tip: string }
  /** Somebody else moved the target first: plan again. */
  | { kind: "lost" }
  | { kind: "failed"; reason: string };

function optionsOf({ root, timeoutMs }: RefMerge) {
  return { cwd: root, write: true, env: sloopIdentityVariables, timeoutMs: timeoutMs ?? longestGitMs };
}

async function commitMerge(merge: RefMerge & { tree: string }): Promise<RefMergeResult> {
  const parents = ["-p", merge.targetTip, "-p", merge.branchTip];
  const args = [...sloopIdentity, "commit-tree", merge.tree, ...parents, "-m", mergeMessage(merge.branch)];
  const made = await git(args, optionsOf(merge));
  if (made.code !== 0) return { kind: "failed", reason: problemOf(made, "git commit-tree") };
  return { kind: "moved", tip: made.stdout.trim() };
}

/** Lands a planned merge on a target branch that no checkout has, by a compare-and-swap of its reference. */
export async function mergeByRef(merge: RefMerge): Promise<RefMergeResult> {
  const { root, target, targetTip, branch, branchTip, plan } = merge;
  const made: RefMergeResult =
    plan.kind === "fast_forward" ? { kind: "moved", tip: branchTip } : await commitMerge({ ...merge, tree: plan.tree });
  if (made.kind !== "moved") return made;
  const args = ["update-ref", "-m", `merge ${branch}`, `refs/heads/${target}`, made.tip, targetTip];
  const swapped = await git(args, optionsOf(merge));
  if (swapped.code === 0) return made;
  if (readBranchTip(root, target) !== targetTip) return { kind: "lost" };
  return { kind: "failed", reason: problemOf(swapped, "git update-ref") };
}

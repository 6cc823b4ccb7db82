// The state of somebody's checkout: what is in progress there, whether a merge may begin, which one has a branch.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isRegularFile, removeIfPresent } from "../system/files.ts";
import { copyIndex } from "./index-copy.ts";
import { readHead } from "./inspect.ts";
import { listCheckouts, readLayout, readLine } from "./layout.ts";
import { git, lastLine, longestGitMs, splitNul } from "./run.ts";
import { makeScratch } from "./scratch.ts";

const operations = [
  ["MERGE_HEAD", "a merge is in progress"],
  ["MERGE_MODE", "a merge is in progress"],
  ["CHERRY_PICK_HEAD", "a cherry-pick is in progress"],
  ["REVERT_HEAD", "a revert is in progress"],
  ["REBASE_HEAD", "a rebase is in progress"],
  ["rebase-merge", "a rebase is in progress"],
  ["rebase-apply", "a rebase is in progress"],
  ["sequencer", "a sequence of picks is in progress"],
  ["AUTO_MERGE", "a merge was refused or cut short"],
] as const;

type OperationName = (typeof operations)[number][0];

function findOperation(checkout: string): OperationName | null {
  const layout = readLayout(checkout);
  if (layout === null) return null;
  return operations.find(([name]) => existsSync(join(layout.gitDir, name)))?.[0] ?? null;
}

/** What is in progress in a checkout, as words and git's own name for it; null when nothing is. */
export function operationInProgress(checkout: string): string | null {
  const found = findOperation(checkout);
  const words = operations.find(([name]) => name === found)?.[1];
  return found === null ? null : `${words} (${found})`;
}

/** Whether a tree that a merge or a stash tried to make is all there is: git leaves it behind after refusing a merge. */
export function onlyAutoMerge(checkout: string): boolean {
  return findOperation(checkout) === "AUTO_MERGE";
}

/** The tree that a merge tried to make, as git noted it; null when it noted none. */
export function readAutoMerge(checkout: string): string | null {
  const layout = readLayout(checkout);
  return layout === null ? null : readLine(join(layout.gitDir, "AUTO_MERGE"));
}

/** Whether another git holds the index of a checkout, or died with it. */
export function indexLocked(checkout: string): boolean {
  const layout = readLayout(checkout);
  return layout !== null && existsSync(join(layout.gitDir, "index.lock"));
}

/** Whether the index equals HEAD; null when git cannot tell. */
export async function indexClean(checkout: string): Promise<boolean | null> {
  const { code } = await git(["diff", "--cached", "--quiet", "--no-ext-diff", "HEAD", "--"], { cwd: checkout });
  return code === 0 ? true : code === 1 ? false : null;
}

/** Why a merge may not begin in this checkout, naming its path (engine.md 11.6 *Checkout ready*); null when it may. */
export async function checkoutReady(checkout: string): Promise<string | null> {
  if (readLayout(checkout) === null) return `${checkout} is no git checkout`;
  const operation = operationInProgress(checkout);
  if (operation !== null) return `${checkout} is not ready: ${operation}`;
  if (indexLocked(checkout)) return `${checkout} is not ready: another git holds index.lock`;
  const clean = await indexClean(checkout);
  if (clean === null) return `${checkout} is not ready: its index cannot be compared with HEAD`;
  return clean ? null : `${checkout} is not ready: it has staged changes`;
}

/** The branch that an interrupted operation will go back to; HEAD is detached meanwhile. */
function branchInUse(gitDir: string): string | null {
  const names = ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"];
  return names.map((name) => readLine(join(gitDir, name))).find((line) => line !== null) ?? null;
}

/** The checkout that has `branch` checked out, or is rebasing or bisecting it; null when none has. */
export function findMergeCheckout(root: string, branch: string): string | null {
  const found = listCheckouts(root).find(({ path, gitDir }) => {
    const head = readHead(path);
    if (head !== null && "branch" in head) return head.branch === branch;
    const used = branchInUse(gitDir);
    return used === branch || used === `refs/heads/${branch}`;
  });
  return found?.path ?? null;
}

/** The paths with unresolved conflicts in a checkout; null when git cannot tell. */
export async function unmergedPaths(checkout: string): Promise<string[] | null> {
  const { code, stdout } = await git(["diff", "--name-only", "--diff-filter=U", "-z", "--no-ext-diff"], {
    cwd: checkout,
  });
  return code === 0 ? [...new Set(splitNul(stdout))] : null;
}

/** The tree a checkout's index stands for, read from a copy so that nothing is written there; null while it has conflicts. */
export async function indexTree(checkout: string): Promise<string | null> {
  const layout = readLayout(checkout);
  if (layout === null || !isRegularFile(join(layout.gitDir, "index"))) return null;
  const scratch = makeScratch(checkout, "sloop-index-");
  try {
    const index = join(scratch, "index");
    copyIndex(join(layout.gitDir, "index"), index);
    const { code, stdout } = await git(["write-tree"], { cwd: checkout, env: { GIT_INDEX_FILE: index } });
    return code === 0 ? stdout.trim() : null;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Gives up a merge in progress, or what a refused one left: null, or git's own last line when it could not. */
export async function abortMerge(checkout: string): Promise<string | null> {
  const layout = readLayout(checkout);
  if (layout !== null && onlyAutoMerge(checkout)) {
    removeIfPresent(join(layout.gitDir, "AUTO_MERGE"));
    return null;
  }
  const { code, stderr } = await git(["merge", "--abort"], {
    cwd: checkout,
    write: true,
    timeoutMs: longestGitMs,
  });
  return code === 0 ? null : lastLine(stderr, "git merge --abort failed");
}

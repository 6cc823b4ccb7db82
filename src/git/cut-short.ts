// Taking back what a git that was killed in the middle of a merge left in a checkout (engine.md 11.8).

import { rmdirSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemCode } from "../system/files.ts";
import { type Change, isBeginningOf, pathsHolding, statAt, treeChanges } from "./changes.ts";
import { indexClean, indexLocked, indexTree } from "./checkout.ts";
import { readHeadCommit } from "./inspect.ts";
import { git, lastLine, longestGitMs } from "./run.ts";

export type CutShortQuestion = {
  checkout: string;
  /** The commit the checkout stood on when the merge began, with no edit at any path that the merge changes. */
  targetHead: string;
  /** The tree the merge was to bring. */
  result: string;
};

const side = (changes: readonly Change[], which: "from" | "to") =>
  changes.flatMap((change) => {
    const entry = change[which];
    return entry === null ? [] : [{ path: change.path, entry }];
  });

/** The changes that git had begun in the working tree: a path is missing, or holds what the merge brings, whole or in part. */
async function begunChanges(checkout: string, changes: readonly Change[]): Promise<Change[]> {
  const brought = await pathsHolding(checkout, side(changes, "to"));
  const old = await pathsHolding(checkout, side(changes, "from"));
  const begun: Change[] = [];
  for (const change of changes) {
    const { path, from, to } = change;
    const missing = from !== null && statAt(checkout, path) === null;
    const partly = !old.has(path) && to !== null && (await isBeginningOf(checkout, path, to.oid));
    if (missing || brought.has(path) || partly) begun.push(change);
  }
  return begun;
}

/** Removes the folders above a path that are empty now. */
function pruneAbove(checkout: string, path: string): void {
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    try {
      rmdirSync(join(checkout, folder));
    } catch (error) {
      if (systemCode(error) !== "ENOENT") return;
    }
  }
}

function removeAdded(checkout: string, paths: readonly string[]): void {
  for (const path of paths) {
    if (statAt(checkout, path) === null) continue;
    unlinkSync(join(checkout, path));
    pruneAbove(checkout, path);
  }
}

/** Whether nothing is left where a file was; an empty folder that git had made there goes. */
function isGone(checkout: string, path: string): boolean {
  try {
    if (statAt(checkout, path)?.isDirectory() === true) rmdirSync(join(checkout, path));
  } catch {
    return false;
  }
  return statAt(checkout, path) === null;
}

/** Puts back the files of `changes` that git had begun to change; the index is untouched and still the old one. */
async function restoreFiles(checkout: string, changes: readonly Change[]): Promise<string | null> {
  const begun = await begunChanges(checkout, changes);
  removeAdded(
    checkout,
    begun.flatMap(({ path, from }) => (from === null ? [path] : [])),
  );
  const touched = new Set(begun.map(({ path }) => path));
  const old = changes.flatMap(({ path, from }) =>
    from !== null && (touched.has(path) || isGone(checkout, path)) ? [path] : [],
  );
  if (old.length === 0) return null;
  const input = old.map((path) => `${path}\0`).join("");
  const args = ["checkout-index", "--force", "--index", "-z", "--stdin"];
  const { code, stderr } = await git(args, { cwd: checkout, write: true, input, timeoutMs: longestGitMs });
  return code === 0 ? null : lastLine(stderr, "git checkout-index failed");
}

async function unstage(checkout: string): Promise<string | null> {
  const done = await git(["reset", "--merge"], { cwd: checkout, write: true, timeoutMs: longestGitMs });
  return done.code === 0 ? null : lastLine(done.stderr, "git reset --merge failed");
}

/** Whether the index holds exactly what the merge was to bring, while HEAD is still where it was. */
export async function fullyStaged({ checkout, targetHead, result }: CutShortQuestion): Promise<boolean> {
  if (readHeadCommit(checkout) !== targetHead || (await indexClean(checkout)) !== false) return false;
  return (await indexTree(checkout)) === result;
}

async function stagedOverlap(checkout: string, changes: readonly Change[]): Promise<boolean> {
  const staged = await git(["diff", "--cached", "--quiet", "--no-ext-diff", "HEAD", "--"], { cwd: checkout });
  if (staged.code === 0) return false;
  const tree = await indexTree(checkout);
  const head = readHeadCommit(checkout);
  const differs = tree === null || head === null ? null : await treeChanges(checkout, head, tree);
  if (differs === null) return true;
  const brought = new Map(changes.map(({ path, to }) => [path, to?.oid]));
  return differs.some(({ path, to }) => brought.has(path) && brought.get(path) === to?.oid);
}

/**
 * Takes back a merge that was cut short before git noted it as in progress. Null when the checkout is as it was, somebody's
 * own staged changes aside; else why it is not.
 */
export async function undoCutShort(question: CutShortQuestion): Promise<string | null> {
  const { checkout, targetHead, result } = question;
  if (readHeadCommit(checkout) !== targetHead) return null;
  const changes = await treeChanges(checkout, targetHead, result);
  if (changes === null) return `what a merge left in ${checkout} cannot be told`;
  const clean = (await indexClean(checkout)) === true;
  if (indexLocked(checkout)) {
    const begun = clean ? (await begunChanges(checkout, changes)).length > 0 : true;
    return begun ? `a merge was cut short in ${checkout}, and another git holds its index.lock` : null;
  }
  if (clean) return restoreFiles(checkout, changes);
  if (await fullyStaged(question)) return unstage(checkout);
  if (!(await stagedOverlap(checkout, changes))) return null;
  return `a merge was cut short in ${checkout} and left there: something else was staged meanwhile`;
}

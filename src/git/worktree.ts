// The worktree of a run: made whole or not at all, removed with its branch.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { branchExists, readHead } from "./inspect.ts";
import { abandoned, canonicalPath, readWorktreeRecord } from "./kept-place.ts";
import { listCheckouts, readLayout, readLine } from "./layout.ts";
import { type GitResult, git, lastLine } from "./run.ts";

export type Outcome = { ok: true } | { ok: false; problem: string };

export type WorktreeRequest = {
  root: string;
  path: string;
  branch: string;
  /** The commit or branch to start from. */
  startPoint: string;
};

const queues = new Map<string, Promise<unknown>>();

/** Git's own bookkeeping of worktrees does not stand two changes at a time. */
function oneAtATime<T>(root: string, change: () => Promise<T>): Promise<T> {
  const result = (queues.get(root) ?? Promise.resolve()).then(change, change);
  const settled = result.then(
    () => undefined,
    () => undefined,
  );
  queues.set(root, settled);
  void settled.then(() => {
    if (queues.get(root) === settled) queues.delete(root);
  });
  return result;
}

/** Whether `path` is a checkout of this repository that stands on `branch`. */
export function isWorktree(root: string, path: string, branch: string): boolean {
  const head = readHead(path);
  if (head === null || !("branch" in head) || head.branch !== branch) return false;
  if (readLayout(path)?.commonDir === undefined) return false;
  const wanted = canonicalPath(path);
  return listCheckouts(root).some((checkout) => canonicalPath(checkout.path) === wanted);
}

function failed(result: GitResult, what: string): Outcome {
  return { ok: false, problem: lastLine(result.stderr, `${what} failed`) };
}

async function create({ root, path, branch, startPoint }: WorktreeRequest): Promise<Outcome> {
  if (existsSync(path)) {
    if (isWorktree(root, path, branch)) return { ok: true };
    return { ok: false, problem: `${path} exists and is not the worktree of branch \`${branch}\`` };
  }
  if (branchExists(root, branch)) return { ok: false, problem: `branch \`${branch}\` exists already` };
  const added = await git(["worktree", "add", "--quiet", "--no-track", "-b", branch, "--", path, startPoint], {
    cwd: root,
    write: true,
  });
  if (isWorktree(root, path, branch) && (added.code === 0 || (await checkedOut(path)))) return { ok: true };
  await rollBack(root, path, branch);
  return failed(added, "git worktree add");
}

/** A post-checkout hook that fails has the last word on git's exit, but the checkout is whole. */
async function checkedOut(path: string): Promise<boolean> {
  const { code, stdout } = await git(["status", "--porcelain", "--untracked-files=no"], { cwd: path });
  return code === 0 && stdout === "";
}

/** Takes away what this very creation made: neither the path nor the branch was there before. */
async function rollBack(root: string, path: string, branch: string): Promise<void> {
  await git(["worktree", "remove", "--force", "--force", "--", path], { cwd: root, write: true });
  removeTree(path);
  forgetRecord(root, path);
  if (branchExists(root, branch)) await git(["branch", "-D", "--", branch], { cwd: root, write: true });
}

function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The path could not be made, so there is nothing to remove at it.
  }
}

/** Takes away git's record of a worktree that is gone. `git worktree prune` would take those of others whose disk is not there now. */
function forgetRecord(root: string, path: string): void {
  const record = readWorktreeRecord(root, path);
  if (record !== null && !existsSync(path) && lockOf(root, path) !== "person") removeTree(record);
}

/** Makes branch and worktree, or leaves nothing behind. A directory that is that very worktree counts as made. */
export function addWorktree(request: WorktreeRequest): Promise<Outcome> {
  return oneAtATime(request.root, () => create(request));
}

/** Git locks a worktree while it makes it, and leaves the lock when it is killed; any other lock is a person's. */
function lockOf(root: string, path: string): "none" | "git" | "person" {
  const record = readWorktreeRecord(root, path);
  const reason = record === null ? null : readLine(join(record, "locked"));
  return reason === null ? "none" : reason === "initializing" ? "git" : "person";
}

/** Removes a directory that git has no record of, or that has lost its own. */
function removeAbandoned(path: string): Outcome {
  try {
    rmSync(path, { recursive: true, force: true });
    return { ok: true };
  } catch (error) {
    return { ok: false, problem: `${path} cannot be removed: ${error instanceof Error ? error.message : error}` };
  }
}

async function removeDirectory({ root, path, saved }: RemovalRequest): Promise<Outcome> {
  if (!existsSync(path)) return { ok: true };
  const lock = lockOf(root, path);
  const force = lock === "git" ? ["--force", "--force"] : ["--force"];
  const removed = await git(["worktree", "remove", ...force, "--", path], { cwd: root, write: true });
  if (removed.code === 0) return { ok: true };
  const ours = saved === true && lock !== "person" && abandoned(path);
  return ours ? removeAbandoned(path) : failed(removed, "git worktree remove");
}

async function takeAway(request: RemovalRequest): Promise<Outcome> {
  const removed = await removeDirectory(request);
  if (removed.ok) forgetRecord(request.root, request.path);
  return removed;
}

export type RemovalRequest = {
  root: string;
  path: string;
  /** The branch to delete too; null keeps it. */
  branch: string | null;
  /** Whether all that is in the directory was kept: then it goes also when git has lost track of it. */
  saved?: boolean;
};

/** Removes a worktree and, unless null, its branch; what is gone already is no failure. One that a person locked stays. */
export function removeWorktree(request: RemovalRequest): Promise<Outcome> {
  const { root, branch } = request;
  return oneAtATime(root, async () => {
    const taken = await takeAway(request);
    if (!taken.ok || branch === null || !branchExists(root, branch)) return taken;
    const deleted = await git(["branch", "-D", "--", branch], { cwd: root, write: true });
    return deleted.code === 0 ? { ok: true } : failed(deleted, "git branch -D");
  });
}

/** Where the worktree of a run is: `<root>/<worktree_dir>/<short id>`. */
export function worktreePath(root: string, worktreeDir: string, short: string): string {
  return join(root, worktreeDir, short);
}

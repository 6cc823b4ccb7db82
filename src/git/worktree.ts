// The worktree of a run: made whole or not at all, removed with its branch.

import { existsSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { branchExists, readHead } from "./inspect.ts";
import { listCheckouts, readLayout } from "./layout.ts";
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

function canonical(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Whether `path` is a checkout of this repository that stands on `branch`. */
export function isWorktree(root: string, path: string, branch: string): boolean {
  const head = readHead(path);
  if (head === null || !("branch" in head) || head.branch !== branch) return false;
  if (readLayout(path)?.commonDir === undefined) return false;
  const wanted = canonical(path);
  return listCheckouts(root).some((checkout) => canonical(checkout.path) === wanted);
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
  if (added.code === 0 && isWorktree(root, path, branch)) return { ok: true };
  await rollBack(root, path, branch);
  return failed(added, "git worktree add");
}

/** Takes away what this very creation made: neither the path nor the branch was there before. */
async function rollBack(root: string, path: string, branch: string): Promise<void> {
  await git(["worktree", "remove", "--force", "--force", "--", path], { cwd: root, write: true });
  removeTree(path);
  await git(["worktree", "prune"], { cwd: root, write: true });
  if (branchExists(root, branch)) await git(["branch", "-D", "--", branch], { cwd: root, write: true });
}

function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The path could not be made, so there is nothing to remove at it.
  }
}

/** Makes branch and worktree, or leaves nothing behind. A directory that is that very worktree counts as made. */
export function addWorktree(request: WorktreeRequest): Promise<Outcome> {
  return oneAtATime(request.root, () => create(request));
}

async function takeAway(root: string, path: string): Promise<Outcome> {
  if (existsSync(path)) {
    const removed = await git(["worktree", "remove", "--force", "--force", "--", path], { cwd: root, write: true });
    if (removed.code !== 0) return failed(removed, "git worktree remove");
  }
  const pruned = await git(["worktree", "prune"], { cwd: root, write: true });
  return pruned.code === 0 ? { ok: true } : failed(pruned, "git worktree prune");
}

export type RemovalRequest = {
  root: string;
  path: string;
  /** The branch to delete too; null keeps it. */
  branch: string | null;
};

/** Removes a worktree and, unless null, its branch; what is gone already is no failure. */
export function removeWorktree({ root, path, branch }: RemovalRequest): Promise<Outcome> {
  return oneAtATime(root, async () => {
    const taken = await takeAway(root, path);
    if (!taken.ok || branch === null || !branchExists(root, branch)) return taken;
    const deleted = await git(["branch", "-D", "--", branch], { cwd: root, write: true });
    return deleted.code === 0 ? { ok: true } : failed(deleted, "git branch -D");
  });
}

/** Where the worktree of a run is: `<root>/<worktree_dir>/<short id>`. */
export function worktreePath(root: string, worktreeDir: string, short: string): string {
  return join(root, worktreeDir, short);
}

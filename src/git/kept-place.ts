// Which git directory speaks for a run's worktree, also when its `.git` file, or git's record of it, is gone.

import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileSource } from "../system/files.ts";
import { readLayout, readLine } from "./layout.ts";

export type KeptPlace = {
  /** The git directory to name explicitly: git must never find the repository around a broken worktree instead. */
  gitDir: string;
  /** Whether that is the worktree's own, with its HEAD and index; else it is the root's, and only the branch is known. */
  own: boolean;
};

/** The real path of `path`, also when its last parts do not exist (any more). */
export function canonicalPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(canonicalPath(parent), basename(path));
  }
}

function usable(gitDir: string, commonDir: string): boolean {
  if (readLine(join(gitDir, "HEAD")) === null) return false;
  const common = readLine(join(gitDir, "commondir"));
  return canonicalPath(common === null ? gitDir : resolve(gitDir, common)) === canonicalPath(commonDir);
}

/** Git's own record of a worktree (`worktrees/<name>`), found by where it says the worktree is; null without one. */
export function readWorktreeRecord(root: string, worktree: string): string | null {
  const layout = readLayout(root);
  if (layout === null) return null;
  const wanted = canonicalPath(join(worktree, ".git"));
  for (const name of fileSource.list(join(layout.commonDir, "worktrees")) ?? []) {
    const gitDir = join(layout.commonDir, "worktrees", name);
    const back = readLine(join(gitDir, "gitdir"));
    if (back !== null && canonicalPath(resolve(gitDir, back)) === wanted) return gitDir;
  }
  return null;
}

function isDirectory(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Whether a worktree's `.git` is missing, unreadable, or names no git directory (any more). A repository in its place is not that. */
export function abandoned(worktree: string): boolean {
  if (isDirectory(join(worktree, ".git"))) return false;
  const layout = readLayout(worktree);
  return layout === null || readLine(join(layout.gitDir, "HEAD")) === null;
}

/** Finds it; the worktree itself need not exist. Throws when the root has no git directory. */
export function placeOf(root: string, worktree: string): KeptPlace {
  const main = readLayout(root);
  if (main === null) throw new Error(`${root} has no git directory`);
  const named = readLayout(worktree)?.gitDir ?? null;
  for (const gitDir of [named, readWorktreeRecord(root, worktree)]) {
    if (gitDir !== null && usable(gitDir, main.commonDir)) return { gitDir, own: true };
  }
  return { gitDir: main.gitDir, own: false };
}

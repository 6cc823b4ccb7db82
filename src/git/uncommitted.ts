// What lies in a worktree and is not on its commit: the paths git calls changed, less those it only thinks are.

import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  type Stats,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readLayout } from "./layout.ts";
import { git, splitNul } from "./run.ts";

const unstaged = " M";
const noMonitor = ["-c", "core.fsmonitor=false"];

type Changed = { code: string; path: string };

async function changedPaths(worktree: string): Promise<Changed[] | null> {
  const how = ["--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=none"];
  const args = [...noMonitor, "status", ...how];
  // A worktree that is none any more must not be taken for a folder of the repository around it.
  const env = { GIT_CEILING_DIRECTORIES: dirname(worktree) };
  const { code, stdout } = await git(args, { cwd: worktree, env });
  if (code !== 0) return null;
  return splitNul(stdout).map((entry) => ({ code: entry.slice(0, 2), path: entry.slice(3) }));
}

function statOf(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

/** Whether two paths hold the same: bytes and permission to execute, or the same link. */
function alike(one: string, other: string): boolean {
  const [left, right] = [statOf(one), statOf(other)];
  if (left === null || right === null) return false;
  if (left.isSymbolicLink() && right.isSymbolicLink()) return readlinkSync(one) === readlinkSync(other);
  if (!left.isFile() || !right.isFile() || left.size !== right.size) return false;
  const executable = (stats: Stats) => (stats.mode & 0o111) !== 0;
  return executable(left) === executable(right) && readFileSync(one).equals(readFileSync(other));
}

/** Files that are as a checkout of the index makes them, though git calls them changed: line ends, filters added later. */
async function asCheckedOut(worktree: string, paths: readonly string[]): Promise<Set<string>> {
  if (paths.length === 0) return new Set();
  const scratch = mkdtempSync(join(tmpdir(), "sloop-checkout-"));
  try {
    const args = ["checkout-index", "--force", "--quiet", "-z", "--stdin", `--prefix=${scratch}/`];
    await git(args, { cwd: worktree, input: paths.map((path) => `${path}\0`).join("") });
    return new Set(paths.filter((path) => alike(join(worktree, path), join(scratch, path))));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * Every path of a worktree that is changed or new against its commit and not ignored; a folder of new files is one path, with
 * `/` at its end. Null when git cannot tell.
 */
export async function listUncommitted(worktree: string): Promise<string[] | null> {
  if (readLayout(worktree) === null) return null;
  const changed = await changedPaths(worktree);
  if (changed === null) return null;
  const doubtful = changed.filter(({ code }) => code === unstaged).map(({ path }) => path);
  const same = await asCheckedOut(worktree, doubtful);
  return changed.map(({ path }) => path).filter((path) => !same.has(path));
}

/** The tree that committing everything in a worktree would make; neither it nor its index is touched. Null when git cannot tell. */
export async function contentTree(worktree: string): Promise<string | null> {
  const layout = readLayout(worktree);
  if (layout === null) return null;
  const scratch = mkdtempSync(join(tmpdir(), "sloop-content-"));
  try {
    const index = join(scratch, "index");
    const own = join(layout.gitDir, "index");
    if (existsSync(own)) copyFileSync(own, index);
    const options = { cwd: worktree, write: true, env: { GIT_INDEX_FILE: index } };
    const added = await git([...noMonitor, "add", "--all"], options);
    if (added.code !== 0) return null;
    const { code, stdout } = await git(["write-tree"], options);
    return code === 0 ? stdout.trim() : null;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The tree of a commit; null when git cannot tell. */
export async function treeOf(cwd: string, commit: string): Promise<string | null> {
  const { code, stdout } = await git(["rev-parse", "--verify", "--quiet", `${commit}^{tree}`], { cwd });
  return code === 0 ? stdout.trim() : null;
}

// What lies in a worktree and is not on its commit. An agent had the worktree before: nothing there is taken at its word.

import { existsSync, lstatSync, mkdtempSync, readFileSync, readlinkSync, rmSync, type Stats } from "node:fs";
import { join } from "node:path";
import { isRegularFile } from "../system/files.ts";
import { copyIndex } from "./index-copy.ts";
import { type AskIndex, listIndex, unhide } from "./kept-files.ts";
import { canonicalPath, readWorktreeRecord } from "./kept-place.ts";
import { readLayout } from "./layout.ts";
import { git, splitNul } from "./run.ts";

/** A path that differs from the commit, and what is there: an object name, "deleted", or null for a repository of its own. */
export type Uncommitted = { path: string; oid: string | null };

/** `content`: the tree that committing everything would make; null when there is nothing to commit. */
export type WorktreeState = { uncommitted: Uncommitted[]; more: boolean; content: string | null };

/** Paths kept of one look: enough to name them and to know them again. */
const mostPaths = 500;
/** After this long git is ended, and could not tell. */
const longestMs = 60_000;

/** What a repository's configuration must not hide from us. */
const honest: readonly string[] = [
  ["core.fsmonitor", "false"],
  ["core.untrackedCache", "false"],
  ["core.trustctime", "true"],
  ["core.checkStat", "default"],
  ["core.ignoreStat", "false"],
].flatMap(([key, value]) => ["-c", `${key}=${value}`]);

type Look = { worktree: string; scratch: string; ask: AskIndex };

type Changed = { code: string; path: string };

async function changedPaths({ ask }: Look): Promise<Changed[] | null> {
  // What is built inside a submodule is no change of it; an edit there is one that no commit of ours can hold.
  const how = ["--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=untracked"];
  const { code, stdout } = await ask(["status", ...how]);
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
async function asCheckedOut({ worktree, scratch, ask }: Look, paths: readonly string[]): Promise<Set<string>> {
  if (paths.length === 0) return new Set();
  const copies = join(scratch, "checkout");
  const args = ["checkout-index", "--force", "--quiet", "-z", "--stdin", `--prefix=${copies}/`];
  await ask(args, paths.map((path) => `${path}\0`).join(""));
  return new Set(paths.filter((path) => alike(join(worktree, path), join(copies, path))));
}

async function contentTree({ ask }: Look): Promise<string | null> {
  if ((await ask(["add", "--all"])).code !== 0) return null;
  const { code, stdout } = await ask(["write-tree"]);
  return code === 0 ? stdout.trim() : null;
}

/** What stands at each path in a tree. */
async function objectsAt({ ask }: Look, tree: string, paths: readonly string[]): Promise<Uncommitted[] | null> {
  const plain = paths.map((path) => path.replace(/\/$/, ""));
  const { code, stdout } = await ask(["ls-tree", "-z", tree, "--", ...plain]);
  if (code !== 0) return null;
  const found = new Map<string, string | null>();
  for (const entry of splitNul(stdout)) {
    const [, mode, oid, path] = /^(\d+) \w+ ([0-9a-f]+)\t(.*)$/s.exec(entry) ?? [];
    // The name of another repository's commit does not tell what lies there.
    if (path !== undefined && oid !== undefined) found.set(path, mode === "160000" ? null : oid);
  }
  return paths.map((path, at) => {
    const oid = found.get(plain[at] ?? "");
    return { path, oid: oid === undefined ? "deleted" : oid };
  });
}

async function lookAt(look: Look): Promise<WorktreeState | null> {
  const entries = await listIndex(look.ask);
  if (entries === null) return null;
  await unhide(look, entries);
  const changed = await changedPaths(look);
  if (changed === null) return null;
  const doubtful = changed.filter(({ code }) => code === " M").map(({ path }) => path);
  const same = await asCheckedOut(look, doubtful);
  const paths = changed.map(({ path }) => path).filter((path) => !same.has(path));
  if (paths.length === 0) return { uncommitted: [], more: false, content: null };
  const content = await contentTree(look);
  const kept = paths.slice(0, mostPaths);
  const known = content === null ? null : await objectsAt(look, content, kept);
  const uncommitted = known ?? kept.map((path) => ({ path, oid: null }));
  return { uncommitted, more: kept.length < paths.length, content };
}

/**
 * Every path of a run's worktree that is changed or new against its commit and not ignored; a folder of new files is one path,
 * with `/` at its end. Neither the worktree nor its index is touched. Null when git cannot tell, also within a minute, or the
 * directory is not the worktree any more that `root` knows.
 */
export async function readWorktreeState(root: string, worktree: string): Promise<WorktreeState | null> {
  const gitDir = readWorktreeRecord(root, worktree);
  const own = readLayout(worktree)?.gitDir;
  if (gitDir === null || own === undefined || canonicalPath(own) !== canonicalPath(gitDir)) return null;
  // Beside the worktree's own index: what a kill leaves there goes with the worktree.
  let scratch: string | null = null;
  try {
    scratch = mkdtempSync(join(gitDir, "sloop-look-"));
    const index = join(scratch, "index");
    // Anything else there would be waited for, by us and by git.
    if (existsSync(join(gitDir, "index"))) {
      if (!isRegularFile(join(gitDir, "index"))) return null;
      copyIndex(join(gitDir, "index"), index);
    }
    const env = {
      GIT_DIR: gitDir,
      GIT_WORK_TREE: worktree,
      GIT_INDEX_FILE: index,
      GIT_NO_REPLACE_OBJECTS: "1",
      GIT_LITERAL_PATHSPECS: "1",
    };
    const ask: AskIndex = (args, input) =>
      git([...honest, ...args], {
        cwd: worktree,
        write: true,
        env,
        timeoutMs: longestMs,
        passing: true,
        ...(input === undefined ? {} : { input }),
      });
    return await lookAt({ worktree, scratch, ask });
  } catch {
    // No room, or no right, to look.
    return null;
  } finally {
    if (scratch !== null) rmSync(scratch, { recursive: true, force: true });
  }
}

/** The tree of a commit; null when git cannot tell. */
export async function treeOf(cwd: string, commit: string): Promise<string | null> {
  const { code, stdout } = await git(["rev-parse", "--verify", "--quiet", `${commit}^{tree}`], { cwd });
  return code === 0 ? stdout.trim() : null;
}

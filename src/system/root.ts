// Which directory is the repository (cli.md 8). Asked by every command, so it does without `node:fs`, which takes a tenth of
// a command's time to load.

import { dirname, join, resolve } from "node:path";
import { configFile } from "./config-file.ts";

const defaultWorktreeDir = ".worktrees";

/** Whether a regular file stands at `path`, links followed. */
async function isFile(path: string): Promise<boolean> {
  const file = Bun.file(path);
  // A pipe exists, too; its size is not finite.
  return (await file.exists()) && Number.isFinite(file.size);
}

/** `directory` and everything above it that holds a configuration, nearest first. */
async function candidates(directory: string): Promise<string[]> {
  const found: string[] = [];
  for (let at = directory; ; at = dirname(at)) {
    if (await isFile(join(at, configFile))) found.push(at);
    if (dirname(at) === at) return found;
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await Bun.file(path).text();
  } catch {
    return "";
  }
}

/**
 * The nearest directory at or above `directory` (canonical) that holds the config file and is no run worktree of a farther one;
 * null without one. `worktreeDirOf` reads `worktree_dir` out of a config's text, null when it is not there or not readable.
 */
export async function findRoot(
  directory: string,
  worktreeDirOf: (configText: string) => string | null | Promise<string | null>,
): Promise<string | null> {
  const found = await candidates(directory);
  for (const [index, candidate] of found.entries()) {
    if (!(await isRunWorktree(candidate, found.slice(index + 1), worktreeDirOf))) return candidate;
  }
  return null;
}

async function isRunWorktree(
  candidate: string,
  farther: readonly string[],
  worktreeDirOf: (configText: string) => string | null | Promise<string | null>,
): Promise<boolean> {
  if (farther.length === 0 || !(await isFile(join(candidate, ".git")))) return false;
  for (const at of farther) {
    const worktreeDir = (await worktreeDirOf(await readText(join(at, configFile)))) ?? defaultWorktreeDir;
    if (resolve(at, worktreeDir) === dirname(candidate)) return true;
  }
  return false;
}

// Where git keeps things for one checkout: its own directory, the one shared by all worktrees, and the worktrees themselves.

import { lstatSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileSource, readIfPresent } from "../system/files.ts";

export type GitLayout = {
  /** HEAD, index and operations in progress of this checkout. */
  gitDir: string;
  /** References and objects of the repository. */
  commonDir: string;
};

/** The text of a file of git's; null when it cannot be read. A pipe or device that an agent put there keeps nobody waiting. */
export function readText(path: string): string | null {
  try {
    const bytes = readIfPresent(path);
    return bytes === null ? null : new TextDecoder().decode(bytes);
  } catch {
    return null;
  }
}

/** The same without the blanks around it. */
export function readLine(path: string): string | null {
  return readText(path)?.trim() ?? null;
}

function gitDirOf(checkout: string): string | null {
  const path = join(checkout, ".git");
  try {
    if (lstatSync(path).isDirectory()) return path;
  } catch {
    return null;
  }
  const line = readLine(path);
  if (line === null) return null;
  // A symbolic link to a git directory is read as a directory, so it has no such line.
  if (!line.startsWith("gitdir: ")) return null;
  return resolve(checkout, line.slice("gitdir: ".length));
}

/** The git directories of a checkout (its top directory); null when it has none. */
export function readLayout(checkout: string): GitLayout | null {
  const gitDir = gitDirOf(checkout) ?? linkedDirectory(join(checkout, ".git"));
  if (gitDir === null) return null;
  const common = readLine(join(gitDir, "commondir"));
  return { gitDir, commonDir: common === null ? gitDir : resolve(gitDir, common) };
}

function linkedDirectory(path: string): string | null {
  return readLine(join(path, "HEAD")) === null ? null : path;
}

/** Whether `<root>/.git` is there at all. */
export function gitDirectoryPresent(root: string): boolean {
  try {
    lstatSync(join(root, ".git"));
    return true;
  } catch {
    return false;
  }
}

export type Checkout = { path: string; gitDir: string };

/** A repository without a working tree of its own may still have a `.git` directory and linked worktrees. */
function isBare(commonDir: string): boolean {
  return /^\s*bare\s*=\s*true\s*$/im.test(readLine(join(commonDir, "config")) ?? "");
}

function mainCheckout(root: string, { gitDir, commonDir }: GitLayout): Checkout[] {
  if (isBare(commonDir)) return [];
  if (commonDir === gitDir) return [{ path: root, gitDir }];
  return basename(commonDir) === ".git" ? [{ path: dirname(commonDir), gitDir: commonDir }] : [];
}

/** Every checkout of a repository whose directory is still there: the main one, then the linked ones. */
export function listCheckouts(root: string): Checkout[] {
  const layout = readLayout(root);
  if (layout === null) return [];
  const names = fileSource.list(join(layout.commonDir, "worktrees")) ?? [];
  const linked = names.flatMap((name) => {
    const gitDir = join(layout.commonDir, "worktrees", name);
    const back = readLine(join(gitDir, "gitdir"));
    return back === null ? [] : [{ path: dirname(resolve(gitDir, back)), gitDir }];
  });
  return [...mainCheckout(root, layout), ...linked].filter(({ path }) => gitDirectoryPresent(path));
}

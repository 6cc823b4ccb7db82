// Which of somebody's files a merge would overwrite, known before git begins.

import { type Change, pathsHolding, statAt, treeChanges } from "./changes.ts";
import { git, splitNul } from "./run.ts";

export type OverwriteQuestion = {
  checkout: string;
  /** What is checked out, and the commit or tree that a merge would bring. */
  from: string;
  to: string;
};

/** What lies where a path's folders have to be, and is none: the first such, or null. */
function blockedAbove(checkout: string, path: string): string | null {
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) {
    const folder = path.slice(0, at);
    const found = statAt(checkout, folder);
    if (found === null) return null;
    if (!found.isDirectory()) return folder;
  }
  return null;
}

/** What of a folder that is to make way for a file is nowhere in git. */
async function strangersIn(checkout: string, folder: string): Promise<string[]> {
  const { code, stdout } = await git(["ls-files", "--others", "-z", "--", `:(literal)${folder}`], { cwd: checkout });
  return code === 0 ? splitNul(stdout) : [folder];
}

type Added = { path: string; entry: NonNullable<Change["to"]> };

/** Files that git does not know, ignored ones too, where the merge would put its own: git overwrites ignored ones silently. */
async function strangersInTheWay(checkout: string, changes: readonly Change[]): Promise<string[]> {
  const known = new Set(changes.filter(({ from }) => from !== null).map(({ path }) => path));
  const blocked = new Set<string>();
  const there: Added[] = [];
  for (const { path, from, to } of changes) {
    if (from !== null || to === null) continue;
    const above = blockedAbove(checkout, path);
    // A file of git's own that becomes a folder is no stranger.
    if (above !== null && !known.has(above)) blocked.add(above);
    const found = above === null ? statAt(checkout, path) : null;
    if (found?.isDirectory() === true) for (const one of await strangersIn(checkout, path)) blocked.add(one);
    else if (found !== null) there.push({ path, entry: to });
  }
  const same = await pathsHolding(checkout, there);
  for (const { path } of there) if (!same.has(path)) blocked.add(path);
  return [...blocked];
}

/**
 * The edited, untracked or ignored files that a merge would overwrite; null when git cannot tell. Git refuses such a merge
 * too (not for ignored files), but only after putting the edits away and back, which a kill in between would interrupt.
 */
export async function overwrittenPaths({ checkout, from, to }: OverwriteQuestion): Promise<string[] | null> {
  const status = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];
  const [seen, changes] = await Promise.all([git(status, { cwd: checkout }), treeChanges(checkout, from, to)]);
  if (seen.code !== 0 || changes === null) return null;
  const edited = new Set(splitNul(seen.stdout).map((line) => line.slice("XY ".length)));
  const hit = changes.flatMap(({ path }) => (edited.has(path) ? [path] : []));
  const strangers = await strangersInTheWay(checkout, changes);
  return [...new Set([...hit, ...strangers])];
}

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
type Found = { strangers: string[]; compare: Added[] };

/** Where one file would be added: what certainly is in its way, and what has to be compared. */
async function lookAt(checkout: string, added: Added, known: ReadonlySet<string>): Promise<Found> {
  const above = blockedAbove(checkout, added.path);
  // A file of git's own that becomes a folder is no stranger.
  if (above !== null) return { strangers: known.has(above) ? [] : [above], compare: [] };
  const found = statAt(checkout, added.path);
  if (found === null) return { strangers: [], compare: [] };
  if (found.isDirectory()) return { strangers: await strangersIn(checkout, added.path), compare: [] };
  return { strangers: [], compare: [added] };
}

/** Files that git does not know, ignored ones too, where the merge would put its own: git overwrites ignored ones silently. */
async function strangersInTheWay(checkout: string, changes: readonly Change[]): Promise<string[]> {
  const known = new Set(changes.flatMap(({ path, from }) => (from === null ? [] : [path])));
  const added = changes.flatMap(({ path, from, to }) => (from === null && to !== null ? [{ path, entry: to }] : []));
  const strangers: string[] = [];
  const compare: Added[] = [];
  for (const one of added) {
    const found = await lookAt(checkout, one, known);
    strangers.push(...found.strangers);
    compare.push(...found.compare);
  }
  const same = await pathsHolding(checkout, compare);
  return [...strangers, ...compare.flatMap(({ path }) => (same.has(path) ? [] : [path]))];
}

/**
 * The edited, untracked or ignored files that a merge would overwrite; null when git cannot tell. Git refuses such a merge
 * too (not for ignored files), but only after putting the edits away and back, which a kill in between would interrupt.
 */
export async function overwrittenPaths({ checkout, from, to }: OverwriteQuestion): Promise<string[] | null> {
  const status = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];
  const [seen, changes] = await Promise.all([git(status, { cwd: checkout }), treeChanges(checkout, from, to)]);
  if (seen.code !== 0 || changes === null) return null;
  // What is only staged is not in the working tree's way; a merge does not begin over it, and a checkout left behind shows it.
  const lines = splitNul(seen.stdout).filter((line) => line[1] !== " ");
  const edited = new Set(lines.map((line) => line.slice("XY ".length)));
  const hit = changes.flatMap(({ path }) => (edited.has(path) ? [path] : []));
  const strangers = await strangersInTheWay(checkout, changes);
  return [...new Set([...hit, ...strangers])];
}

// Fills a temporary index with everything in a worktree that must not be lost, whatever a filter or a nested repository says.

import { existsSync, lstatSync, readdirSync, readlinkSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";
import { readHeadCommit } from "./inspect.ts";
import { type GitResult, git, splitNul } from "./run.ts";

/** Runs git on the worktree with the temporary index. */
export type AskIndex = (args: string[], input?: string | Uint8Array) => Promise<GitResult>;

export type Filling = {
  ask: AskIndex;
  worktree: string;
  /** The commit the index is compared with; null when there is none. */
  base: string | null;
  /** Whether what is missing in the worktree was deleted there. Else nobody can tell, and it stays in the index. */
  deletions: boolean;
};

/** No hook and no file watcher of the repository takes part in what we keep. */
export const quiet: readonly string[] = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];

/** Git's output as it is. Throws what git complained about. */
export async function mustSay(result: Promise<GitResult>): Promise<string> {
  const { code, stdout, stderr } = await result;
  if (code !== 0) throw new Error(`git could not keep uncommitted files: ${stderr.trim()}`);
  return stdout;
}

export type Entry = { tag: string; mode: string; oid: string; path: string };

/** What an index holds; null when git cannot read it. */
export async function listIndex(ask: AskIndex): Promise<Entry[] | null> {
  const { code, stdout } = await ask(["ls-files", "-v", "-s", "-z"]);
  if (code !== 0) return null;
  return splitNul(stdout).map((line) => {
    const tab = line.indexOf("\t");
    const [tag = "", mode = "", oid = ""] = line.slice(0, tab).split(" ");
    return { tag, mode, oid, path: line.slice(tab + 1) };
  });
}

/** Has an index look again at files that it was told to overlook, and that are there: an edit of one would go unseen. Throws when git cannot. */
export async function unhide(
  { ask, worktree }: Pick<Filling, "ask" | "worktree">,
  entries: readonly Entry[],
): Promise<void> {
  const hidden = entries.filter(({ tag, path }) => /^(?:[a-z]|S)$/.test(tag) && info(worktree, path) !== null);
  if (hidden.length === 0) return;
  const names = hidden.map(({ path }) => `${path}\0`).join("");
  for (const flag of ["--no-assume-unchanged", "--no-skip-worktree"]) {
    await mustSay(ask(["update-index", flag, "-z", "--stdin"], names));
  }
}

/** What is at a path; null when nothing is. */
function info(worktree: string, path: string): Stats | null {
  try {
    return lstatSync(join(worktree, path));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw error;
  }
}

/** Every file below a folder, git's own left out. */
function walk(folder: string, prefix = ""): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === ".git") return [];
    const path = prefix + entry.name;
    return entry.isDirectory() ? walk(join(folder, entry.name), `${path}/`) : [path];
  });
}

/** The files of a repository inside the worktree that it does not ignore itself; all of them when git cannot tell. */
async function listNested(worktree: string, folder: string): Promise<string[]> {
  const cwd = join(worktree, folder);
  const args = [...quiet, "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const { code, stdout } = await git(args, { cwd, env: { GIT_CEILING_DIRECTORIES: dirname(cwd) } });
  const names = code === 0 ? splitNul(stdout) : walk(cwd);
  const found: string[] = [];
  for (const name of new Set(names)) {
    const path = `${folder}/${name.replace(/\/$/, "")}`;
    const there = info(worktree, path);
    if (there === null && !unreadableName(path)) continue;
    if (there?.isDirectory()) found.push(...(await listNested(worktree, path)));
    else found.push(path);
  }
  return found;
}

/** Git's names are bytes. One that is no UTF-8 did not survive being read as text, so its file cannot be found by it. */
function unreadableName(path: string): boolean {
  return path.includes("\uFFFD");
}

/** One line of `--stdin-paths`. */
function quoted(path: string): string {
  if (!/^"|\n/.test(path)) return path;
  return `"${path.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`;
}

/** Stores files as they are on disk; their object names, null for one that could not be stored. */
async function hashFiles(ask: AskIndex, paths: readonly string[]): Promise<(string | null)[]> {
  const oids: (string | null)[] = [];
  while (oids.length < paths.length) {
    const rest = paths.slice(oids.length);
    const input = rest.map((path) => `${quoted(path)}\n`).join("");
    const { code, stdout } = await ask(["hash-object", "-w", "--no-filters", "--stdin-paths"], input);
    oids.push(...stdout.split("\n").filter((line) => line !== ""));
    // It stops at the first file it cannot store.
    if (oids.length < paths.length || code !== 0) oids.push(null);
  }
  return oids.slice(0, paths.length);
}

async function hashLink({ ask, worktree }: Filling, path: string): Promise<string | null> {
  const target = readlinkSync(join(worktree, path), { encoding: "buffer" });
  const { code, stdout } = await ask(["hash-object", "-w", "--stdin"], target);
  return code === 0 ? stdout.trim() : null;
}

type Stored = { mode: string; oid: string | null; path: string };

async function hashAll(filling: Filling, paths: readonly string[]): Promise<Stored[]> {
  const files: Stored[] = [];
  const stored: Stored[] = [];
  for (const path of paths) {
    const there = info(filling.worktree, path);
    if (there === null) stored.push({ mode: "", oid: null, path });
    else if (there.isSymbolicLink()) stored.push({ mode: "120000", oid: await hashLink(filling, path), path });
    else if (there.isFile()) files.push({ mode: (there.mode & 0o100) !== 0 ? "100755" : "100644", oid: null, path });
  }
  const oids = await hashFiles(
    filling.ask,
    files.map(({ path }) => path),
  );
  return [...stored, ...files.map((file, index) => ({ ...file, oid: oids[index] ?? null }))];
}

async function forget(ask: AskIndex, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return;
  await mustSay(ask(["update-index", "--force-remove", "-z", "--stdin"], paths.map((path) => `${path}\0`).join("")));
}

/** Puts files into the index byte by byte, past every filter; those that could not be stored. */
async function storeRaw(filling: Filling, paths: readonly string[]): Promise<string[]> {
  const entries = await hashAll(filling, paths);
  const lines = entries.flatMap(({ mode, oid, path }) => (oid === null ? [] : [`${mode} ${oid} 0\t${path}\0`]));
  if (lines.length > 0) await mustSay(filling.ask(["update-index", "-z", "--index-info"], lines.join("")));
  return entries.filter(({ oid }) => oid === null).map(({ path }) => path);
}

async function expand(worktree: string, paths: readonly string[]): Promise<string[]> {
  const files = new Set<string>();
  for (const path of paths) {
    const folder = path.replace(/\/$/, "");
    if (!info(worktree, folder)?.isDirectory()) files.add(path);
    else for (const file of await listNested(worktree, folder)) files.add(file);
  }
  return [...files];
}

/** Whether a path of the index is still a file, a link or a repository; a plain folder in its place is listed by its files. */
function holdsContent(worktree: string, path: string): boolean {
  const there = info(worktree, path);
  return there !== null && (!there.isDirectory() || existsSync(join(worktree, path, ".git")));
}

/** What `git add` did not get at: file by file. */
async function storeRest(filling: Filling): Promise<string[]> {
  const { ask, worktree } = filling;
  const changed = new Set(splitNul(await mustSay(ask(["diff-files", "-z", "--name-only", "--ignore-submodules=all"]))));
  const others = splitNul(await mustSay(ask(["ls-files", "-z", "--others", "--exclude-standard"])));
  const gone = [...changed].filter((path) => !unreadableName(path) && !holdsContent(worktree, path));
  if (filling.deletions) await forget(ask, gone);
  for (const path of gone) changed.delete(path);
  return await storeRaw(filling, await expand(worktree, [...changed, ...others]));
}

/** Whether a nested repository has something that is nowhere else: an edit, or a commit that no remote branch has. */
async function precious(worktree: string, { path, oid }: Entry, baseOid: string | undefined): Promise<boolean> {
  const cwd = join(worktree, path);
  if (!existsSync(join(cwd, ".git"))) return walk(cwd).length > 0;
  const head = readHeadCommit(cwd);
  if (head === null || head !== oid || head !== baseOid) return true;
  const status = await git([...quiet, "status", "--porcelain", "--ignore-submodules=none"], { cwd });
  if (status.code !== 0 || status.stdout !== "") return true;
  const pushed = await git(["for-each-ref", "--count=1", "--contains", head, "refs/remotes"], { cwd });
  return pushed.code !== 0 || pushed.stdout === "";
}

async function linksOfBase({ ask, base }: Filling, paths: readonly string[]): Promise<Map<string, string>> {
  if (base === null) return new Map();
  const listed = await mustSay(ask(["--literal-pathspecs", "ls-tree", "-z", base, "--", ...paths]));
  return new Map(
    splitNul(listed).map((line) => {
      const tab = line.indexOf("\t");
      return [line.slice(tab + 1), line.slice(0, tab).split(" ")[2] ?? ""] as const;
    }),
  );
}

/** A link to another repository's commit keeps nothing: the files of that repository take its place. */
async function storeNested(filling: Filling, entries: readonly Entry[]): Promise<string[]> {
  const { ask, worktree } = filling;
  const links = entries.filter(({ mode, path }) => mode === "160000" && info(worktree, path)?.isDirectory());
  if (links.length === 0) return [];
  const paths = links.map(({ path }) => path);
  const inBase = await linksOfBase(filling, paths);
  const missed: string[] = [];
  for (const link of links) {
    if (!(await precious(worktree, link, inBase.get(link.path)))) continue;
    const files = await listNested(worktree, link.path);
    if (files.length === 0) continue;
    await forget(ask, [link.path]);
    missed.push(...(await storeRaw(filling, files)));
  }
  return missed;
}

/** An index that git cannot read says nothing: what is in the worktree is compared with the commit instead. */
async function openIndex({ ask, base }: Filling, reset: () => void): Promise<Entry[]> {
  const entries = await listIndex(ask);
  if (entries !== null) return entries;
  reset();
  if (base !== null) await mustSay(ask(["read-tree", base]));
  return [];
}

/**
 * Brings the index in line with the worktree. `reset` takes away the index it began with, when git cannot read that.
 * Returns the paths that could not be stored. Throws when git cannot work on it at all.
 */
export async function fillIndex(filling: Filling, reset: () => void): Promise<string[]> {
  const { ask, deletions } = filling;
  await unhide(filling, await openIndex(filling, reset));
  const added = await ask(["add", deletions ? "--all" : "--no-all", "--ignore-errors", "--", "."]);
  const missed = added.code === 0 ? [] : await storeRest(filling);
  return [...missed, ...(await storeNested(filling, (await listIndex(ask)) ?? []))];
}

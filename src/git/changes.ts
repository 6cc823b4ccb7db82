// What a merge would change in a checkout, path by path, and which of it lies there already.

import { lstatSync, readFileSync, readlinkSync, type Stats } from "node:fs";
import { join } from "node:path";
import { git, gitBytes, splitNul } from "./run.ts";

/** A file, symbolic link or submodule as a tree holds it. */
export type Entry = { mode: string; oid: string };
export type Change = { path: string; from: Entry | null; to: Entry | null };

const absent = "000000";
const link = "120000";

function entry(mode: string, oid: string): Entry | null {
  return mode === absent ? null : { mode, oid };
}

/** What lies between two commits or trees; null when git cannot tell. */
export async function treeChanges(cwd: string, from: string, to: string): Promise<Change[] | null> {
  const args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none", from, to, "--"];
  const { code, stdout } = await git(args, { cwd });
  if (code !== 0) return null;
  const parts = splitNul(stdout);
  const changes: Change[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [fromMode = "", toMode = "", fromOid = "", toOid = ""] = (parts[at] ?? "").slice(1).split(" ");
    changes.push({ path: parts[at + 1] ?? "", from: entry(fromMode, fromOid), to: entry(toMode, toOid) });
  }
  return changes;
}

/** What lies at a path, a symbolic link itself; null when nothing does. */
export function statAt(checkout: string, path: string): Stats | null {
  try {
    return lstatSync(join(checkout, path));
  } catch {
    return null;
  }
}

/** The object names files would get if they were added now. One that git cannot read is left out. */
async function hashFiles(checkout: string, paths: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  // Git takes one path a line, and unquotes what begins with a quote.
  const awkward = (path: string) => path.includes("\n") || path.startsWith('"');
  const plain = paths.filter((path) => !awkward(path));
  const input = plain.map((path) => `${path}\n`).join("");
  const all = await git(["hash-object", "--stdin-paths"], { cwd: checkout, input });
  const oids = all.stdout.split("\n");
  if (all.code === 0) plain.forEach((path, at) => void found.set(path, oids[at] ?? ""));
  for (const path of all.code === 0 ? paths.filter(awkward) : paths) {
    const one = await git(["hash-object", "--", path], { cwd: checkout });
    if (one.code === 0) found.set(path, one.stdout.trim());
  }
  return found;
}

async function linkHolds(checkout: string, path: string, oid: string): Promise<boolean> {
  const { code, stdout } = await git(["cat-file", "blob", oid], { cwd: checkout });
  return code === 0 && stdout === readlinkSync(join(checkout, path));
}

/** Which of these paths hold in the checkout what the entry says, its mode aside. Submodules never do. */
export async function pathsHolding(
  checkout: string,
  wanted: readonly { path: string; entry: Entry }[],
): Promise<Set<string>> {
  const files = wanted.filter(
    ({ path, entry: { mode } }) => mode !== link && statAt(checkout, path)?.isFile() === true,
  );
  const hashes =
    files.length === 0
      ? new Map()
      : await hashFiles(
          checkout,
          files.map(({ path }) => path),
        );
  const held = new Set(files.filter(({ path, entry: { oid } }) => hashes.get(path) === oid).map(({ path }) => path));
  for (const { path, entry: wants } of wanted) {
    if (wants.mode !== link || statAt(checkout, path)?.isSymbolicLink() !== true) continue;
    if (await linkHolds(checkout, path, wants.oid)) held.add(path);
  }
  return held;
}

/** Whether a file is the beginning of a blob and no more: git was killed while it wrote it. */
export async function isBeginningOf(checkout: string, path: string, oid: string): Promise<boolean> {
  const found = statAt(checkout, path);
  if (found === null || !found.isFile()) return false;
  const blob = await gitBytes(["cat-file", "blob", oid], checkout);
  if (blob === null || blob.length <= found.size) return false;
  return found.size === 0 || blob.subarray(0, found.size).equals(readFileSync(join(checkout, path)));
}

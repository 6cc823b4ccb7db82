// What a repository says: where HEAD and branches stand, what a branch gained. Git's files are read where that is enough.

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { wholeFileLimit } from "../system/files.ts";
import { type GitLayout, readLayout, readLine, readText } from "./layout.ts";
import { git, gitNow, lastLine } from "./run.ts";

const objectName = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const symbolic = "ref: ";
const branches = "refs/heads/";

/** Other ways to store references than files cannot be read without git. */
function storesFiles(layout: GitLayout): boolean {
  return !existsSync(join(layout.commonDir, "reftable"));
}

function readPacked(commonDir: string, reference: string): string | null {
  const text = readText(join(commonDir, "packed-refs"));
  if (text === null) return null;
  const at = text.indexOf(` ${reference}\n`);
  if (at < 40) return null;
  const oid = text.slice(text.lastIndexOf("\n", at - 1) + 1, at);
  return objectName.test(oid) ? oid : null;
}

/** A repository of hundreds of thousands of references is git's to read. */
function packedTooLarge(commonDir: string): boolean {
  const found = statSync(join(commonDir, "packed-refs"), { throwIfNoEntry: false });
  return found?.isFile() === true && found.size > wholeFileLimit;
}

function readStored(commonDir: string, reference: string, depth = 0): string | null {
  const loose = readLine(join(commonDir, reference));
  if (loose === null || loose === "") return readPacked(commonDir, reference);
  if (objectName.test(loose)) return loose;
  // A branch may be a symbolic reference to another; git follows five.
  if (!loose.startsWith(symbolic) || depth >= 5) return null;
  return readStored(commonDir, loose.slice(symbolic.length), depth + 1);
}

function resolveReference(root: string, layout: GitLayout, reference: string): string | null {
  if (storesFiles(layout)) {
    const stored = readStored(layout.commonDir, reference);
    if (stored !== null || !packedTooLarge(layout.commonDir)) return stored;
  }
  const { code, stdout } = gitNow(
    ["rev-parse", "--verify", "--quiet", "--end-of-options", `${reference}^{commit}`],
    root,
  );
  return code === 0 ? stdout.trim() : null;
}

/** The commit a full reference name (`refs/...`) stands at; null when it does not exist or there is no repository. */
export function readReference(root: string, reference: string): string | null {
  const layout = readLayout(root);
  return layout === null ? null : resolveReference(root, layout, reference);
}

/** The commit a local branch stands at; null when there is no such branch. */
export function readBranchTip(root: string, branch: string): string | null {
  return readReference(root, branches + branch);
}

/** Whether a local branch exists. */
export function branchExists(root: string, branch: string): boolean {
  return readBranchTip(root, branch) !== null;
}

/** Where the HEAD of a checkout points: a branch, or a commit of its own. */
export type Head = { branch: string } | { oid: string } | null;

/** Reads a checkout's HEAD; null when it cannot be read. A branch need not exist yet. */
export function readHead(checkout: string): Head {
  const layout = readLayout(checkout);
  if (layout === null) return null;
  if (!storesFiles(layout)) return askHead(checkout);
  const line = readLine(join(layout.gitDir, "HEAD"));
  if (line === null) return null;
  if (line.startsWith(symbolic + branches)) return { branch: line.slice(symbolic.length + branches.length) };
  return objectName.test(line) ? { oid: line } : null;
}

function askHead(checkout: string): Head {
  const named = gitNow(["symbolic-ref", "--quiet", "HEAD"], checkout);
  const name = named.stdout.trim();
  if (named.code === 0 && name.startsWith(branches)) return { branch: name.slice(branches.length) };
  const commit = gitNow(["rev-parse", "--verify", "--quiet", "HEAD"], checkout);
  return commit.code === 0 ? { oid: commit.stdout.trim() } : null;
}

/** The commit a checkout stands on; null when it has none yet or cannot be read. */
export function readHeadCommit(checkout: string): string | null {
  const head = readHead(checkout);
  if (head === null) return null;
  return "oid" in head ? head.oid : readBranchTip(checkout, head.branch);
}

export type Target = { branch: string; tip: string } | { problem: string };

/** The branch runs start from and merge into (engine.md 11.6): `mergeTarget` if set, else the branch the root's HEAD names. */
export function readTarget(root: string, mergeTarget: string | null): Target {
  const head: Head = mergeTarget === null ? readHead(root) : { branch: mergeTarget };
  if (head === null || "oid" in head) return { problem: "HEAD is detached" };
  const tip = readBranchTip(root, head.branch);
  if (tip !== null) return { branch: head.branch, tip };
  return { problem: mergeTarget === null ? "HEAD has no commit yet" : `branch \`${mergeTarget}\` is missing` };
}

export type CommitObservation = { complete: boolean; oids: string[] };

const unknown: CommitObservation = { complete: false, oids: [] };

/** The commit a branch was created at, by the oldest entry of its reflog; null when that is not known (any more). */
export async function readBaseline(root: string, branch: string): Promise<string | null> {
  const layout = readLayout(root);
  if (layout === null) return null;
  if (!storesFiles(layout)) {
    const { code, stdout } = await git(["reflog", "show", "--format=%H", branches + branch, "--"], { cwd: root });
    return code === 0 ? lastLine(stdout, "") || null : null;
  }
  const first = readLine(join(layout.commonDir, "logs", branches, branch))?.split("\n", 1)[0] ?? "";
  const oid = first.split(" ")[1] ?? "";
  return objectName.test(oid) ? oid : null;
}

/** The commits a branch gained since it was created, oldest first (engine.md 11.2). Incomplete when that cannot be known. */
export async function observeCommits(root: string, branch: string): Promise<CommitObservation> {
  const baseline = await readBaseline(root, branch);
  const tip = readBranchTip(root, branch);
  if (baseline === null || tip === null) return unknown;
  if (baseline === tip) return { complete: true, oids: [] };
  const { code, stdout } = await git(["rev-list", "--reverse", `${baseline}..${tip}`, "--"], { cwd: root });
  if (code !== 0) return unknown;
  return { complete: true, oids: stdout.split("\n").filter((line) => line !== "") };
}

/** Whether commit `a` is `b` or an ancestor of it; null when git cannot tell. */
export async function isAncestor(root: string, a: string, b: string): Promise<boolean | null> {
  if (a === b) return true;
  const { code } = await git(["merge-base", "--is-ancestor", a, b], { cwd: root });
  return code === 0 ? true : code === 1 ? false : null;
}

/** A commit both come from, which is one of them when the other contains it; "" when nothing is common, null when git cannot tell. */
export async function mergeBase(root: string, a: string, b: string): Promise<string | null> {
  if (a === b) return a;
  const { code, stdout } = await git(["merge-base", a, b], { cwd: root });
  return code === 0 || code === 1 ? stdout.trim() : null;
}

export { gitDirectoryPresent } from "./layout.ts";

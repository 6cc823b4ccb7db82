// Whether the work of a branch has landed on another: as it is, or as commits that change the same (files.md 13.4).

import { git, sloopIdentity } from "./run.ts";

export type Branch = { name: string; tip: string };

const branchPrefix = "refs/heads/";

function failure(what: string, stderr: string): Error {
  return new Error(`${what}: ${stderr.trim().split("\n").at(-1) ?? "git failed"}`);
}

async function listReferences(root: string, more: readonly string[]): Promise<Branch[]> {
  const args = ["for-each-ref", "--format=%(objectname) %(refname)", ...more, branchPrefix];
  const { code, stdout, stderr } = await git(args, { cwd: root });
  if (code !== 0) throw failure("git cannot list branches", stderr);
  return stdout.split("\n").flatMap((line) => {
    const at = line.indexOf(" ");
    return at < 0 ? [] : [{ tip: line.slice(0, at), name: line.slice(at + 1 + branchPrefix.length) }];
  });
}

/** Every local branch. Rejects with an Error when git cannot tell. */
export async function listBranches(root: string): Promise<Branch[]> {
  return await listReferences(root, []);
}

/** Names of the local branches whose tip `commit` contains. Rejects with an Error when git cannot tell. */
export async function listMergedBranches(root: string, commit: string): Promise<Set<string>> {
  return new Set((await listReferences(root, [`--merged=${commit}`])).map(({ name }) => name));
}

/** One line a commit of `tip` that `target` lacks: `-` has a patch-equivalent there, `+` has none. Null: git cannot tell. */
async function cherry(root: string, target: string, tip: string): Promise<string[] | null> {
  const { code, stdout } = await git(["cherry", target, tip], { cwd: root });
  return code === 0 ? stdout.split("\n").filter((line) => line !== "") : null;
}

/** All of `tip`'s work as one commit; it belongs to no branch. Null: there is no common history, or git cannot make it. */
async function squash(root: string, target: string, tip: string): Promise<string | null> {
  const base = await git(["merge-base", target, tip], { cwd: root });
  if (base.code !== 0) return null;
  const args = [...sloopIdentity, "commit-tree", `${tip}^{tree}`, "-p", base.stdout.trim(), "-m", "sloop: squashed"];
  const { code, stdout } = await git(args, { cwd: root, write: true });
  return code === 0 ? stdout.trim() : null;
}

function landedWhole(lines: readonly string[] | null): boolean {
  return lines?.every((line) => line.startsWith("-")) === true;
}

/**
 * Whether every commit that `tip` has and `target` lacks is there under another name, one by one (a rebase) or all as one
 * (a squash). False where git cannot tell.
 */
export async function landedOtherwise(root: string, target: string, tip: string): Promise<boolean> {
  const lines = await cherry(root, target, tip);
  if (lines === null || landedWhole(lines)) return lines !== null;
  if (lines.length < 2) return false;
  const whole = await squash(root, target, tip);
  if (whole === null) return false;
  const squashed = await cherry(root, target, whole);
  return squashed?.length === 1 && landedWhole(squashed);
}

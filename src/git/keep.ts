// Losing nothing at the end of a run: uncommitted files and orphaned tips become commits on hidden references.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRegularFile } from "../system/files.ts";
import { copyIndex } from "./index-copy.ts";
import { readBranchTip, readReference } from "./inspect.ts";
import { type AskIndex, fillIndex, mustSay, quiet } from "./kept-files.ts";
import { type KeptPlace, placeOf } from "./kept-place.ts";
import { git, longestGitMs, sloopIdentityVariables, splitNul } from "./run.ts";

/** The hidden reference of a run's uncommitted files. */
export function wipReference(runId: string): string {
  return `refs/sloop/wip/${runId}`;
}

export type Kept = { ref: string; files: number };

/** Something in a worktree could not be stored. What could be is on the run's hidden reference. */
export class NotAllKept extends Error {
  readonly kept: Kept | null;
  constructor(missed: readonly string[], kept: Kept | null) {
    const more = missed.length > 3 ? ` and ${missed.length - 3} more` : "";
    super(`git could not keep ${missed.slice(0, 3).join(", ")}${more}`);
    this.name = "NotAllKept";
    this.kept = kept;
  }
}

export type WorktreeOfRun = {
  root: string;
  worktree: string;
  runId: string;
  /** What the files are compared with when git has lost its record of the worktree. */
  branch?: string;
};

/** The commit that a git directory's HEAD stands on; null when it has none. */
export async function headOf(cwd: string, gitDir: string): Promise<string | null> {
  const env = { GIT_DIR: gitDir };
  const { code, stdout } = await git(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], { cwd, env });
  return code === 0 ? stdout.trim() : null;
}

/**
 * Saves everything in a worktree that is neither committed nor ignored as a commit on `refs/sloop/wip/<run id>`, the files
 * of repositories inside it included. The worktree and its index are not touched; what the reference held before stays
 * reachable from it. Null when there is nothing to keep or no directory. Throws NotAllKept when some files could not be
 * stored, and an Error when git cannot keep any.
 */
export async function keepUncommitted(run: WorktreeOfRun): Promise<Kept | null> {
  if (!existsSync(run.worktree)) return null;
  const place = placeOf(run.root, run.worktree);
  // Beside the worktree's own index: what a kill leaves there goes with the worktree.
  const scratch = mkdtempSync(join(place.own ? place.gitDir : tmpdir(), "sloop-wip-"));
  try {
    return await keepFrom(run, place, join(scratch, "index"));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function baseOf({ root, branch }: WorktreeOfRun, place: KeptPlace): Promise<string | null> {
  if (place.own) return await headOf(root, place.gitDir);
  return branch === undefined ? null : readBranchTip(root, branch);
}

async function keepFrom(run: WorktreeOfRun, place: KeptPlace, index: string): Promise<Kept | null> {
  const { worktree } = run;
  const env = { GIT_DIR: place.gitDir, GIT_WORK_TREE: worktree, GIT_INDEX_FILE: index, ...sloopIdentityVariables };
  const ask: AskIndex = (args, input) =>
    git([...quiet, ...args], {
      cwd: worktree,
      write: true,
      passing: true,
      timeoutMs: longestGitMs,
      env,
      ...(input === undefined ? {} : { input }),
    });
  const base = await baseOf(run, place);
  const own = join(place.gitDir, "index");
  // A copy of the real index spares reading every file again, and knows what is sparse.
  if (place.own && isRegularFile(own)) copyIndex(own, index);
  else if (base !== null) await mustSay(ask(["read-tree", base]));
  const missed = await fillIndex({ ask, worktree, base, deletions: place.own }, () => rmSync(index, { force: true }));
  const kept = await commitIndex(run, ask, base);
  if (missed.length > 0) throw new NotAllKept(missed, kept);
  return kept;
}

async function treeOf(ask: AskIndex, commit: string): Promise<string> {
  return (await mustSay(ask(["rev-parse", "--verify", `${commit}^{tree}`]))).trim();
}

async function commitIndex(run: WorktreeOfRun, ask: AskIndex, base: string | null): Promise<Kept | null> {
  const tree = (await mustSay(ask(["write-tree"]))).trim();
  if (base !== null && tree === (await treeOf(ask, base))) return null;
  const files = await countFiles(ask, base, tree);
  if (files === 0) return null;
  const ref = wipReference(run.runId);
  const before = readReference(run.root, ref);
  if (before !== null && tree === (await treeOf(ask, before))) return { ref, files };
  const parents = [base, before].flatMap((parent) => (parent === null ? [] : ["-p", parent]));
  const message = `Uncommitted files of run ${run.runId}`;
  const commit = (await mustSay(ask(["commit-tree", tree, ...parents, "-m", message]))).trim();
  await mustSay(ask(["update-ref", ref, commit]));
  return { ref, files };
}

async function countFiles(ask: AskIndex, base: string | null, tree: string): Promise<number> {
  const args =
    base === null
      ? ["ls-tree", "-r", "-z", "--name-only", tree]
      : ["diff-tree", "-r", "-z", "--no-renames", "--name-only", base, tree];
  return splitNul(await mustSay(ask(args))).length;
}

/** What stands on a run's hidden reference for uncommitted files; null without one. */
export async function readWip(root: string, runId: string): Promise<Kept | null> {
  const ref = wipReference(runId);
  const commit = readReference(root, ref);
  if (commit === null) return null;
  const { code: orphan, stdout: parent } = await git(["rev-parse", "--verify", "--quiet", `${commit}^1`], {
    cwd: root,
  });
  const ends = orphan === 0 ? [parent.trim(), commit] : ["--root", "--no-commit-id", commit];
  const { code, stdout } = await git(["diff-tree", "-r", "-z", "--no-renames", "--name-only", ...ends], { cwd: root });
  return { ref, files: code === 0 ? splitNul(stdout).length : 0 };
}

// Losing nothing at the end of a run: uncommitted files and orphaned tips become commits on hidden references.

import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readBranchTip, readHeadCommit, readReference } from "./inspect.ts";
import { readLayout } from "./layout.ts";
import { git, sloopIdentityVariables, splitNul } from "./run.ts";

/** The hidden reference of a run's uncommitted files. */
export function wipReference(runId: string): string {
  return `refs/sloop/wip/${runId}`;
}

/** The hidden reference of a run's branch tip. */
export function keptReference(runId: string): string {
  return `refs/sloop/kept/${runId}`;
}

export type Kept = { ref: string; files: number };

/** No hook and no file watcher of the repository takes part in what we keep. */
const quiet = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];

export type WorktreeOfRun = { root: string; worktree: string; runId: string };

/**
 * Saves everything in a worktree that is neither committed nor ignored as a commit on `refs/sloop/wip/<run id>`. The worktree
 * and its index are not touched. Null when there is nothing to keep or no worktree. Throws when git cannot keep it.
 */
export async function keepUncommitted(run: WorktreeOfRun): Promise<Kept | null> {
  const layout = readLayout(run.worktree);
  if (layout === null) return null;
  // Beside the worktree's own index: what a kill leaves there goes with the worktree.
  const scratch = mkdtempSync(join(layout.gitDir, "sloop-wip-"));
  try {
    const index = join(scratch, "index");
    const own = join(layout.gitDir, "index");
    // A copy of the real index spares reading every file again, and knows what is sparse or assumed unchanged.
    if (existsSync(own)) copyFileSync(own, index);
    return await commitIndex(run, index);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function commitIndex(run: WorktreeOfRun, index: string): Promise<Kept | null> {
  const env = { GIT_INDEX_FILE: index, ...sloopIdentityVariables };
  const ask = (args: string[]) => git([...quiet, ...args], { cwd: run.worktree, write: true, env });
  // One file that cannot be read must not cost the others: what could be added is kept.
  await ask(["add", "--all", "--ignore-errors", "--", "."]);
  const tree = await mustSay(ask(["write-tree"]));
  const head = readHeadCommit(run.worktree);
  if (head !== null && tree === (await mustSay(ask(["rev-parse", "--verify", `${head}^{tree}`])))) return null;
  const parents = head === null ? [] : ["-p", head];
  const message = `Uncommitted files of run ${run.runId}`;
  const commit = await mustSay(ask(["commit-tree", tree, ...parents, "-m", message]));
  const files = await countFiles(ask, head, commit);
  if (files === 0) return null;
  const ref = wipReference(run.runId);
  await mustSay(ask(["update-ref", ref, commit]));
  return { ref, files };
}

type Ask = (args: string[]) => ReturnType<typeof git>;

async function countFiles(ask: Ask, head: string | null, commit: string): Promise<number> {
  const args =
    head === null
      ? ["ls-tree", "-r", "-z", "--name-only", commit]
      : ["diff-tree", "-r", "-z", "--no-renames", "--name-only", head, commit];
  return splitNul(await mustSay(ask(args))).length;
}

async function mustSay(result: ReturnType<typeof git>): Promise<string> {
  const { code, stdout, stderr } = await result;
  if (code !== 0) throw new Error(`git could not keep uncommitted files: ${stderr.trim()}`);
  return stdout.trim();
}

export type BranchOfRun = { root: string; branch: string; runId: string };

/**
 * Keeps a branch's tip as `refs/sloop/kept/<run id>` when no branch but this one, no tag and no remote branch reaches it.
 * Null when there was nothing to keep. Throws when git cannot tell or cannot keep it.
 */
export async function keepTip({ root, branch, runId }: BranchOfRun): Promise<string | null> {
  const tip = readBranchTip(root, branch);
  if (tip === null) return null;
  const listed = await git(["for-each-ref", "--format=%(refname)", "--contains", tip], { cwd: root });
  if (listed.code !== 0) throw new Error(`git could not say what reaches ${tip}: ${listed.stderr.trim()}`);
  const others = listed.stdout
    .split("\n")
    .filter((name) => name !== "" && name !== `refs/heads/${branch}` && !name.startsWith("refs/sloop/"));
  if (others.length > 0) return null;
  const ref = keptReference(runId);
  await mustSay(git([...quiet, "update-ref", ref, tip], { cwd: root, write: true }));
  return ref;
}

/** What stands on a run's hidden reference for uncommitted files; null without one. */
export async function readWip(root: string, runId: string): Promise<Kept | null> {
  const ref = wipReference(runId);
  const commit = readReference(root, ref);
  if (commit === null) return null;
  const { code, stdout } = await git(
    ["diff-tree", "-r", "-z", "--no-renames", "--root", "--no-commit-id", "--name-only", commit],
    { cwd: root },
  );
  return { ref, files: code === 0 ? splitNul(stdout).length : 0 };
}

/** Deletes a run's hidden references; what is gone already is no failure. Throws when git refuses. */
export async function dropKept(root: string, runId: string): Promise<void> {
  for (const ref of [wipReference(runId), keptReference(runId)]) {
    if (readReference(root, ref) === null) continue;
    await mustSay(git([...quiet, "update-ref", "-d", ref], { cwd: root, write: true }));
  }
}

/** Runs of which anything is kept on a hidden reference, with the newest instant (epoch ms) it was made. */
export async function listKeptRuns(root: string): Promise<{ runId: string; keptAtMs: number }[]> {
  const args = ["for-each-ref", "--format=%(refname) %(committerdate:unix)", "refs/sloop/wip", "refs/sloop/kept"];
  const { code, stdout } = await git(args, { cwd: root });
  if (code !== 0) return [];
  const kept = new Map<string, number>();
  for (const line of stdout.split("\n")) {
    const [reference = "", seconds = ""] = line.split(" ");
    const runId = reference.slice(reference.lastIndexOf("/") + 1);
    if (runId !== "") kept.set(runId, Math.max(kept.get(runId) ?? 0, Number(seconds) * 1000));
  }
  return [...kept].map(([runId, keptAtMs]) => ({ runId, keptAtMs }));
}

// The hidden references of runs: commits that nothing else reaches get one before a worktree and its branch go.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { isAncestor, readBranchTip, readReference } from "./inspect.ts";
import { headOf } from "./keep.ts";
import { mustSay, quiet } from "./kept-files.ts";
import { placeOf } from "./kept-place.ts";
import { readLine } from "./layout.ts";
import { git } from "./run.ts";

/** The hidden reference of a run's branch tip. */
export function keptReference(runId: string): string {
  return `refs/sloop/kept/${runId}`;
}

export type BranchOfRun = { root: string; branch: string; runId: string };

/** Whether anything but this run's branch reaches a commit; a hidden reference of the run counts, others go on their own terms. */
async function reached({ root, branch, runId }: BranchOfRun, oid: string): Promise<boolean> {
  const listed = await git(["for-each-ref", "--format=%(refname)", "--contains", oid], { cwd: root });
  if (listed.code !== 0) throw new Error(`git could not say what reaches ${oid}: ${listed.stderr.trim()}`);
  const ours = keptReference(runId);
  return listed.stdout.split("\n").some((name) => {
    if (name === "" || name === `refs/heads/${branch}`) return false;
    return !name.startsWith("refs/sloop/") || name === ours || name.startsWith(`${ours}-`);
  });
}

/** `<run id>`, `<run id>-head`, `<run id>-2`, ...: the first that is free, or that `oid` follows on, is made to name it. */
async function nameCommit({ root, runId }: BranchOfRun, oid: string): Promise<string> {
  for (let count = 0; ; count += 1) {
    const ref = `${keptReference(runId)}${["", "-head"][count] ?? `-${count}`}`;
    const before = readReference(root, ref);
    if (before !== null && (await isAncestor(root, before, oid)) !== true) continue;
    await mustSay(git([...quiet, "update-ref", ref, oid], { cwd: root, write: true }));
    return ref;
  }
}

/**
 * Keeps a branch's tip as `refs/sloop/kept/<run id>` when no branch but this one, no tag and no remote branch reaches it.
 * Null when there was nothing to keep. Throws when git cannot tell or cannot keep it.
 */
export async function keepTip(run: BranchOfRun): Promise<string | null> {
  const tip = readBranchTip(run.root, run.branch);
  if (tip === null) return null;
  const ref = keptReference(run.runId);
  if (readReference(run.root, ref) === tip) return ref;
  return (await reached(run, tip)) ? null : await nameCommit(run, tip);
}

/** Where an interrupted operation remembers commits that may be nowhere else, the stash it made on its way included. */
const operations = ["rebase-merge/orig-head", "rebase-apply/orig-head"];
const stashes = ["rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH"];
const picked = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"];

function remembered(gitDir: string): string[] {
  const rebasing = ["rebase-merge", "rebase-apply"].some((name) => existsSync(join(gitDir, name)));
  const names = [...operations, ...stashes, ...picked, ...(rebasing ? ["ORIG_HEAD"] : [])];
  return names.flatMap((name) => (readLine(join(gitDir, name)) ?? "").split("\n").filter((line) => line !== ""));
}

/** References that only this worktree has, and that go with it. */
async function ownReferences(root: string, gitDir: string): Promise<string[]> {
  const args = ["for-each-ref", "--format=%(objectname)", "refs/worktree", "refs/bisect", "refs/rewritten"];
  const { stdout } = await git(args, { cwd: root, env: { GIT_DIR: gitDir } });
  return stdout.split("\n").filter((line) => line !== "");
}

/**
 * Keeps what only a run's worktree knows: the commit of a detached HEAD, those of a rebase or merge in progress, and its
 * own references, where nothing else reaches them. Call it after `keepTip`. Returns the references made. Throws when git
 * cannot tell or cannot keep one.
 */
export async function keepDetached(run: BranchOfRun & { worktree: string }): Promise<string[]> {
  const { root } = run;
  const { gitDir, own } = placeOf(root, run.worktree);
  if (!own) return [];
  const head = await headOf(root, gitDir);
  const named = [...(head === null ? [] : [head]), ...remembered(gitDir), ...(await ownReferences(root, gitDir))];
  const made: string[] = [];
  for (const name of new Set(named)) {
    const { code, stdout } = await git(["rev-parse", "--verify", "--quiet", `${name}^{commit}`], { cwd: root });
    // What is no commit here, or is gone, cannot be lost.
    if (code !== 0) continue;
    const oid = stdout.trim();
    if (!(await reached(run, oid))) made.push(await nameCommit(run, oid));
  }
  return made;
}

async function listReferences(root: string, patterns: string[]): Promise<{ name: string; oid: string }[]> {
  const { code, stdout, stderr } = await git(["for-each-ref", "--format=%(objectname) %(refname)", ...patterns], {
    cwd: root,
  });
  if (code !== 0) throw new Error(`git could not list what was kept: ${stderr.trim()}`);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => ({ oid: line.slice(0, line.indexOf(" ")), name: line.slice(line.indexOf(" ") + 1) }));
}

/** Deletes a run's hidden references; what is gone already is no failure. Throws when git refuses. */
export async function dropKept(root: string, runId: string): Promise<void> {
  const kept = keptReference(runId);
  const found = await listReferences(root, [`refs/sloop/wip/${runId}`, kept, `${kept}-*`]);
  for (const { name, oid } of found) {
    await mustSay(git([...quiet, "update-ref", "-d", name, oid], { cwd: root, write: true }));
  }
}

/** Runs of which anything is kept on a hidden reference. Throws when git cannot tell. */
export async function listKeptRuns(root: string): Promise<string[]> {
  const found = await listReferences(root, ["refs/sloop/wip", "refs/sloop/kept"]);
  const ids = found.map(({ name }) => /^refs\/sloop\/(?:wip|kept)\/([0-9a-f]{32})(?:-[a-z0-9]+)?$/.exec(name)?.[1]);
  return [...new Set(ids.filter((id) => id !== undefined))];
}

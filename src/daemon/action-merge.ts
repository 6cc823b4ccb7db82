// `merge`: the run branch into its target branch, landed whole or not at all (engine.md 11.8).

import type { StageProcess } from "../core/evidence.ts";
import { findMergeCheckout } from "../git/checkout.ts";
import { strayRepositories } from "../git/gitlinks.ts";
import { isAncestor, observeCommits, readBranchTip, readHead } from "../git/inspect.ts";
import { mergeInProgress, undoFailedMerge } from "../git/leftover.ts";
import { conflictReason, guardedMergeArgv, type MergePlan, mergeByRef, movedCode, planMerge } from "../git/merge.ts";
import { type GatedGit, lastLine, longestGitMs, startGatedGit } from "../git/run.ts";
import { clearStageProcess, readFacts, storeStageProcess } from "../store/evidence.ts";
import { processStart, stopGroup } from "../system/process.ts";
import type { Daemon } from "./context.ts";
import { requireNotCancelled } from "./execute.ts";
import { followSwap, type MergeResult, settleLeftover } from "./merge-leftover.ts";
import { asOpenMerge, mergeLock } from "./merge-lock.ts";
import { type Tips, whyNotReady } from "./merge-ready.ts";
import { fail, pass, timed } from "./reading.ts";
import type { DrivenRun, Execution, Reading } from "./stage.ts";
import { whyUnverified } from "./trees.ts";

export { clearLeftoverMerge } from "./merge-leftover.ts";
export { mergeLock } from "./merge-lock.ts";

const mostSwaps = 10;

type Result = MergeResult;
type Merge = { daemon: Daemon; execution: Execution; ffOnly: boolean };

function checkpointOf(
  { execution }: Merge,
  tips: Tips,
  process: Pick<StageProcess, "pid" | "pid_start_time">,
): StageProcess {
  return {
    stage: execution.stage.name,
    attempt: execution.attempt,
    phase: "action",
    ...process,
    process_group_id: process.pid,
    merge: { target_head: tips.targetTip, branch_tip: tips.branchTip, completed_target: null },
  };
}

function store({ daemon, execution }: Merge, process: StageProcess): void {
  daemon.store.write((tx) => storeStageProcess(tx, execution.run.runId, process, daemon.clock.now()));
}

/** Records that git has merged; if even that cannot be stored, git itself still tells. */
function storeCompleted(merge: Merge, checkpoint: StageProcess, tips: Tips): void {
  const { daemon, execution } = merge;
  const completed = readBranchTip(daemon.paths.root, execution.run.targetBranch);
  const facts = { target_head: tips.targetTip, branch_tip: tips.branchTip, completed_target: completed };
  try {
    store(merge, { ...checkpoint, merge: facts });
  } catch (error) {
    const fields = { run_id: execution.run.runId, error: String(error) };
    daemon.log.warn("sloop::driver", "merge_completion_checkpoint_failed", fields);
  }
}

/** Nobody has the target checked out: a compare-and-swap of its reference. Null: lost, look again. */
async function swap(
  merge: Merge,
  tips: Tips,
  plan: Extract<MergePlan, { kind: "fast_forward" | "merge_tree" }>,
): Promise<Result | null> {
  const { daemon, execution } = merge;
  const { run, stage } = execution;
  const checkpoint = checkpointOf(merge, tips, { pid: daemon.pid, pid_start_time: processStart(daemon.pid) });
  // Our own pid must never be signalled as a stage's: group 0 is refused by everybody.
  store(merge, { ...checkpoint, process_group_id: 0 });
  await daemon.hook(`after-stage-process-checkpoint-${stage.name}`);
  requireNotCancelled(daemon, run.runId);
  const { root } = daemon.paths;
  // Somebody may have checked the target out since it was looked for: then git merges there.
  if (findMergeCheckout(root, run.targetBranch) !== null) return null;
  const moved = await mergeByRef({ root, target: run.targetBranch, branch: run.branch, ...tips, plan });
  if (moved.kind === "lost") return null;
  if (moved.kind === "failed") {
    await daemon.hook("after-failed-merge-process-exit");
    return fail(moved.reason);
  }
  await followSwap(daemon, run, tips.targetTip);
  storeCompleted(merge, { ...checkpoint, process_group_id: 0 }, tips);
  await daemon.hook("after-successful-merge-process-exit");
  return pass;
}

type Ended = { code: number | null; output: string; timedOut: boolean };

async function waitFor(git: GatedGit, graceMs: number): Promise<Ended> {
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    void git.stop(graceMs);
  }, longestGitMs);
  const { code, output } = await git.exited;
  clearTimeout(timer);
  // What a hook left running in git's group is ended with it.
  await stopGroup(git.pid, 0);
  return { code, output, timedOut };
}

type Started = { git: GatedGit; checkpoint: StageProcess };

/** Starts git behind its gate, makes it known, and lets it run; throws when it may not. */
async function startKnown(merge: Merge, checkout: string, tips: Tips): Promise<Started> {
  const { daemon, execution, ffOnly } = merge;
  const { run, stage } = execution;
  const { targetTip, branchTip } = tips;
  const command = { target: run.targetBranch, targetTip, branch: run.branch, branchTip, ffOnly };
  const git = startGatedGit(guardedMergeArgv(command), checkout);
  const checkpoint = checkpointOf(merge, tips, { pid: git.pid, pid_start_time: git.pidStartTime });
  try {
    store(merge, checkpoint);
    await daemon.hook(`after-stage-process-checkpoint-${stage.name}`);
    requireNotCancelled(daemon, run.runId);
  } catch (error) {
    await git.stop(0);
    throw error;
  }
  return { git, checkpoint };
}

/** Whether the run's commits are in the target branch now: git's word alone does not tell. */
async function landed({ daemon, execution }: Merge, { branchTip }: Tips): Promise<boolean> {
  const { root } = daemon.paths;
  const tip = readBranchTip(root, execution.run.targetBranch);
  return tip !== null && (await isAncestor(root, branchTip, tip)) === true;
}

/** Whether the checkout or the target has moved since it was looked at: the merge lost a race and is worth another try. */
function overtaken({ daemon, execution }: Merge, checkout: string, { targetTip }: Tips): boolean {
  const { targetBranch } = execution.run;
  const head = readHead(checkout);
  const there = head !== null && "branch" in head && head.branch === targetBranch;
  return !there || readBranchTip(daemon.paths.root, targetBranch) !== targetTip;
}

type Judged = { kind: "landed" } | { kind: "lost" } | { kind: "failed"; reason: string };

/** What a git that has ended came to; the checkout is whole after that. */
async function judge(merge: Merge, checkout: string, tips: Tips, ended: Ended): Promise<Judged> {
  const { root } = merge.daemon.paths;
  const kept = { targetHead: tips.targetTip, branchTip: tips.branchTip, completedTarget: null };
  // Also when git was ended in a hook that runs after the merge: all it had still to do was to forget its own notes.
  if (await landed(merge, tips)) {
    if (ended.code !== 0 && mergeInProgress(checkout)) await undoFailedMerge(root, checkout, kept);
    return { kind: "landed" };
  }
  if (ended.code === movedCode) return { kind: "lost" };
  const left = await undoFailedMerge(root, checkout, kept);
  if (left !== null) return { kind: "failed", reason: left };
  if (ended.timedOut) return { kind: "failed", reason: "git merge did not end within 10 minutes; a hook may hang" };
  if (overtaken(merge, checkout, tips)) return { kind: "lost" };
  return { kind: "failed", reason: explain(ended, merge.execution.run) };
}

type Outcome = { judged: Judged; checkpoint: StageProcess };

/** From a git behind its gate to a checkout that is whole: landed, or as it was. */
async function runGit(merge: Merge, checkout: string, tips: Tips): Promise<Outcome> {
  const { daemon, execution } = merge;
  return asOpenMerge(execution.run.runId, async (known) => {
    const { git, checkpoint } = await startKnown(merge, checkout, tips);
    known.open = true;
    git.open();
    const ended = await waitFor(git, daemon.config.cancelGraceMs);
    return { judged: await judge(merge, checkout, tips, ended), checkpoint };
  });
}

/** The target is checked out: git merges there, or leaves everything as it was. Null: lost, look again. */
async function mergeIn(merge: Merge, checkout: string, tips: Tips, plan: MergePlan): Promise<Result | null> {
  const { daemon, execution } = merge;
  const { run } = execution;
  const problem = await whyNotReady({ daemon, run, checkout, tips, plan });
  if (problem !== null) return fail(problem);
  const { judged, checkpoint } = await runGit(merge, checkout, tips);
  if (judged.kind === "landed") {
    storeCompleted(merge, checkpoint, tips);
    await daemon.hook("after-successful-merge-process-exit");
    return pass;
  }
  if (judged.kind === "lost") {
    // A crash from here on finds nothing to judge.
    daemon.store.write((tx) => clearStageProcess(tx, run.runId));
    return null;
  }
  await daemon.hook("after-failed-merge-process-exit");
  return fail(judged.reason);
}

/** Git's advice to a person who would finish the merge by hand; nobody will, it is undone. */
const advice = /^(Not committing merge|Automatic merge went well)/;

/** Git's own words, or a hook's; the paths it would not overwrite are listed on lines of their own. */
function explain({ code, output }: Ended, { branch, targetBranch }: DrivenRun): string {
  if (code === 0) return `git merge ended well, but \`${targetBranch}\` does not contain what ${branch} holds`;
  const lines = output.split("\n").filter((line) => !advice.test(line));
  const at = lines.findIndex((line) => line.includes("would be overwritten by merge"));
  if (at < 0) return lastLine(lines.join("\n"), `git could not merge ${branch}`);
  const paths = lines.slice(at + 1).filter((line) => line.startsWith("\t"));
  return `would be overwritten by merge: ${paths.map((line) => line.trim()).join(", ")}`;
}

/** A branch that only names a repository somebody made in the worktree would land without its files. */
async function whyIncomplete(root: string, { targetTip, branchTip }: Tips): Promise<string | null> {
  const stray = await strayRepositories(root, targetTip, branchTip);
  if (stray.length === 0) return null;
  const are = stray.length === 1 ? "is a repository of its own" : "are repositories of their own";
  return `${stray.join(", ")} ${are}, and the branch holds none of the files; remove its .git and commit them`;
}

/** One try from fresh tips; null when somebody else moved the target first. */
async function attempt(merge: Merge): Promise<Result | null> {
  const { daemon, execution, ffOnly } = merge;
  const { run } = execution;
  const { root } = daemon.paths;
  const targetTip = readBranchTip(root, run.targetBranch);
  if (targetTip === null) return fail(`branch \`${run.targetBranch}\` cannot be read`);
  const branchTip = readBranchTip(root, run.branch);
  if (branchTip === null) return fail(`branch \`${run.branch}\` cannot be read`);
  const plan = await planMerge({ root, targetTip, branchTip, ffOnly });
  if (plan.kind === "nothing") return pass;
  const held = whyUnverified(daemon, run, branchTip) ?? (await whyIncomplete(root, { targetTip, branchTip }));
  if (held !== null) return fail(held);
  if (plan.kind === "conflict") return fail(conflictReason(plan.paths));
  if (plan.kind === "refused") return fail(plan.reason);
  const checkout = findMergeCheckout(root, run.targetBranch);
  if (checkout !== null) return mergeIn(merge, checkout, { targetTip, branchTip }, plan);
  if (plan.kind === "in_checkout") return fail("this git cannot merge a branch that is checked out nowhere; 2.38 can");
  return swap(merge, { targetTip, branchTip }, plan);
}

/** Whether the run is known to have committed nothing. */
async function gainedNothing({ daemon, execution }: Merge): Promise<boolean> {
  const { root } = daemon.paths;
  const { runId, branch } = execution.run;
  // What was observed when the agent ended still says so while the branch ends with it.
  const last = readFacts(daemon.store.db, runId).commits?.oids.at(-1);
  if (last !== undefined && last === readBranchTip(root, branch)) return false;
  const commits = await observeCommits(root, branch);
  return commits.complete && commits.oids.length === 0;
}

async function land(merge: Merge): Promise<Result> {
  const { execution } = merge;
  if (await gainedNothing(merge)) return pass;
  for (let tries = 0; tries < mostSwaps; tries += 1) {
    const result = await attempt(merge);
    if (result !== null) return result;
  }
  return fail(`branch \`${execution.run.targetBranch}\` moved ${mostSwaps} times while it was merged into`);
}

/** Lands the run branch; what an earlier daemon left of this very execution is judged first. */
export function mergeAction(daemon: Daemon, execution: Execution, ffOnly: boolean): Promise<Reading> {
  const { run, stage, attempt: number } = execution;
  const merge = { daemon, execution, ffOnly };
  return timed(daemon, () =>
    mergeLock.run(
      async () => {
        const { process } = readFacts(daemon.store.db, run.runId);
        const ours = process?.stage === stage.name && process.attempt === number ? process : null;
        const settled = ours === null ? null : await settleLeftover(daemon, run, ours);
        if (settled !== null) return settled;
        requireNotCancelled(daemon, run.runId);
        return land(merge);
      },
      () => requireNotCancelled(daemon, run.runId),
    ),
  );
}

// `merge`: the run branch into its target branch, landed whole or not at all (engine.md 11.8).

import type { StageProcess } from "../core/evidence.ts";
import { abortMerge, checkoutReady, findMergeCheckout, overwrittenPaths } from "../git/checkout.ts";
import { observeCommits, readBranchTip } from "../git/inspect.ts";
import { inspectLeftoverMerge, undoFailedMerge } from "../git/leftover.ts";
import { conflictReason, type MergePlan, mergeArgv, mergeByRef, overwriteReason, planMerge } from "../git/merge.ts";
import { type GatedGit, lastLine, startGatedGit } from "../git/run.ts";
import { clearStageProcess, readFacts, storeStageProcess } from "../store/evidence.ts";
import { identify, processAlive, processStart, stopGroup } from "../system/process.ts";
import type { Daemon } from "./context.ts";
import { requireNotCancelled } from "./execute.ts";
import { openQueueLock } from "./merge-lock.ts";
import { fail, pass, timed } from "./reading.ts";
import type { DrivenRun, Execution, Reading } from "./stage.ts";
import { WalkError } from "./walk-end.ts";

/** Held over every look at and change of a merge checkout. */
export const mergeLock = openQueueLock();

const longestMergeMs = 10 * 60_000;
const pollMs = 100;
const mostSwaps = 10;

type Result = { passed: boolean; exitCode: number | null; reason: string | null };
type Merge = { daemon: Daemon; execution: Execution; ffOnly: boolean };
type Tips = { targetTip: string; branchTip: string };

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
  const moved = await mergeByRef({ root, target: run.targetBranch, branch: run.branch, ...tips, plan });
  if (moved.kind === "lost") return null;
  if (moved.kind === "failed") {
    await daemon.hook("after-failed-merge-process-exit");
    return fail(moved.reason);
  }
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
  }, longestMergeMs);
  const { code, output } = await git.exited;
  clearTimeout(timer);
  return { code, output, timedOut };
}

/** Starts git behind its gate, makes it known, and lets it run. Null: it was not let run, and why has been thrown. */
async function startKnown(
  merge: Merge,
  checkout: string,
  tips: Tips,
): Promise<{ git: GatedGit; checkpoint: StageProcess }> {
  const { daemon, execution, ffOnly } = merge;
  const { run, stage } = execution;
  const git = startGatedGit(mergeArgv({ branch: run.branch, branchTip: tips.branchTip, ffOnly }), checkout);
  const checkpoint = checkpointOf(merge, tips, { pid: git.pid, pid_start_time: git.pidStartTime });
  try {
    store(merge, checkpoint);
    await daemon.hook(`after-stage-process-checkpoint-${stage.name}`);
    requireNotCancelled(daemon, run.runId);
  } catch (error) {
    await git.stop(0);
    throw error;
  }
  git.open();
  return { git, checkpoint };
}

/** Somebody's edits that the merge would overwrite: git would refuse too, but only after putting them away and back. */
async function inTheWay(checkout: string, tips: Tips, plan: MergePlan): Promise<string | null> {
  const to = plan.kind === "merge_tree" ? plan.tree : tips.branchTip;
  const paths = plan.kind === "in_checkout" ? [] : await overwrittenPaths({ checkout, from: tips.targetTip, to });
  return paths === null || paths.length === 0 ? null : overwriteReason(checkout, paths);
}

/** The target is checked out: git merges there, or leaves everything as it was. */
async function mergeIn(merge: Merge, checkout: string, tips: Tips, plan: MergePlan): Promise<Result> {
  const { daemon, execution } = merge;
  const problem = (await checkoutReady(checkout)) ?? (await inTheWay(checkout, tips, plan));
  if (problem !== null) return fail(problem);
  const { git, checkpoint } = await startKnown(merge, checkout, tips);
  const { code, output, timedOut } = await waitFor(git, daemon.config.cancelGraceMs);
  // What a hook left running in git's group is ended with it.
  await stopGroup(git.pid, 0);
  if (code === 0) {
    storeCompleted(merge, checkpoint, tips);
    await daemon.hook("after-successful-merge-process-exit");
    return pass;
  }
  const kept = { targetHead: tips.targetTip, branchTip: tips.branchTip, completedTarget: null };
  const left = await undoFailedMerge(daemon.paths.root, checkout, kept);
  await daemon.hook("after-failed-merge-process-exit");
  if (left !== null) return fail(left);
  if (timedOut) return fail("git merge did not end within 10 minutes; a hook may hang");
  return fail(explain(output, execution.run.branch));
}

/** Git's advice to a person who would finish the merge by hand; nobody will, it is undone. */
const advice = /^(Not committing merge|Automatic merge went well)/;

/** Git's own words, or a hook's; the paths it would not overwrite are listed on lines of their own. */
function explain(output: string, branch: string): string {
  const lines = output.split("\n").filter((line) => !advice.test(line));
  const at = lines.findIndex((line) => line.includes("would be overwritten by merge"));
  if (at < 0) return lastLine(lines.join("\n"), `git could not merge ${branch}`);
  const paths = lines.slice(at + 1).filter((line) => line.startsWith("\t"));
  return `would be overwritten by merge: ${paths.map((line) => line.trim()).join(", ")}`;
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
  if (plan.kind === "conflict") return fail(conflictReason(plan.paths));
  if (plan.kind === "refused") return fail(plan.reason);
  const checkout = findMergeCheckout(root, run.targetBranch);
  if (checkout !== null) return mergeIn(merge, checkout, { targetTip, branchTip }, plan);
  if (plan.kind === "in_checkout") return fail("this git cannot merge a branch that is checked out nowhere; 2.38 can");
  return swap(merge, { targetTip, branchTip }, plan);
}

async function land(merge: Merge): Promise<Result> {
  const { daemon, execution } = merge;
  const commits = await observeCommits(daemon.paths.root, execution.run.branch);
  if (commits.complete && commits.oids.length === 0) return pass;
  for (let tries = 0; tries < mostSwaps; tries += 1) {
    const result = await attempt(merge);
    if (result !== null) return result;
  }
  return fail(`branch \`${execution.run.targetBranch}\` moved ${mostSwaps} times while it was merged into`);
}

/** Waits until an earlier daemon's git is gone; its pid may still be at work in the checkout. */
async function awaitLeftover(daemon: Daemon, process: StageProcess): Promise<void> {
  // A compare-and-swap has no process of its own; the daemon that made it is gone.
  if (process.process_group_id === 0) return;
  const there = () => identify(process.pid, process.pid_start_time);
  // A zombie that nobody reaps still matches, but does nothing any more.
  while (there() === "matches" && processAlive(process.pid)) await Bun.sleep(pollMs);
  if (there() === "unverifiable") {
    throw new WalkError(`process ${process.pid} may still be merging and cannot be identified`);
  }
  daemon.log.info("sloop::recovery", "supervised_run_exit_observed", { pid: process.pid });
}

/** Decides from git what an interrupted merge came to; null: it may be tried again. */
async function settleLeftover(daemon: Daemon, run: DrivenRun, process: StageProcess): Promise<Result | null> {
  if (process.merge === undefined) return null;
  await awaitLeftover(daemon, process);
  const { root } = daemon.paths;
  const checkout = process.process_group_id === 0 ? null : findMergeCheckout(root, run.targetBranch);
  const { target_head: targetHead, branch_tip: branchTip, completed_target: completedTarget } = process.merge;
  const checkpoint = { targetHead, branchTip, completedTarget };
  const verdict = await inspectLeftoverMerge({
    root,
    checkout,
    target: run.targetBranch,
    branch: run.branch,
    checkpoint,
  });
  switch (verdict) {
    case "done":
      return pass;
    case "unsafe":
      return fail("an interrupted merge left a state that only a person can judge");
    case "abort_then_retry":
      if (checkout !== null) await abortMerge(checkout);
      break;
    case "retry":
      break;
  }
  daemon.store.write((tx) => clearStageProcess(tx, run.runId));
  return null;
}

/**
 * Of a cancelled run that an earlier daemon was merging: gives up what is left of the merge in the checkout. Its git may
 * have been ended in the middle, by the cancel itself.
 */
export function clearLeftoverMerge(daemon: Daemon, run: DrivenRun): Promise<void> {
  return mergeLock.run(async () => {
    const { process } = readFacts(daemon.store.db, run.runId);
    if (process?.merge === undefined) return;
    await settleLeftover(daemon, run, process);
  });
}

/** Lands the run branch; what an earlier daemon left of this very execution is judged first. */
export function mergeAction(daemon: Daemon, execution: Execution, ffOnly: boolean): Promise<Reading> {
  const { run, stage, attempt: number } = execution;
  const merge = { daemon, execution, ffOnly };
  return timed(daemon, () =>
    mergeLock.run(async () => {
      const { process } = readFacts(daemon.store.db, run.runId);
      const ours = process?.stage === stage.name && process.attempt === number ? process : null;
      const settled = ours === null ? null : await settleLeftover(daemon, run, ours);
      if (settled !== null) return settled;
      requireNotCancelled(daemon, run.runId);
      return land(merge);
    }),
  );
}

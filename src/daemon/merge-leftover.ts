// What an earlier daemon's merge left behind, judged from git before anything is merged again (engine.md 16.5).

import type { StageProcess } from "../core/evidence.ts";
import { findMergeCheckout } from "../git/checkout.ts";
import { followBranch } from "../git/follow.ts";
import { readBranchTip } from "../git/inspect.ts";
import { inspectLeftoverMerge, type LeftoverQuestion, undoFailedMerge } from "../git/leftover.ts";
import { clearStageProcess, readFacts } from "../store/evidence.ts";
import { identify, processAlive } from "../system/process.ts";
import type { Daemon } from "./context.ts";
import { asOpenMerge, mergeLock } from "./merge-lock.ts";
import { fail, pass } from "./reading.ts";
import type { DrivenRun } from "./stage.ts";
import { WalkError } from "./walk-end.ts";

export type MergeResult = { passed: boolean; exitCode: number | null; reason: string | null };

const pollMs = 100;

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

/** A reference that was moved by compare-and-swap while its branch was being checked out: the checkout follows, or the log tells. */
export async function followSwap(daemon: Daemon, run: DrivenRun, from: string): Promise<void> {
  const { root } = daemon.paths;
  const to = readBranchTip(root, run.targetBranch);
  if (to === null) return;
  const left = await followBranch({ root, branch: run.targetBranch, from, to });
  if (left === null) return;
  const fields = { run_id: run.runId, checkout: left.checkout, error: left.problem };
  daemon.log.warn("sloop::driver", "merge_checkout_left_behind", fields);
}

const unsafe = fail("an interrupted merge left a state that only a person can judge");

async function judge(daemon: Daemon, run: DrivenRun, question: LeftoverQuestion): Promise<MergeResult | null> {
  const { root, checkout, checkpoint } = question;
  const verdict = await inspectLeftoverMerge(question);
  if (verdict === "unsafe") return unsafe;
  if (verdict === "done") {
    if (checkout === null) await followSwap(daemon, run, checkpoint.targetHead);
    return pass;
  }
  const left = checkout === null ? null : await undoFailedMerge(root, checkout, checkpoint);
  return left === null ? null : fail(left);
}

/** Decides from git what an interrupted merge came to; null: it may be tried again. */
export async function settleLeftover(
  daemon: Daemon,
  run: DrivenRun,
  process: StageProcess,
): Promise<MergeResult | null> {
  if (process.merge === undefined) return null;
  const { target_head: targetHead, branch_tip: branchTip, completed_target: completedTarget } = process.merge;
  const checkpoint = { targetHead, branchTip, completedTarget };
  const { root } = daemon.paths;
  const { targetBranch: target, branch } = run;
  const result = await asOpenMerge(run.runId, async (merge) => {
    merge.open = true;
    await awaitLeftover(daemon, process);
    const checkout = process.process_group_id === 0 ? null : findMergeCheckout(root, target);
    return judge(daemon, run, { root, checkout, target, branch, checkpoint });
  });
  if (result === null) daemon.store.write((tx) => clearStageProcess(tx, run.runId));
  return result;
}

/**
 * Of a cancelled run that an earlier daemon was merging: gives up what is left of the merge in the checkout. Its git may
 * have been ended in the middle, by the cancel itself.
 */
export async function clearLeftoverMerge(daemon: Daemon, run: DrivenRun): Promise<void> {
  const interrupted = () => {
    const { process } = readFacts(daemon.store.db, run.runId);
    return process?.merge === undefined ? null : process;
  };
  // Most cancelled runs never merged: those must not wait for somebody else's merge.
  if (interrupted() === null) return;
  await mergeLock.run(async () => {
    const process = interrupted();
    if (process !== null) await settleLeftover(daemon, run, process);
  });
}

// What the worktree and its branch hold around each stage execution, recorded so that a merge can tell what was judged.

import type { StageTree } from "../core/evidence.ts";
import { gatePhase, unverifiedReason } from "../core/verified.ts";
import { readBranchTip, readHeadCommit } from "../git/inspect.ts";
import { readWorktreeState, treeOf, type WorktreeState } from "../git/uncommitted.ts";
import { readFacts, readStageLog, storeGateTree } from "../store/evidence.ts";
import type { Daemon } from "./context.ts";
import { requireNotCancelled } from "./execute.ts";
import { executionKnown, type Phase } from "./records.ts";
import type { DrivenRun, Execution } from "./stage.ts";

const lookMs = 100;

/** The state of a run's worktree. A cancelled run does not wait for a git that hangs in it: throws Cancelled. */
async function lookAt(daemon: Daemon, { runId, worktree }: DrivenRun): Promise<WorktreeState | null> {
  const looking = readWorktreeState(daemon.paths.root, worktree).then((state) => ({ state }));
  for (;;) {
    const done = await Promise.race([looking, Bun.sleep(lookMs)]);
    if (done !== undefined) return done.state;
    requireNotCancelled(daemon, runId);
  }
}

/** Records what a gate's process is about to be started on. Throws when the store does, and Cancelled. */
export async function recordGateTree(daemon: Daemon, execution: Execution, { phase, seat }: Phase): Promise<void> {
  const { run, stage, index: stageIndex, attempt } = execution;
  if (gatePhase(stage) !== phase) return;
  const state = await lookAt(daemon, run);
  // After the files: a commit made meanwhile shows as one, and not as files that had been there.
  const head = readHeadCommit(run.worktree);
  const tip = readBranchTip(daemon.paths.root, run.branch);
  const { uncommitted, more, content } = state ?? { uncommitted: null, more: false, content: null };
  const tree = { stageIndex, attempt, phase, seat, head, tip, uncommitted, more, content };
  daemon.store.write((tx) => storeGateTree(tx, run.runId, tree, daemon.clock.now()));
}

/** Where the branch stands as an execution begins; null when an earlier daemon began it. */
export function branchBefore(daemon: Daemon, execution: Execution): string | null {
  const begun = executionKnown(daemon, execution, { phase: "action", seat: null });
  return begun ? null : readBranchTip(daemon.paths.root, execution.run.branch);
}

/** Where an execution leaves the branch, and a gate the worktree. Throws Cancelled. */
export async function treeAfter(daemon: Daemon, execution: Execution, from: string | null): Promise<StageTree> {
  const { run, stage, index: stageIndex, attempt } = execution;
  const state = gatePhase(stage) === null ? null : await lookAt(daemon, run);
  const { root } = daemon.paths;
  const tip = readBranchTip(root, run.branch);
  const asked = readFacts(daemon.store.db, run.runId).gateTrees.some(
    (start) => start.content !== null || (start.stageIndex === stageIndex && start.tip !== tip),
  );
  const tree = asked && tip !== null ? await treeOf(root, tip) : null;
  // What is too much to be known again is not known.
  const uncommitted = state === null || state.more ? null : state.uncommitted;
  return { stageIndex, attempt, from, tip, tree, uncommitted };
}

/** Why a branch that stands at `tip` must not be merged: it is not what the run's gates passed on. Null: it is. */
export function whyUnverified(daemon: Daemon, { runId, flow, branch }: DrivenRun, tip: string): string | null {
  const { verdicts, gateTrees, stageTrees } = readFacts(daemon.store.db, runId);
  const log = readStageLog(daemon.store.db, runId);
  return unverifiedReason({ flow, branch, log, verdicts, gateTrees, stageTrees }, tip);
}

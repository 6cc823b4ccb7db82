// What the worktree and its branch hold around each stage execution, recorded so that a merge can tell what was judged.

import type { StageTree } from "../core/evidence.ts";
import { isGate, unverifiedReason } from "../core/verified.ts";
import { readBranchTip, readHeadCommit } from "../git/inspect.ts";
import { contentTree, listUncommitted, treeOf } from "../git/uncommitted.ts";
import { readFacts, readStageLog, storeGateTree } from "../store/evidence.ts";
import type { Daemon } from "./context.ts";
import { executionKnown, type Phase } from "./records.ts";
import type { DrivenRun, Execution } from "./stage.ts";

/** Paths kept of one observation: enough to name them and to know them again. */
const mostPaths = 500;

/** Records what a gate's process is about to be started on. Throws when the store does. */
export async function recordGateTree(daemon: Daemon, execution: Execution, { phase, seat }: Phase): Promise<void> {
  const { run, index: stageIndex, attempt } = execution;
  const uncommitted = (await listUncommitted(run.worktree))?.slice(0, mostPaths) ?? null;
  const content = uncommitted === null || uncommitted.length === 0 ? null : await contentTree(run.worktree);
  // After the files: a commit made meanwhile shows as one, and not as files that had been there.
  const head = readHeadCommit(run.worktree);
  const tip = readBranchTip(daemon.paths.root, run.branch);
  const tree = { stageIndex, attempt, phase, seat, head, tip, uncommitted, content };
  daemon.store.write((tx) => storeGateTree(tx, run.runId, tree, daemon.clock.now()));
}

/** Where the branch stands as an execution begins; null when an earlier daemon began it. */
export function branchBefore(daemon: Daemon, execution: Execution): string | null {
  const begun = executionKnown(daemon, execution, { phase: "action", seat: null });
  return begun ? null : readBranchTip(daemon.paths.root, execution.run.branch);
}

/** Where an execution leaves the branch, and a gate the worktree. */
export async function treeAfter(daemon: Daemon, execution: Execution, from: string | null): Promise<StageTree> {
  const { run, stage, index: stageIndex, attempt } = execution;
  const found = isGate(stage) ? await listUncommitted(run.worktree) : null;
  // What is too much to be known again is not known.
  const uncommitted = found !== null && found.length <= mostPaths ? found : null;
  const { root } = daemon.paths;
  const tip = readBranchTip(root, run.branch);
  const asked = readFacts(daemon.store.db, run.runId).gateTrees.some(({ content }) => content !== null);
  const tree = asked && tip !== null ? await treeOf(root, tip) : null;
  return { stageIndex, attempt, from, tip, tree, uncommitted };
}

/** Why a branch that stands at `tip` must not be merged: it is not what the run's gates passed on. Null: it is. */
export function whyUnverified(daemon: Daemon, { runId, flow, branch }: DrivenRun, tip: string): string | null {
  const { gateTrees, stageTrees } = readFacts(daemon.store.db, runId);
  const log = readStageLog(daemon.store.db, runId);
  return unverifiedReason({ flow, branch, log, gateTrees, stageTrees }, tip);
}

// `sync`: the target branch's tip merged into the run branch, in the run's own worktree (engine.md 11.7).

import { abortMerge, checkoutReady, operationInProgress, unmergedPaths } from "../git/checkout.ts";
import { isAncestor, readBranchTip } from "../git/inspect.ts";
import { conflictReason, syncArgv } from "../git/merge.ts";
import { childEnvironment } from "../system/environment.ts";
import type { OutputLabels } from "../system/output.ts";
import { lastLines } from "../system/output-read.ts";
import { outputLog } from "../system/paths.ts";
import { mergeLock } from "./action-merge.ts";
import type { Daemon } from "./context.ts";
import { execute, requireNotCancelled } from "./execute.ts";
import { fail, pass, timed } from "./reading.ts";
import { executionKnown } from "./records.ts";
import type { Execution, Reading } from "./stage.ts";
import { WalkError } from "./walk-end.ts";

type Plan = { kind: "merge"; oid: string } | { kind: "passed" } | { kind: "failed"; reason: string };

async function readTargetTip(daemon: Daemon, { run }: Execution): Promise<string | null> {
  const read = async () => readBranchTip(daemon.paths.root, run.targetBranch);
  // A merge in somebody's checkout may take long; a cancelled run does not wait for it.
  return mergeLock.run(read, () => requireNotCancelled(daemon, run.runId));
}

/** Decides what is to be done, after clearing what an interrupted sync left in the worktree. */
async function plan(daemon: Daemon, execution: Execution): Promise<Plan> {
  const { run } = execution;
  const fields = { run_id: run.runId, stage: execution.stage.name };
  const oid = await readTargetTip(daemon, execution);
  if (oid === null) {
    daemon.log.error("sloop::driver", "sync_default_branch_unreadable", fields);
    return { kind: "failed", reason: `branch \`${run.targetBranch}\` cannot be read` };
  }
  if (operationInProgress(run.worktree) !== null) {
    daemon.log.warn("sloop::driver", "sync_aborted_leftover_merge", fields);
    await abortMerge(run.worktree);
  }
  const problem = await checkoutReady(run.worktree);
  if (problem !== null) {
    daemon.log.warn("sloop::driver", "sync_worktree_not_ready", { ...fields, error: problem });
    return { kind: "failed", reason: problem };
  }
  const contained = await isAncestor(run.worktree, oid, run.branch);
  if (contained === null) {
    daemon.log.error("sloop::driver", "sync_ancestry_unreadable", fields);
    return { kind: "failed", reason: "git cannot compare the branches" };
  }
  return contained ? { kind: "passed" } : { kind: "merge", oid };
}

/** What stood in the way of a merge that failed, and the worktree given back as it was. */
async function explain(daemon: Daemon, { run, stage, attempt }: Execution): Promise<string | null> {
  const paths = await unmergedPaths(run.worktree);
  const own = (labels: OutputLabels) => labels.stage === stage.name && (labels.attempt ?? 1) === attempt;
  const said = await lastLines(outputLog(daemon.paths, run.runId), own, 1);
  if (operationInProgress(run.worktree) !== null) await abortMerge(run.worktree);
  if (paths !== null && paths.length > 0) return conflictReason(paths);
  return said === "" ? null : said;
}

/** The commit to bring in when an execution has to be started once more: what it left in the worktree is given up. */
async function planAgain(daemon: Daemon, execution: Execution): Promise<string> {
  const { run } = execution;
  if (operationInProgress(run.worktree) !== null) await abortMerge(run.worktree);
  const oid = await readTargetTip(daemon, execution);
  if (oid === null) throw new WalkError(`branch \`${run.targetBranch}\` cannot be read`);
  return oid;
}

/** Runs the merge, or takes up what is left of it; `planned` null: it was started before. */
async function merge(daemon: Daemon, execution: Execution, planned: string | null): Promise<Reading> {
  const { run } = execution;
  const result = await execute(daemon, execution, {
    phase: "action",
    seat: null,
    source: "stage",
    gated: false,
    launch: async () => {
      const oid = planned ?? (await planAgain(daemon, execution));
      const environment = childEnvironment(daemon.environment, {
        add: { GIT_TERMINAL_PROMPT: "0", GIT_EDITOR: "true" },
        remove: ["SLOOP_SOCKET", "SLOOP_TOKEN"],
      });
      return { argv: syncArgv(run.branch, oid), environment };
    },
  });
  if (result.kind === "not_started") {
    const { startedAtMs, finishedAtMs, problem } = result;
    return { ...fail(problem, null), startedAtMs, finishedAtMs };
  }
  const { exitCode, startedAtMs, finishedAtMs } = result.facts;
  if (exitCode === 0) return { ...pass, startedAtMs, finishedAtMs };
  return { ...fail(await explain(daemon, execution), exitCode), startedAtMs, finishedAtMs };
}

/** Brings the target branch into the run branch; a conflict fails the stage and leaves no merge behind. */
export async function syncAction(daemon: Daemon, execution: Execution): Promise<Reading> {
  requireNotCancelled(daemon, execution.run.runId);
  // An execution that was started before needs no plan: its record tells how it ended.
  if (executionKnown(daemon, execution, { phase: "action", seat: null })) return merge(daemon, execution, null);
  const startedAtMs = daemon.clock.now();
  const decided = await plan(daemon, execution);
  switch (decided.kind) {
    case "merge":
      return merge(daemon, execution, decided.oid);
    case "passed":
      return timed(daemon, async () => pass);
    case "failed":
      return { ...fail(decided.reason), startedAtMs, finishedAtMs: daemon.clock.now() };
  }
}

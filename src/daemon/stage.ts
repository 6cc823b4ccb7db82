// One execution of one stage: the action, then the check that judges it, then its rows, written at once (engine.md 9.4).

import type { RunFacts, StageRecord, VerdictSource } from "../core/evidence.ts";
import type { Flow, Stage } from "../core/flow.ts";
import { noVerdict, tally } from "../core/panel.ts";
import type { TicketSnapshot } from "../core/snapshot.ts";
import { observeCommits } from "../git/inspect.ts";
import { appendStageRows, clearStageProcess, readFacts, storeStageTree } from "../store/evidence.ts";
import { agentAction } from "./action-agent.ts";
import { execAction, execCheck } from "./action-exec.ts";
import { mergeAction } from "./action-merge.ts";
import { syncAction } from "./action-sync.ts";
import type { Daemon, LiveRun } from "./context.ts";
import { seatReviewers } from "./seats.ts";
import { branchBefore, treeAfter } from "./trees.ts";

/** A run as its driver knows it: fixed facts, and what the walk has done so far. */
export type DrivenRun = {
  readonly runId: string;
  readonly ticketId: string;
  readonly branch: string;
  readonly worktree: string;
  readonly targetBranch: string;
  readonly flow: Flow;
  readonly ticket: TicketSnapshot;
  readonly live: LiveRun;
  /** Whether the merge stage succeeded; null: not attempted. */
  merged: boolean | null;
};

export type Execution = { run: DrivenRun; stage: Stage; index: number; attempt: number };

/** How an action, or a check that ran a process, read. */
export type Reading = {
  passed: boolean;
  exitCode: number | null;
  startedAtMs: number;
  finishedAtMs: number;
  reason: string | null;
};

type Verdict = { passed: boolean; source: VerdictSource; reason: string | null; check: Reading | null };

async function commitsVerdict(daemon: Daemon, execution: Execution, action: Reading): Promise<boolean> {
  if (!action.passed) return false;
  const { run, stage } = execution;
  const stored = stage.action.kind === "agent" ? readFacts(daemon.store.db, run.runId).commits : null;
  const commits = stored ?? (await observeCommits(daemon.paths.root, run.branch));
  return commits.complete && commits.oids.length > 0;
}

function reportedVerdict(facts: RunFacts, execution: Execution): Verdict {
  const { stage, attempt } = execution;
  const report = facts.verdicts.find((filed) => filed.stage === stage.name && filed.attempt === attempt);
  const reason = report === undefined ? noVerdict : report.reason;
  return { passed: report?.verdict === "pass", source: "reported", reason, check: null };
}

async function panelVerdict(daemon: Daemon, execution: Execution, action: Reading): Promise<Verdict> {
  const { run, stage, index, attempt } = execution;
  if (stage.resultCheck.kind !== "panel" || !action.passed) {
    return { passed: false, source: "exit_code", reason: null, check: null };
  }
  const startedAtMs = daemon.clock.now();
  await seatReviewers(daemon, execution, stage.resultCheck);
  const reports = readFacts(daemon.store.db, run.runId).reports.filter(
    (report) => report.stageIndex === index && report.attempt === attempt,
  );
  const { passed, reason } = tally(stage.resultCheck, reports);
  const check = { passed, exitCode: null, startedAtMs, finishedAtMs: daemon.clock.now(), reason };
  return { passed, source: "panel", reason, check };
}

async function judge(daemon: Daemon, execution: Execution, action: Reading): Promise<Verdict> {
  const bySelf: Verdict = { passed: action.passed, source: "exit_code", reason: action.reason, check: null };
  switch (execution.stage.resultCheck.kind) {
    case "none":
      return bySelf;
    case "commits":
      return { ...bySelf, passed: await commitsVerdict(daemon, execution, action), reason: null };
    case "reported":
      return reportedVerdict(readFacts(daemon.store.db, execution.run.runId), execution);
    case "exec": {
      if (!action.passed) return { ...bySelf, reason: null };
      const check = await execCheck(daemon, execution, execution.stage.resultCheck.cmd);
      // Its exit code tells the rest; only a command that could not be started has more to say.
      return { passed: check.passed, source: "exit_code", reason: check.reason, check };
    }
    case "panel":
      return panelVerdict(daemon, execution, action);
  }
}

function act(daemon: Daemon, execution: Execution): Promise<Reading> {
  const { action } = execution.stage;
  switch (action.kind) {
    case "agent":
      return agentAction(daemon, execution);
    case "exec":
      return execAction(daemon, execution, action.cmd);
    case "sync":
      return syncAction(daemon, execution);
    case "merge":
      return mergeAction(daemon, execution, action.ffOnly);
  }
}

function rowsOf(execution: Execution, action: Reading, verdict: Verdict): StageRecord[] {
  const { stage, index, attempt } = execution;
  const base = { stageIndex: index, stage: stage.name, attempt };
  const times = ({ startedAtMs, finishedAtMs, exitCode }: Reading) => ({ startedAtMs, finishedAtMs, exitCode });
  const state = verdict.passed ? ("passed" as const) : ("failed" as const);
  const judged = { state, verdictSource: verdict.source, reason: verdict.reason };
  if (verdict.check === null) return [{ ...base, phase: "action", ...times(action), ...judged }];
  return [
    { ...base, phase: "action", ...times(action), state: null, verdictSource: null, reason: null },
    { ...base, phase: "check", ...times(verdict.check), ...judged },
  ];
}

/** Performs one execution and appends its rows. Throws what ends the walk: see daemon/walk-end.ts. */
export async function performStage(daemon: Daemon, execution: Execution): Promise<void> {
  const { run, stage } = execution;
  const before = branchBefore(daemon, execution);
  const action = await act(daemon, execution);
  const verdict = await judge(daemon, execution, action);
  const tree = await treeAfter(daemon, execution, before);
  if (stage.action.kind === "merge") run.merged = verdict.passed;
  daemon.store.write((tx) => {
    appendStageRows(tx, run.runId, rowsOf(execution, action, verdict));
    storeStageTree(tx, run.runId, tree, daemon.clock.now());
    clearStageProcess(tx, run.runId);
  });
}

// Runs as they are told: summary, detail, and the facts both are made of (protocol.md 6.4, 7.10).

import type { RunFacts, StageRecord } from "../core/evidence.ts";
import type { Flow } from "../core/flow.ts";
import { runAlias } from "../core/ids.ts";
import { derivedReason, haltOf } from "../core/reason.ts";
import { parseFlowSnapshot } from "../core/snapshot.ts";
import { type StageRow, type StageRowsInput, stageRows, stageStrip } from "../core/stagerows.ts";
import { terminal } from "../core/ticket.ts";
import type { HaltCause } from "../core/walk.ts";
import type { Daemon } from "../daemon/context.ts";
import type { RunDetail, RunSummary } from "../protocol/rows.ts";
import { readFacts, readStageLogs } from "../store/evidence.ts";
import { readTimelines, type Timeline } from "../store/feed.ts";
import { readProcessStart } from "../store/report.ts";
import type { RunRow } from "../store/tables.ts";
import { classificationOf } from "./rows.ts";

export type RunReport = {
  run: RunRow;
  alias: string;
  facts: RunFacts;
  timeline: Timeline;
  rows: StageRow[];
  halt: HaltCause | null;
  /** Derived from evidence only, never a vendor's diagnostic. */
  reason: string | null;
};

/** How long the agent a run stands on has been silent, once that is worth telling (6.9). */
function silenceOf(daemon: Daemon, run: RunRow, facts: RunFacts): StageRowsInput["silence"] {
  const live = daemon.live.get(run.id);
  if (run.state !== "running" || live === undefined || live.silence === null) return null;
  if (!live.supervised || live.cancelling || facts.cancelRequested) return null;
  const forMs = daemon.clock.now() - live.silence.lastOutputAtMs;
  return forMs >= daemon.config.stallReportAfterMs ? { stage: live.silence.stage, forMs } : null;
}

function processOf(daemon: Daemon, run: RunRow, facts: RunFacts): StageRowsInput["process"] {
  const { process } = facts;
  if (process === null || run.exitedAtMs !== null) return null;
  const startedAtMs = readProcessStart(daemon.store.db, run.id);
  return { stage: process.stage, attempt: process.attempt, startedAtMs };
}

// The feed may have been trimmed, and rows may have been written by other programs: either fills in for the other.
function instants(run: RunRow, told: Timeline | undefined): Timeline {
  return {
    claimedAtMs: told?.claimedAtMs ?? run.createdAtMs,
    startedAtMs: told?.startedAtMs ?? run.startedAtMs,
    finishedAtMs: terminal(run.state) ? (told?.finishedAtMs ?? run.exitedAtMs) : null,
  };
}

function reportRun(daemon: Daemon, run: RunRow, log: readonly StageRecord[], told: Timeline | undefined): RunReport {
  const facts = readFacts(daemon.store.db, run.id);
  const flow: Flow | null = parseFlowSnapshot(run.flowJson);
  const rows = stageRows({
    flow,
    log,
    terminal: terminal(run.state),
    verdicts: facts.verdicts,
    reports: facts.reports,
    process: processOf(daemon, run, facts),
    silence: silenceOf(daemon, run, facts),
  });
  const halt = haltOf(run.state, flow, log);
  const { stall, commits } = facts;
  return {
    run,
    alias: runAlias(run.ticketId, run.attempt),
    facts,
    timeline: instants(run, told),
    rows,
    halt,
    reason: derivedReason({ state: run.state, stall, log, rows, commits, halt }),
  };
}

/** Reports on several runs at once, in the order given. */
export function reportRuns(daemon: Daemon, runs: readonly RunRow[]): RunReport[] {
  const q = daemon.store.db;
  const ids = runs.map((run) => run.id);
  const logs = readStageLogs(q, ids);
  const timelines = readTimelines(q, ids);
  return runs.map((run) => reportRun(daemon, run, logs.get(run.id) ?? [], timelines.get(run.id)));
}

/** The element of a ticket's `runs`. */
export function runSummary(report: RunReport): RunSummary {
  const { run, timeline } = report;
  return {
    id: run.id,
    alias: report.alias,
    attempt: run.attempt,
    state: run.state,
    terminal: terminal(run.state),
    started_at_ms: timeline.startedAtMs ?? timeline.claimedAtMs,
    finished_at_ms: timeline.finishedAtMs,
    reason: report.reason,
    stall: report.facts.stall,
    stages: stageStrip(report.rows),
  };
}

/** The first agent stage's last exit; 0 for a run that settled without any agent having exited, null after a signal. */
export function agentExit(run: RunRow, facts: RunFacts): number | null {
  if (run.exitCode !== null) return run.exitCode;
  if (facts.exit !== null) return facts.exit.exitCode;
  return terminal(run.state) ? 0 : null;
}

/** The vendor's diagnostic, else the derived reason; a silence kill always gives the derived one. */
function detailReason({ facts, reason }: RunReport): string | null {
  return facts.stall === null ? (facts.vendor?.diagnostic ?? reason) : reason;
}

/** `value` of `show <run>`. */
export function runDetail(report: RunReport, ticketName: string | null): RunDetail {
  const { run, facts, timeline } = report;
  const exit = agentExit(run, facts);
  return {
    id: run.id,
    alias: report.alias,
    attempt: run.attempt,
    note: null,
    ticket: run.ticketId,
    ticket_name: ticketName,
    state: run.state,
    terminal: terminal(run.state),
    branch: run.branch,
    worktree: run.worktreePath,
    target_branch: run.targetBranch,
    wip: facts.wip,
    claimed_at_ms: timeline.claimedAtMs,
    started_at_ms: timeline.startedAtMs,
    finished_at_ms: timeline.finishedAtMs,
    exit_code: exit,
    agent_exit_code: exit,
    reason: detailReason(report),
    classification: classificationOf(facts.vendor),
    stall: facts.stall,
    halt: report.halt,
    stages: report.rows,
  };
}

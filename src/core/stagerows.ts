// A run's stage rows: what happened in each stage, where the run stands, what it has not reached (protocol.md 6.5).

import type { Confidence, PanelReport, StageRecord, StageVerdict, VerdictSource } from "./evidence.ts";
import type { Flow, Stage } from "./flow.ts";
import { type Seat, tally } from "./panel.ts";
import { nextStep } from "./walk.ts";

export type StageState = "passed" | "failed" | "running" | "pending";

/** The five keys of a stage row that a run summary keeps; wire spelling. */
export type StageStrip = {
  stage: string;
  state: StageState;
  /** Execution number from 1; 0 on a `pending` row. */
  attempt: number;
  advisory: boolean;
  silent_for_ms: number | null;
};

export type ReviewerRow = Seat;

/** One execution of a stage, or a stage not reached; wire spelling. */
export type StageRow = StageStrip & {
  started_at_ms: number | null;
  finished_at_ms: number | null;
  duration_ms: number | null;
  exit_code: number | null;
  verdict_source: VerdictSource | null;
  reason: string | null;
  confidence: Confidence | null;
  reviewers: ReviewerRow[];
};

export type StageRowsInput = {
  /** The run's own snapshot; null when it cannot be read. */
  flow: Flow | null;
  /** In `seq` order. */
  log: readonly StageRecord[];
  terminal: boolean;
  verdicts: readonly StageVerdict[];
  reports: readonly PanelReport[];
  /** Start (epoch ms) of the process of the execution that runs, once known. */
  process: { stage: string; attempt: number; startedAtMs: number | null } | null;
  /** How long the agent of that stage has been silent, once that is long enough to be told. */
  silence: { stage: string; forMs: number } | null;
};

function observed(ms: number | null): number | null {
  return ms !== null && ms > 0 ? ms : null;
}

function duration(start: number | null, finish: number | null): number | null {
  return start === null || finish === null ? null : Math.max(0, finish - start);
}

function emptyRow(stage: string, state: StageState, attempt: number, advisory: boolean): StageRow {
  return {
    stage,
    state,
    attempt,
    started_at_ms: null,
    finished_at_ms: null,
    duration_ms: null,
    exit_code: null,
    verdict_source: null,
    reason: null,
    confidence: null,
    advisory,
    silent_for_ms: null,
    reviewers: [],
  };
}

function advisory(stage: Stage | undefined): boolean {
  return stage?.failAction.kind === "continue";
}

function confidenceOf(input: StageRowsInput, record: StageRecord): Confidence | null {
  const report = input.verdicts.find((one) => one.stage === record.stage && one.attempt === record.attempt);
  return report?.confidence ?? null;
}

/** The seats of a panel that was asked; its reason is counted anew, as its verdict is. */
function panelPart(input: StageRowsInput, record: StageRecord, stage: Stage): Partial<StageRow> {
  if (stage.resultCheck.kind !== "panel" || record.verdictSource !== "panel") return {};
  const reports = input.reports.filter(
    (report) => report.stageIndex === record.stageIndex && report.attempt === record.attempt,
  );
  const counted = tally(stage.resultCheck, reports);
  return { exit_code: null, reason: counted.reason, reviewers: counted.seats };
}

function resolvedRow(input: StageRowsInput, record: StageRecord, stage: Stage | undefined): StageRow {
  const started = observed(record.startedAtMs);
  const finished = observed(record.finishedAtMs);
  return {
    ...emptyRow(record.stage, record.state === "passed" ? "passed" : "failed", record.attempt, advisory(stage)),
    started_at_ms: started,
    finished_at_ms: finished,
    duration_ms: duration(started, finished),
    exit_code: record.exitCode,
    verdict_source: record.verdictSource,
    reason: record.reason,
    confidence: record.verdictSource === "reported" ? confidenceOf(input, record) : null,
    ...(stage === undefined ? {} : panelPart(input, record, stage)),
  };
}

function runningRow(input: StageRowsInput, stage: Stage, attempt: number): StageRow {
  const { process, silence } = input;
  const here = process !== null && process.stage === stage.name && process.attempt === attempt;
  return {
    ...emptyRow(stage.name, "running", attempt, advisory(stage)),
    started_at_ms: here ? observed(process.startedAtMs) : null,
    silent_for_ms: silence !== null && silence.stage === stage.name ? silence.forMs : null,
  };
}

type Standing = { stage: Stage; attempt: number };

/** Where an unsettled run stands; null when its walk is over and only its settlement is missing. */
function standing(input: StageRowsInput, flow: Flow): Standing | null {
  if (input.terminal) return null;
  const step = nextStep(flow, input.log);
  if (step.kind === "run") {
    const stage = flow.stages[step.index];
    return stage === undefined ? null : { stage, attempt: step.attempt };
  }
  if (step.kind === "complete" || step.cause !== "corrupt_log") return null;
  const first = flow.stages.find((stage) => !input.log.some((row) => row.state !== null && row.stage === stage.name));
  return first === undefined ? null : { stage: first, attempt: 1 };
}

/** Stage names in the order they are shown: the flow's, and recorded ones it lacks at their recorded index. */
function stageNames(flow: Flow | null, log: readonly StageRecord[]): string[] {
  const names = flow === null ? [] : flow.stages.map((stage) => stage.name);
  for (const record of log) {
    if (record.state === null || names.includes(record.stage)) continue;
    names.splice(Math.max(0, record.stageIndex), 0, record.stage);
  }
  return names;
}

/** Every stage row in the order it is shown: grouped by stage in flow order, not by time. */
export function stageRows(input: StageRowsInput): StageRow[] {
  const { flow, log } = input;
  const stages = new Map(flow?.stages.map((stage) => [stage.name, stage]));
  const at = flow === null ? null : standing(input, flow);
  return stageNames(flow, log).flatMap((name) => {
    const stage = stages.get(name);
    const rows = log
      .filter((record) => record.stage === name && record.state !== null)
      .map((record) => resolvedRow(input, record, stage));
    if (at !== null && at.stage.name === name) rows.push(runningRow(input, at.stage, at.attempt));
    return rows.length > 0 ? rows : [emptyRow(name, "pending", 0, advisory(stage))];
  });
}

/** The strip that a run summary shows of the same rows. */
export function stageStrip(rows: readonly StageRow[]): StageStrip[] {
  return rows.map(({ stage, state, attempt, advisory, silent_for_ms }) => ({
    stage,
    state,
    attempt,
    advisory,
    silent_for_ms,
  }));
}

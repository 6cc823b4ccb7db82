// A run's evidence: facts kept under dedupe keys, and the rows of its walk (engine.md 3.2, 3.3).

import { and, asc, eq, inArray, isNull, sql } from "drizzle-orm";
import type {
  CommitObservation,
  GateTree,
  PanelReport,
  RunFacts,
  StageProcess,
  StageRecord,
  StageTree,
  StageVerdict,
  Stall,
  VendorEvidence,
  VerdictSource,
} from "../core/evidence.ts";
import { appendEvidence, deleteEvidence, insertFact, replaceEvidence, upsertEvidence } from "./evidence-rows.ts";
import type { Queries } from "./open.ts";
import { runEvidence, runs, stageRuns } from "./tables.ts";

type Data = Record<string, unknown>;

function parseData(text: string): Data {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Data) : {};
  } catch {
    return {};
  }
}

function emptyFacts(): RunFacts {
  return {
    process: null,
    exit: null,
    commits: null,
    vendor: null,
    captureIncomplete: false,
    cancelRequested: false,
    stall: null,
    verdicts: [],
    reports: [],
    mergeResult: null,
    recovery: null,
    externalMerge: null,
    wip: null,
    gateTrees: [],
    stageTrees: [],
  };
}

const readers: Record<string, (facts: RunFacts, data: Data) => void> = {
  stage_process: (facts, data) => {
    facts.process = { phase: "action", attempt: 1, ...data } as StageProcess;
  },
  exit_classified: (facts, data) => {
    facts.exit = {
      exitCode: (data["exit_code"] as number | null) ?? null,
      attempt: (data["attempt"] as number) ?? null,
    };
  },
  commits_observed: (facts, data) => {
    facts.commits = { complete: data["complete"] === true, oids: (data["oids"] as string[]) ?? [] };
  },
  vendor_error_classified: (facts, data) => {
    facts.vendor = data as VendorEvidence;
  },
  capture_incomplete: (facts) => {
    facts.captureIncomplete = true;
  },
  cancel_requested: (facts) => {
    facts.cancelRequested = true;
  },
  output_stall: (facts, data) => {
    facts.stall = data as Stall;
  },
  stage_verdict: (facts, data) => {
    facts.verdicts.push({ attempt: 1, confidence: null, reason: null, tip: null, ...data } as StageVerdict);
  },
  panel_report: (facts, data) => {
    const report = { attempt: 1, confidence: null, reason: null, ...data, stageIndex: data["stage_index"] };
    facts.reports.push(report as unknown as PanelReport);
  },
  recovery_classified: (facts, data) => {
    facts.recovery = data["classification"] === "orphaned" ? "orphaned" : "resumed";
  },
  merge_result: (facts, data) => {
    facts.mergeResult = data["merged"] === true;
  },
  external_merge_observed: (facts, data) => {
    facts.externalMerge = data as NonNullable<RunFacts["externalMerge"]>;
  },
  uncommitted_kept: (facts, data) => {
    facts.wip = data as NonNullable<RunFacts["wip"]>;
  },
  gate_tree: (facts, { stage_index: stageIndex, ...data }) => {
    facts.gateTrees.push({ ...data, stageIndex } as GateTree);
  },
  stage_tree: (facts, { stage_index: stageIndex, ...data }) => {
    facts.stageTrees.push({ ...data, stageIndex } as StageTree);
  },
};

function foldFacts(rows: readonly { kind: string; dataJson: string }[]): RunFacts {
  const facts = emptyFacts();
  for (const row of rows) readers[row.kind]?.(facts, parseData(row.dataJson));
  return facts;
}

/** Everything kept about a run beside its walk. */
export function readFacts(q: Queries, runId: string): RunFacts {
  const rows = q
    .select({ kind: runEvidence.kind, dataJson: runEvidence.dataJson })
    .from(runEvidence)
    .where(eq(runEvidence.runId, runId))
    .orderBy(asc(runEvidence.sequence))
    .all();
  return foldFacts(rows);
}

function stageRecord(row: typeof stageRuns.$inferSelect): StageRecord {
  const evidence = row.evidenceJson === null ? {} : parseData(row.evidenceJson);
  return {
    stageIndex: row.stageIndex,
    stage: row.stage,
    state: row.state,
    attempt: row.attempt,
    phase: row.phase,
    startedAtMs: row.startedAtMs,
    finishedAtMs: row.finishedAtMs,
    exitCode: row.exitCode,
    verdictSource: (evidence["verdict_source"] as VerdictSource | undefined) ?? null,
    reason: (evidence["reason"] as string | undefined) ?? null,
  };
}

/** The walk's log of a run, in `seq` order. */
export function readStageLog(q: Queries, runId: string): StageRecord[] {
  return q
    .select()
    .from(stageRuns)
    .where(eq(stageRuns.runId, runId))
    .orderBy(asc(stageRuns.seq))
    .all()
    .map(stageRecord);
}

/** The walk's logs of several runs at once, each in `seq` order. */
export function readStageLogs(q: Queries, runIds: readonly string[]): Map<string, StageRecord[]> {
  const logs = new Map<string, StageRecord[]>(runIds.map((id) => [id, []]));
  if (runIds.length === 0) return logs;
  const rows = q
    .select()
    .from(stageRuns)
    .where(inArray(stageRuns.runId, [...runIds]))
    .orderBy(asc(stageRuns.runId), asc(stageRuns.seq))
    .all();
  for (const row of rows) logs.get(row.runId)?.push(stageRecord(row));
  return logs;
}

/** Appends one execution's rows; a row whose key is there already is rewritten in place and keeps its `seq`. */
export function appendStageRows(tx: Queries, runId: string, records: readonly StageRecord[]): void {
  for (const record of records) {
    const columns = {
      stage: record.stage,
      state: record.state,
      startedAtMs: record.startedAtMs,
      finishedAtMs: record.finishedAtMs,
      exitCode: record.exitCode,
      evidenceJson: JSON.stringify({
        output: `runs/${runId}/output.ndjson`,
        verdict_source: record.verdictSource,
        reason: record.reason,
      }),
    };
    tx.insert(stageRuns)
      .values({
        runId,
        seq: sql`(select coalesce(max(seq), 0) + 1 from stage_runs where run_id = ${runId})`,
        stageIndex: record.stageIndex,
        attempt: record.attempt,
        phase: record.phase,
        ...columns,
      })
      .onConflictDoUpdate({
        target: [stageRuns.runId, stageRuns.stageIndex, stageRuns.attempt, stageRuns.phase],
        set: columns,
      })
      .run();
  }
}

/** Stores the process a run stands on; at most one per run. */
export function storeStageProcess(tx: Queries, runId: string, process: StageProcess, now: number): void {
  upsertEvidence(tx, { runId, kind: "stage_process", data: process }, now);
}

export function clearStageProcess(tx: Queries, runId: string): void {
  deleteEvidence(tx, runId, "stage_process");
}

/** The facts of an agent's exit, as the exit checkpoint stores them. */
export type ExitFacts = {
  exitCode: number | null;
  attempt: number;
  commits: CommitObservation;
  vendor: VendorEvidence | null;
  captureComplete: boolean;
};

/** Stores the primary agent's exit: a later exit replaces an earlier one, and what no longer holds is removed. */
export function storeExitFacts(tx: Queries, runId: string, exit: ExitFacts, now: number): void {
  upsertEvidence(
    tx,
    { runId, kind: "exit_classified", data: { exit_code: exit.exitCode, attempt: exit.attempt } },
    now,
  );
  storeCommits(tx, runId, exit.commits, now);
  if (exit.vendor === null) deleteEvidence(tx, runId, "vendor_error_classified");
  else upsertEvidence(tx, { runId, kind: "vendor_error_classified", data: exit.vendor }, now);
  if (exit.captureComplete) deleteEvidence(tx, runId, "capture_incomplete");
  else upsertEvidence(tx, { runId, kind: "capture_incomplete", data: {} }, now);
}

export function storeCommits(tx: Queries, runId: string, commits: CommitObservation, now: number): void {
  upsertEvidence(tx, { runId, kind: "commits_observed", data: commits }, now);
}

/** Records an operator's wish to end the run; asking twice is one wish. */
export function requestCancel(tx: Queries, runId: string, now: number): void {
  appendEvidence(tx, { runId, kind: "cancel_requested", key: `cancel_requested:${runId}`, data: {} }, now);
}

/** A worker's report for its stage execution; false when one was filed before. */
export function fileVerdict(tx: Queries, runId: string, verdict: StageVerdict, now: number): boolean {
  const key = `verdict:${runId}:${verdict.stage}:${verdict.attempt}`;
  return appendEvidence(tx, { runId, kind: "stage_verdict", key, data: verdict }, now);
}

/** A reviewer's report from its seat; false when one was filed before. */
export function fileReport(tx: Queries, runId: string, report: PanelReport, now: number): boolean {
  const key = `panel:${runId}:${report.stageIndex}:${report.attempt}:${report.reviewer}`;
  const { stageIndex, ...rest } = report;
  return appendEvidence(tx, { runId, kind: "panel_report", key, data: { ...rest, stage_index: stageIndex } }, now);
}

/** Whether the run's cancellation was asked for. */
export function cancelRequested(q: Queries, runId: string): boolean {
  const where = and(eq(runEvidence.runId, runId), eq(runEvidence.kind, "cancel_requested"));
  return q.select({ sequence: runEvidence.sequence }).from(runEvidence).where(where).limit(1).get() !== undefined;
}

/** Records that silence ends a run, only while its agent runs and has not exited; false when it does not, or was recorded. */
export function storeStall(tx: Queries, runId: string, stall: Stall, now: number): boolean {
  const alive = tx
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.id, runId), eq(runs.state, "running"), isNull(runs.exitedAtMs)))
    .get();
  if (alive === undefined) return false;
  return appendEvidence(tx, { runId, kind: "output_stall", key: `output_stall:${runId}`, data: stall }, now);
}

/** Records what a gate's process is started on. One that has to be started once more sees the worktree anew. */
export function storeGateTree(tx: Queries, runId: string, { stageIndex, ...tree }: GateTree, now: number): void {
  const key = `gate_tree:${runId}:${stageIndex}:${tree.attempt}:${tree.phase}:${tree.seat ?? ""}`;
  replaceEvidence(tx, { runId, kind: "gate_tree", key, data: { stage_index: stageIndex, ...tree } }, now);
}

/** Records where the branch stood around an execution, with its rows. */
export function storeStageTree(tx: Queries, runId: string, { stageIndex, ...tree }: StageTree, now: number): void {
  const key = `stage_tree:${runId}:${stageIndex}:${tree.attempt}`;
  replaceEvidence(tx, { runId, kind: "stage_tree", key, data: { stage_index: stageIndex, ...tree } }, now);
}

/** Records that nobody knows how the run's agent ended. */
export function storeOrphaned(tx: Queries, runId: string, now: number): void {
  insertFact(tx, { runId, kind: "recovery_classified", data: { classification: "orphaned" } }, now);
}

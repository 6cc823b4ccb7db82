// One run, from its claim to the end of its walk. Follow a run here: workspace, then stage after stage by replay.

import { type Flow, primaryIndex } from "../core/flow.ts";
import { parseFlowSnapshot, parseTicketSnapshot } from "../core/snapshot.ts";
import { nextStep } from "../core/walk.ts";
import { readFacts, readStageLog } from "../store/evidence.ts";
import { readRun } from "../store/runs.ts";
import type { RunRow } from "../store/tables.ts";
import { readTicket } from "../store/tickets.ts";
import { clearLeftoverMerge } from "./action-merge.ts";
import type { Daemon, LiveRun } from "./context.ts";
import { endRecordedProcess } from "./end-process.ts";
import type { WalkEnd } from "./settle.ts";
import { type DrivenRun, type Execution, performStage } from "./stage.ts";
import { awaitStorage, noteStorageFull } from "./storage.ts";
import { bootSupervisor, dismissSupervisor } from "./supervise.ts";
import { AdmissionFailed, AgentLost, Cancelled, Superseded } from "./walk-end.ts";
import { openWorkspace } from "./workspace.ts";

/** What became of a driven run. */
export type DriveResult =
  | { kind: "ended"; end: WalkEnd }
  /** `created`: a workspace was made in which nothing ever ran. */
  | { kind: "admission_failed"; problem: string; created: boolean }
  | { kind: "superseded"; state: string };

function ended(run: { runId: string; merged: boolean | null }, end: Partial<WalkEnd>): DriveResult {
  const rest = { haltIndex: null, halted: false, recovery: null, resumeError: null };
  return { kind: "ended", end: { ...rest, runId: run.runId, merged: run.merged, ...end } };
}

/** The flow of a run: its snapshot; without any, the one its ticket is bound to now. */
function flowOf(daemon: Daemon, run: RunRow): Flow | null {
  if (run.flowJson !== null) return parseFlowSnapshot(run.flowJson);
  return daemon.flows.get(readTicket(daemon.store.db, run.ticketId)?.flow ?? "default") ?? null;
}

/** The run as its row and its snapshots tell; null when something the walk needs is missing or unreadable. */
function drivenRun(daemon: Daemon, run: RunRow, live: LiveRun): DrivenRun | null {
  const flow = flowOf(daemon, run);
  const ticket = parseTicketSnapshot(run.ticketJson);
  const { branch, worktreePath: worktree, targetBranch } = run;
  if (flow === null || ticket === null || branch === null || worktree === null || targetBranch === null) return null;
  return { runId: run.id, ticketId: run.ticketId, branch, worktree, targetBranch, flow, ticket, live, merged: null };
}

function mergedSoFar(daemon: Daemon, run: DrivenRun): boolean | null {
  const merge = run.flow.stages.findIndex((stage) => stage.action.kind === "merge");
  const last = readStageLog(daemon.store.db, run.runId).findLast(
    (row) => row.stageIndex === merge && row.state !== null,
  );
  return last === undefined ? null : last.state === "passed";
}

/** Whether a vendor or the watchdog ended the primary agent for good: no later stage may run on that. */
function endedForGood(daemon: Daemon, run: DrivenRun): boolean {
  const facts = readFacts(daemon.store.db, run.runId);
  if (facts.vendor === null && facts.stall === null) return false;
  const primary = primaryIndex(run.flow);
  return readStageLog(daemon.store.db, run.runId).some(
    (row) => row.stageIndex === primary && row.state !== null && row.attempt === facts.exit?.attempt,
  );
}

/** Whether the run's cancellation was asked for; what it stands on is ended first, a merge it interrupted given up. */
async function cancelled(daemon: Daemon, run: DrivenRun): Promise<boolean> {
  const { cancelRequested, process } = readFacts(daemon.store.db, run.runId);
  if (!cancelRequested && !run.live.cancelling) return false;
  if (process?.merge === undefined) await endRecordedProcess(daemon, run.runId);
  else await clearLeftoverMerge(daemon, run);
  return true;
}

/** What ends the walk before its next step, whatever that would be. */
async function endedBefore(daemon: Daemon, run: DrivenRun): Promise<DriveResult | null> {
  if (await cancelled(daemon, run)) return ended(run, {});
  if (readFacts(daemon.store.db, run.runId).recovery === "orphaned") return ended(run, { recovery: "orphaned" });
  return endedForGood(daemon, run) ? ended(run, {}) : null;
}

async function walk(daemon: Daemon, run: DrivenRun): Promise<DriveResult> {
  for (;;) {
    const over = await endedBefore(daemon, run);
    if (over !== null) return over;
    const step = nextStep(run.flow, readStageLog(daemon.store.db, run.runId));
    if (step.kind === "complete") return ended(run, {});
    if (step.kind === "halted") return ended(run, { halted: true, haltIndex: step.index });
    const stage = run.flow.stages[step.index];
    if (stage === undefined) return ended(run, { halted: true });
    const stopped = await attempt(daemon, { run, stage, index: step.index, attempt: step.attempt });
    if (stopped !== null) return stopped;
    await daemon.hook(`after-stage-${stage.name}`);
  }
}

/** What an error around a stage comes to: a full disk is waited out, anything else ends the walk. */
async function failed(daemon: Daemon, { run, index }: Execution, error: unknown): Promise<DriveResult | null> {
  if (noteStorageFull(daemon, error)) {
    // Nothing is lost by that: once there is room the execution is taken up from its records, as after a crash.
    await awaitStorage(daemon, run.live);
    return null;
  }
  const problem = error instanceof Error ? error.message : String(error);
  const fields = { run_id: run.runId, stage_index: index, error: problem };
  daemon.log.error("sloop::driver", "stage_execution_failed", fields);
  return ended(run, { halted: true, haltIndex: index });
}

/** Performs one execution; what it threw becomes the walk's end. Null: the walk goes on. */
async function attempt(daemon: Daemon, execution: Execution): Promise<DriveResult | null> {
  const { run } = execution;
  try {
    await performStage(daemon, execution);
    return null;
  } catch (error) {
    if (error instanceof Superseded) return { kind: "superseded", state: error.message };
    if (error instanceof AdmissionFailed) {
      return { kind: "admission_failed", problem: error.message, created: !error.started };
    }
    if (error instanceof AgentLost) return ended(run, { recovery: "orphaned" });
    if (error instanceof Cancelled) return ended(run, {});
    return failed(daemon, execution, error);
  }
}

/** Starts the supervisor of the run's first process while its worktree is being made. */
function bootAhead(daemon: Daemon, live: LiveRun, run: RunRow): void {
  const first = parseFlowSnapshot(run.flowJson)?.stages[0]?.action.kind;
  if (first !== "agent" && first !== "exec") return;
  live.booted = bootSupervisor({ command: daemon.self, environment: daemon.environment });
}

/** Drives a freshly claimed run: opens its workspace at `tip`, then walks. */
export async function driveClaimed(daemon: Daemon, live: LiveRun, tip: string): Promise<DriveResult> {
  const claimed = readRun(daemon.store.db, live.runId);
  if (claimed === null) return { kind: "superseded", state: "gone" };
  const opened = openWorkspace(daemon, claimed, tip);
  bootAhead(daemon, live, claimed);
  try {
    const opening = await opened;
    if (opening.kind === "failed") return { ...opening, kind: "admission_failed" };
    if (opening.kind === "taken") return { kind: "superseded", state: "not claimed any more" };
    return await driveOpened(daemon, live, null);
  } finally {
    if (live.booted !== null) dismissSupervisor(live.booted);
    live.booted = null;
  }
}

/** Drives a run whose workspace is open, from wherever its log says it stands. */
export async function driveOpened(daemon: Daemon, live: LiveRun, recovery: "resumed" | null): Promise<DriveResult> {
  const row = readRun(daemon.store.db, live.runId);
  if (row === null || row.exitedAtMs !== null) return { kind: "superseded", state: row?.state ?? "gone" };
  const run = drivenRun(daemon, row, live);
  if (run === null) {
    const problem = "the run's flow or ticket snapshot, branch, worktree or target branch is missing or unreadable";
    daemon.log.error("sloop::recovery", "driver_resume_failed", {
      run_id: row.id,
      ticket_id: row.ticketId,
      error: problem,
    });
    return ended({ runId: row.id, merged: null }, { halted: true, recovery, resumeError: problem });
  }
  run.merged = mergedSoFar(daemon, run);
  const result = await walk(daemon, run);
  if (result.kind !== "ended") return result;
  return { kind: "ended", end: { ...result.end, recovery: result.end.recovery ?? recovery } };
}

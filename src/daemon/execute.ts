// Runs one stage process under its supervisor, or takes up what an earlier daemon left of that very execution.

import type { StageProcess as StageCheckpoint } from "../core/evidence.ts";
import { cancelRequested, readFacts, storeStageProcess } from "../store/evidence.ts";
import { readRun, startAgentProcess } from "../store/runs.ts";
import type { Environment } from "../system/environment.ts";
import { removeIfPresent } from "../system/files.ts";
import { channelSocket, outputLog, runDirectory } from "../system/paths.ts";
import { identify } from "../system/process.ts";
import type { ExitRecord } from "../system/stage-process.ts";
import type { Daemon } from "./context.ts";
import { restoreCredential } from "./credential.ts";
import type { Execution } from "./stage.ts";
import { stopRecordedProcess } from "./stop-process.ts";
import {
  type Adoption,
  attachSupervised,
  awaitStartRecord,
  type Ending,
  type ExitFacts,
  executionName,
  exitFacts,
  exitRecordPath,
  readExitRecord,
  readStartRecord,
  type Spawned,
  type Supervised,
  startRecordPath,
  startSupervised,
} from "./supervise.ts";
import { Cancelled, Superseded, WalkError } from "./walk-end.ts";

export type ProcessFacts = Pick<ExitFacts, "exitCode" | "startedAtMs" | "finishedAtMs" | "captureComplete">;

export type ProcessResult =
  | { kind: "exited"; facts: ProcessFacts }
  | { kind: "not_started"; problem: string; startedAtMs: number; finishedAtMs: number };
/** Only an agent may be lost, with nothing to tell how it ended. Anything else is run once more. */
export type AgentResult = ProcessResult | { kind: "lost" };

export type Phase = { phase: "action" | "check"; seat: number | null };

export type ProcessPlan = Phase & {
  source: "agent" | "stage";
  gated: boolean;
  /** Called only when the process has to be started: mints what it needs. */
  launch(): Promise<{ argv: string[]; environment: Environment }>;
};

/** What is known only while the plan is carried out. */
type Job = { daemon: Daemon; execution: Execution; plan: ProcessPlan };
type Records = { exit: string; start: string; channel: string };

/** Throws Cancelled when the run's cancellation was asked for; an intent that cannot be read counts as one. */
export function requireNotCancelled(daemon: Daemon, runId: string): void {
  let cancelled = true;
  try {
    cancelled = cancelRequested(daemon.store.db, runId);
  } catch (error) {
    daemon.log.error("sloop::driver", "cancellation_read_failed", { run_id: runId, error: String(error) });
  }
  if (cancelled) throw new Cancelled();
}

function recordsOf(daemon: Daemon, { run, index, attempt }: Execution, { phase, seat }: Phase): Records {
  const directory = runDirectory(daemon.paths, run.runId);
  const execution = { stageIndex: index, attempt, phase, seat };
  return {
    exit: exitRecordPath(directory, execution),
    start: startRecordPath(directory, execution),
    channel: channelSocket(daemon.paths, run.runId, executionName(execution)),
  };
}

/** How an execution ended by its exit record; null without one, or with one that says nothing about the work (*lost*). */
export function recordedExit(daemon: Daemon, execution: Execution, phase: Phase): ProcessFacts | null {
  const record = readExitRecord(recordsOf(daemon, execution, phase).exit);
  if (record === null || (record.signal !== null && !record.attended)) return null;
  return exitFacts(record);
}

/** Whether this execution was ever started. */
export function executionKnown(daemon: Daemon, execution: Execution, phase: Phase): boolean {
  const { exit, start } = recordsOf(daemon, execution, phase);
  return readExitRecord(exit) !== null || readStartRecord(start) !== null;
}

/** A record of a signal that nobody attended: whatever took the process says nothing about its work. */
function isLost(ending: Ending): boolean {
  return ending.lost || (ending.facts.signal !== null && !ending.facts.attended);
}

function noteOutput({ daemon, execution, plan }: Job): (sequence: number) => void {
  const { live } = execution.run;
  return (sequence) => {
    if (plan.source !== "agent" || live.silence === null) return;
    live.silence.lastOutputAtMs = daemon.clock.now();
    live.silence.lastOutputSequence = sequence;
  };
}

function checkpointOf({ execution, plan }: Job, process: Spawned): StageCheckpoint {
  return {
    stage: execution.stage.name,
    attempt: execution.attempt,
    pid: process.pid,
    pid_start_time: process.pidStartTime,
    process_group_id: process.processGroupId,
    phase: plan.phase,
    ...(plan.seat === null ? {} : { seat: plan.seat }),
  };
}

/** Stores the process a run stands on, before anybody may rely on it. Throws Superseded when the run is not ours any more. */
function storeCheckpoint(job: Job, process: Spawned): void {
  const { daemon, execution, plan } = job;
  const { run, stage, attempt } = execution;
  const now = daemon.clock.now();
  const { pid, pidStartTime, processGroupId } = process;
  const stored = daemon.store.write((tx) => {
    const ours =
      plan.source !== "agent" || startAgentProcess(tx, run.runId, { pid, pidStartTime, processGroupId }, now);
    if (ours) storeStageProcess(tx, run.runId, checkpointOf(job, process), now);
    return ours;
  });
  if (!stored) throw new Superseded("settled");
  if (plan.source !== "agent") return;
  run.live.silence = { stage: stage.name, attempt, lastOutputAtMs: process.startedAtMs, lastOutputSequence: null };
  // Its deadlines are news to the timer.
  daemon.poke();
}

async function beforeCheckpoint({ daemon, execution, plan }: Job): Promise<void> {
  const { stage } = execution;
  if (stage.name === "test" && stage.action.kind === "exec" && plan.phase === "action") {
    await daemon.hook("before-test-process-checkpoint");
  }
  await daemon.hook(`before-stage-process-checkpoint-${stage.name}`);
}

/** Lets a known process go on, or ends it when a cancel came meanwhile. */
async function letGo({ daemon, execution }: Job, process: Supervised): Promise<void> {
  if (!cancelRequested(daemon.store.db, execution.run.runId)) {
    process.gate();
    return;
  }
  await stopRecordedProcess(daemon, execution.run.runId);
}

/** From a spawned process to one that is known and let go. */
async function makeKnown(job: Job, process: Supervised): Promise<void> {
  const { daemon, execution, plan } = job;
  await beforeCheckpoint(job);
  try {
    storeCheckpoint(job, process);
  } catch (error) {
    process.kill();
    await process.exited;
    throw error;
  }
  const { run, stage } = execution;
  if (plan.source === "agent") {
    const fields = { run_id: run.runId, stage: stage.name, pid: process.pid };
    daemon.log.info("sloop::driver", "agent_stage_started", fields);
  } else await daemon.hook(`after-stage-process-checkpoint-${stage.name}`);
  await letGo(job, process);
}

function factsOf(job: Job, facts: ExitFacts): ProcessResult {
  const { daemon, execution, plan } = job;
  const fields = { run_id: execution.run.runId, stage: execution.stage.name };
  if (facts.stragglersKilled > 0) {
    const event = plan.source === "agent" ? "stragglers_killed" : "stage_stragglers_killed";
    daemon.log.warn("sloop::driver", event, { ...fields, count: facts.stragglersKilled });
  }
  if (facts.holders.length > 0) {
    daemon.log.warn("sloop::driver", "output_held_open", { ...fields, pids: facts.holders });
  }
  return { kind: "exited", facts };
}

/** Starts the process anew and watches it to its end. */
async function start(job: Job): Promise<AgentResult> {
  const { daemon, execution, plan } = job;
  const { run, stage, attempt } = execution;
  const records = recordsOf(daemon, execution, plan);
  const startedAtMs = daemon.clock.now();
  const { argv, environment } = await plan.launch();
  const request = {
    runId: run.runId,
    argv,
    cwd: run.worktree,
    environment,
    gated: plan.gated,
    outputLog: outputLog(daemon.paths, run.runId),
    labels: { source: plan.source, stage: stage.name, attempt },
    startRecord: records.start,
    exitRecord: records.exit,
    channel: records.channel,
  };
  const { booted } = run.live;
  run.live.booted = null;
  const deps = { command: daemon.self, environment: daemon.environment, booted, onOutput: noteOutput(job) };
  const started = await startSupervised(request, deps);
  if (!started.ok) {
    return { kind: "not_started", problem: started.problem, startedAtMs, finishedAtMs: daemon.clock.now() };
  }
  await makeKnown(job, started.process);
  const ending = await started.process.exited;
  if (!ending.lost) return factsOf(job, ending.facts);
  await endOrphan(job, started.process);
  return lostOrAgain(job);
}

/** The supervisor died alone: what it watched must not go on unwatched. */
async function endOrphan({ daemon, execution }: Job, process: Pick<Supervised, "pid" | "pidStartTime">): Promise<void> {
  if (identify(process.pid, process.pidStartTime) !== "matches") return;
  if (await stopRecordedProcess(daemon, execution.run.runId)) return;
  throw new WalkError(`process ${process.pid} lost its supervisor and cannot be ended`);
}

/** An execution nobody can tell anything about: an agent's run is over, anything else runs once more. */
async function lostOrAgain(job: Job): Promise<AgentResult> {
  const { daemon, execution, plan } = job;
  if (plan.source === "agent") return { kind: "lost" };
  requireNotCancelled(daemon, execution.run.runId);
  const { exit, start: record } = recordsOf(daemon, execution, plan);
  removeIfPresent(exit);
  removeIfPresent(record);
  return start(job);
}

function isCheckpointed({ daemon, execution }: Job, pid: number): boolean {
  return readFacts(daemon.store.db, execution.run.runId).process?.pid === pid;
}

/** Serves the credential that the process was started with, unless recovery has done so already. */
function restoreOwnCredential({ daemon, execution, plan }: Job): void {
  const { run, stage, index, attempt } = execution;
  const row = readRun(daemon.store.db, run.runId);
  if (run.live.credential !== null || row?.workerToken == null || row.workerSocketPath === null) return;
  if (plan.source !== "agent" && !plan.gated) return;
  const scope = { runId: run.runId, stage: stage.name, stageIndex: index, attempt, seat: plan.seat };
  restoreCredential(daemon, run.live, { token: row.workerToken, socketPath: row.workerSocketPath, scope });
}

/** Takes up the process of an execution that an earlier daemon started. */
async function adopt(job: Job, spawned: Adoption["spawned"]): Promise<AgentResult> {
  const { daemon, execution, plan } = job;
  const { exit: exitRecord, start: startRecord, channel } = recordsOf(daemon, execution, plan);
  restoreOwnCredential(job);
  const process = await attachSupervised({ spawned, channel, exitRecord, startRecord, onOutput: noteOutput(job) });
  if (isCheckpointed(job, process.pid)) {
    storeCheckpoint(job, process);
    await letGo(job, process);
  } else {
    await makeKnown(job, process);
  }
  const ending = await process.exited;
  if (!ending.lost && !isLost(ending)) return factsOf(job, ending.facts);
  await endOrphan(job, process);
  return lostOrAgain(job);
}

/** The process ended while no daemon was up: as if it had ended just now, also where it was never made known. */
async function fromRecord(job: Job, exit: ExitRecord): Promise<AgentResult> {
  const facts = exitFacts(exit);
  if (isLost({ lost: false, facts })) return lostOrAgain(job);
  const { pid, pid_start_time: pidStartTime, process_group_id: processGroupId, started_at_ms: startedAtMs } = exit;
  storeCheckpoint(job, { pid, pidStartTime, processGroupId, startedAtMs });
  return factsOf(job, facts);
}

async function carryOut(job: Job): Promise<AgentResult> {
  const records = recordsOf(job.daemon, job.execution, job.plan);
  const exit = readExitRecord(records.exit);
  if (exit !== null) return fromRecord(job, exit);
  const found = await awaitStartRecord(records.start);
  if (found.kind === "spawned") return adopt(job, found.spawned);
  removeIfPresent(records.start);
  return start(job);
}

/**
 * Carries out an agent's plan: from an exit record if the execution has ended, by adoption if it is going on, else by
 * starting it. Throws Superseded or WalkError; whatever was started is ended by then.
 */
export function executeAgent(daemon: Daemon, execution: Execution, plan: ProcessPlan): Promise<AgentResult> {
  return carryOut({ daemon, execution, plan });
}

/** The same for every other process of a stage. Throws Cancelled, Superseded or WalkError. */
export async function execute(daemon: Daemon, execution: Execution, plan: ProcessPlan): Promise<ProcessResult> {
  const result = await carryOut({ daemon, execution, plan });
  if (result.kind !== "lost") return result;
  throw new WalkError("a process that is no agent's was taken for one");
}

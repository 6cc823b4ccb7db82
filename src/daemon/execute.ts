// Runs one stage process under its supervisor, or takes up what an earlier daemon left of that very execution.

import type { StageProcess as StageCheckpoint } from "../core/evidence.ts";
import { cancelRequested, readFacts, storeStageProcess } from "../store/evidence.ts";
import { readRun, startAgentProcess } from "../store/runs.ts";
import type { Environment } from "../system/environment.ts";
import { removeIfPresent } from "../system/files.ts";
import { outputLog } from "../system/paths.ts";
import { identify, stopGroup } from "../system/process.ts";
import type { ExitRecord } from "../system/stage-process.ts";
import type { Daemon } from "./context.ts";
import { restoreCredential } from "./credential.ts";
import { isLost, knownProcess, type Phase, type ProcessFacts, recordsOf } from "./records.ts";
import type { Execution } from "./stage.ts";
import { stopRecordedProcess } from "./stop-process.ts";
import {
  type Adoption,
  attachSupervised,
  awaitStartRecord,
  type Ending,
  type ExitFacts,
  exitFacts,
  readExitRecord,
  type Spawned,
  type Supervised,
  startSupervised,
} from "./supervise.ts";
import { AdmissionFailed, Cancelled, Superseded, WalkError } from "./walk-end.ts";

export type ProcessResult =
  | { kind: "exited"; facts: ProcessFacts }
  | { kind: "not_started"; problem: string; startedAtMs: number; finishedAtMs: number };
/** Only an agent may be lost, with nothing to tell how it ended. Anything else is run once more. */
export type AgentResult = ProcessResult | { kind: "lost" };

export type ProcessPlan = Phase & {
  source: "agent" | "stage";
  gated: boolean;
  /** Called only when the process has to be started: mints what it needs. */
  launch(): Promise<{ argv: string[]; environment: Environment }>;
};

/** What is known only while the plan is carried out. */
type Job = { daemon: Daemon; execution: Execution; plan: ProcessPlan };
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

function noteOutput({ daemon, execution, plan }: Job): (sequence: number, atMs: number) => void {
  const { live } = execution.run;
  return (sequence, atMs) => {
    if (plan.source !== "agent" || live.silence === null) return;
    // When it was captured, not when we hear of it: the clock may have moved on.
    live.silence.lastOutputAtMs = Number.isNaN(atMs) ? daemon.clock.now() : atMs;
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
    // Stored once: when it was is when the stage began.
    const known = readFacts(tx, run.runId).process;
    if (ours && (known?.pid !== pid || known.pid_start_time !== pidStartTime)) {
      storeStageProcess(tx, run.runId, checkpointOf(job, process), now);
    }
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

/** A process that cannot be made known: the very first of a run undoes its admission, any other ends the walk. */
function launchFailure({ daemon, execution, plan }: Job, error: unknown): unknown {
  if (error instanceof Superseded) return error;
  const { run, stage, index, attempt } = execution;
  const text = error instanceof Error ? error.message : String(error);
  const fields = { run_id: run.runId, stage: stage.name, error: text };
  daemon.log.error("sloop::driver", "stage_process_checkpoint_failed", fields);
  const first = plan.source === "agent" && index === 0 && attempt === 1;
  return first ? new AdmissionFailed(`the agent's process cannot be recorded: ${text}`, true) : error;
}

/** Ends a process that nobody may rely on, and its records with it: it never was. */
async function endUnknown({ daemon, execution, plan }: Job, process: Supervised): Promise<void> {
  process.kill();
  // A supervisor that was stopped hears nothing of that.
  if (identify(process.pid, process.pidStartTime) === "matches") await stopGroup(process.processGroupId, 0);
  process.giveUp();
  await process.exited;
  const records = recordsOf(daemon, execution, plan);
  removeIfPresent(records.exit);
  removeIfPresent(records.start);
}

/** From a spawned process to one that is known and let go. */
async function makeKnown(job: Job, process: Supervised): Promise<void> {
  const { daemon, execution, plan } = job;
  await beforeCheckpoint(job);
  try {
    storeCheckpoint(job, process);
  } catch (error) {
    await endUnknown(job, process);
    throw launchFailure(job, error);
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

/** Waits for the end, known to the liveness check meanwhile: it gives up a process that is gone while its supervisor is silent. */
async function awaitEnd({ execution }: Job, process: Supervised): Promise<Ending> {
  const { live } = execution.run;
  live.watched = process;
  try {
    return await process.exited;
  } finally {
    live.watched = null;
  }
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
  const ending = await awaitEnd(job, started.process);
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
  const ending = await awaitEnd(job, process);
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
  const known = knownProcess(job.daemon, job.execution, job.plan);
  if (known !== null) return adopt(job, known);
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

// An agent stage's action: the process, what git shows of its work, and the exit checkpoint (engine.md 11.1).

import type { CommitObservation } from "../core/evidence.ts";
import { primaryIndex } from "../core/flow.ts";
import { observeCommits } from "../git/inspect.ts";
import {
  type ExitFacts,
  readFacts,
  readStageLog,
  storeCommits,
  storeExitFacts,
  storeOrphaned,
} from "../store/evidence.ts";
import { readRun, releaseAgentProcess } from "../store/runs.ts";
import { agentCommand, stageEnvironment } from "./agent.ts";
import type { Daemon } from "./context.ts";
import { mintCredential } from "./credential.ts";
import { executeAgent, requireNotCancelled } from "./execute.ts";
import { type ProcessFacts, recordedExit } from "./records.ts";
import type { Execution, Reading } from "./stage.ts";
import { classifyAgent } from "./vendor.ts";
import { AdmissionFailed, AgentLost, Superseded } from "./walk-end.ts";

const action = { phase: "action", seat: null } as const;

function primary({ run, index }: Execution): boolean {
  return index === primaryIndex(run.flow);
}

async function launch(daemon: Daemon, execution: Execution) {
  const { run, stage, index, attempt } = execution;
  const log = readStageLog(daemon.store.db, run.runId);
  const argv = await agentCommand(daemon, { ...run, log, attempt });
  const credential = mintCredential(daemon, run.live, {
    runId: run.runId,
    stage: stage.name,
    stageIndex: index,
    attempt,
    seat: null,
  });
  return { argv, environment: stageEnvironment(daemon, { ...run, stage, attempt }, credential) };
}

/** Takes the agent's exit for this driver; throws Superseded when another owner has it. */
function takeExit(daemon: Daemon, execution: Execution, exit: ExitFacts, lost = false): void {
  const { run } = execution;
  const now = daemon.clock.now();
  const own = primary(execution);
  const taken = daemon.store.write((tx) => {
    if (!releaseAgentProcess(tx, run.runId, { ...(own ? { exitCode: exit.exitCode } : {}), lost }, now)) return false;
    if (own) storeExitFacts(tx, run.runId, exit, now);
    else storeCommits(tx, run.runId, exit.commits, now);
    // With the exit, so that a daemon which dies before the settlement does not take it for an agent that failed.
    if (lost) storeOrphaned(tx, run.runId, now);
    return true;
  });
  run.live.silence = null;
  if (!taken) throw new Superseded(readRun(daemon.store.db, run.runId)?.state ?? "gone");
}

async function checkpoint(
  daemon: Daemon,
  execution: Execution,
  facts: ProcessFacts,
  commits: CommitObservation,
): Promise<void> {
  const own = primary(execution);
  const { exitCode, captureComplete } = facts;
  const vendor = own ? await classifyAgent(daemon, execution, exitCode) : null;
  if (own) await daemon.hook("before-agent-exit-checkpoint");
  takeExit(daemon, execution, { exitCode, attempt: execution.attempt, commits, vendor, captureComplete });
  if (own) await daemon.hook("after-agent-exit-checkpoint");
}

/** The agent's process vanished without a trace: its exit is stored as unknown, and the walk is over. */
async function lost(daemon: Daemon, execution: Execution): Promise<never> {
  const { run, attempt } = execution;
  const commits = await observeCommits(daemon.paths.root, run.branch);
  const vendor = primary(execution) ? await classifyAgent(daemon, execution, null) : null;
  takeExit(daemon, execution, { exitCode: null, attempt, commits, vendor, captureComplete: false }, true);
  throw new AgentLost();
}

function readingOf(daemon: Daemon, execution: Execution, facts: ProcessFacts): Reading {
  const { exitCode, startedAtMs, finishedAtMs, captureComplete } = facts;
  const stored = readFacts(daemon.store.db, execution.run.runId);
  const passed = primary(execution)
    ? exitCode === 0 && stored.vendor === null && stored.stall === null
    : exitCode === 0 && captureComplete;
  return { passed, exitCode, startedAtMs, finishedAtMs, reason: null };
}

/** The reading of an exit that an earlier daemon checkpointed: the agent is not launched again. */
function checkpointed(daemon: Daemon, execution: Execution): Reading | null {
  const { run, attempt } = execution;
  if (!primary(execution)) return null;
  const { exit, captureIncomplete } = readFacts(daemon.store.db, run.runId);
  if (exit === null || (exit.attempt ?? 1) !== attempt) return null;
  const now = daemon.clock.now();
  const record = recordedExit(daemon, execution, action);
  return readingOf(daemon, execution, {
    exitCode: exit.exitCode,
    startedAtMs: record?.startedAtMs ?? now,
    finishedAtMs: record?.finishedAtMs ?? now,
    captureComplete: !captureIncomplete,
  });
}

/** Runs the agent, or takes up what is left of it. Throws AdmissionFailed when the very first process cannot be started. */
export async function agentAction(daemon: Daemon, execution: Execution): Promise<Reading> {
  const { run, stage, index, attempt } = execution;
  const stored = checkpointed(daemon, execution);
  if (stored !== null) return stored;
  const plan = { ...action, source: "agent" as const, gated: false, launch: () => launch(daemon, execution) };
  const result = await executeAgent(daemon, execution, plan);
  if (result.kind === "lost") return lost(daemon, execution);
  if (result.kind === "not_started") {
    const fields = { run_id: run.runId, stage: stage.name, error: result.problem };
    requireNotCancelled(daemon, run.runId);
    if (index === 0 && attempt === 1) throw new AdmissionFailed(result.problem);
    daemon.log.error("sloop::driver", "agent_stage_launch_failed", fields);
    const { startedAtMs, finishedAtMs, problem } = result;
    return { passed: false, exitCode: null, startedAtMs, finishedAtMs, reason: problem };
  }
  const commits = await observeCommits(daemon.paths.root, run.branch);
  await checkpoint(daemon, execution, result.facts, commits);
  return readingOf(daemon, execution, result.facts);
}

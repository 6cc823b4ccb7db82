// What an agent is started with: its target's argv, its prompt, and the environment of every process of a run.

import { dirname, join } from "node:path";
import { expandCommand } from "../core/command.ts";
import type { StageRecord } from "../core/evidence.ts";
import type { Flow, Reviewer, Stage } from "../core/flow.ts";
import { attemptReason, previousAttemptBlock, previousLines, reviewerPrompt, workerPrompt } from "../core/prompt.ts";
import type { TicketSnapshot } from "../core/snapshot.ts";
import { childEnvironment, type Environment } from "../system/environment.ts";
import { readIfPresent } from "../system/files.ts";
import type { OutputLabels } from "../system/output.ts";
import { lastLines } from "../system/output-read.ts";
import { outputLog } from "../system/paths.ts";
import type { Credential, Daemon } from "./context.ts";
import { WalkError } from "./walk-end.ts";

type Values = { target: string | null; model: string | null; effort: string | null; prompt: string };

function commandOf(daemon: Daemon, values: Values): string[] {
  const { agent } = daemon.config;
  const name = values.target ?? agent?.defaultTarget ?? null;
  const target =
    name !== null && agent !== null && Object.hasOwn(agent.targets, name) ? agent.targets[name] : undefined;
  if (target === undefined) throw new WalkError(`agent target \`${name ?? "?"}\` is not configured`);
  const command = expandCommand(target, values);
  if (!command.ok) throw new WalkError(`agent target \`${target.name}\` has no value for \`${command.missing}\``);
  return command.argv;
}

const authored = ".agents/sloop";

/** A file below `.agents/sloop` of the main checkout; null when it is not there. Throws WalkError when it cannot be read. */
function readAuthored(daemon: Daemon, name: string): string | null {
  let bytes: Uint8Array | null;
  try {
    bytes = readIfPresent(join(daemon.paths.root, authored, name));
  } catch (error) {
    throw new WalkError(`${authored}/${name} cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  return bytes === null ? null : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

function lastReturningFailure(flow: Flow, log: readonly StageRecord[]): StageRecord | undefined {
  return log.findLast((row) => row.state === "failed" && flow.stages[row.stageIndex]?.failAction.kind === "return_to");
}

/** The report of what failed, for a re-entered agent stage; null on its first attempt. Made from stored evidence only. */
async function previousAttempt(
  daemon: Daemon,
  runId: string,
  flow: Flow,
  log: readonly StageRecord[],
): Promise<string | null> {
  const failure = lastReturningFailure(flow, log);
  if (failure === undefined) return null;
  const { stage, attempt } = failure;
  const ofFailure = (labels: OutputLabels) => labels.stage === stage && (labels.attempt ?? 1) === attempt;
  const tail = await lastLines(outputLog(daemon.paths, runId), ofFailure, previousLines);
  // `lastLines` took the final newline already, and the block takes one off what it is given.
  const output = tail === "" ? "" : `${tail}\n`;
  return previousAttemptBlock({ stage, attempt, reason: attemptReason(failure), output });
}

export type AgentLaunch = {
  runId: string;
  ticket: TicketSnapshot;
  flow: Flow;
  log: readonly StageRecord[];
  attempt: number;
};

/** The argv of an agent stage. Throws WalkError for a target that is not configured any more and for instructions that cannot be read. */
export async function agentCommand(daemon: Daemon, launch: AgentLaunch): Promise<string[]> {
  const instructions = readAuthored(daemon, "instructions.md");
  const block = launch.attempt > 1 ? await previousAttempt(daemon, launch.runId, launch.flow, launch.log) : null;
  const { target, model, effort } = launch.ticket;
  return commandOf(daemon, { target, model, effort, prompt: workerPrompt({ instructions, previousAttempt: block }) });
}

/** The argv of one panel seat. Throws WalkError when the target or the prompt file is not there. */
export function reviewerCommand(daemon: Daemon, promptFile: string, reviewer: Reviewer): string[] {
  const text = readAuthored(daemon, promptFile);
  if (text === null) throw new WalkError(`panel prompt ${authored}/${promptFile} is not there`);
  return commandOf(daemon, { ...reviewer, prompt: reviewerPrompt(text) });
}

/** The environment of a run's process: with a credential it may call us, without one it must not find another's. */
export function stageEnvironment(
  daemon: Daemon,
  execution: { runId: string; ticketId: string; stage: Stage; attempt: number },
  credential: Credential | null,
): Environment {
  const path = daemon.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin";
  const add = {
    SLOOP_RUN_ID: execution.runId,
    SLOOP_TICKET_ID: execution.ticketId,
    SLOOP_BIN: daemon.executable,
    SLOOP_STAGE: execution.stage.name,
    SLOOP_ATTEMPT: String(execution.attempt),
    PATH: `${dirname(daemon.executable)}:${path}`,
    // Nobody is there to answer a question at night.
    GIT_TERMINAL_PROMPT: "0",
    GIT_EDITOR: "true",
    ...(credential === null ? {} : { SLOOP_SOCKET: credential.socketPath, SLOOP_TOKEN: credential.token }),
  };
  return childEnvironment(daemon.environment, {
    add,
    remove: credential === null ? ["SLOOP_SOCKET", "SLOOP_TOKEN"] : [],
  });
}

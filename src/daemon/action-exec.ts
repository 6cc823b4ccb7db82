// A command as a stage's action, or as the check that judges one: argv as written, no shell, judged by its exit.

import { stageEnvironment } from "./agent.ts";
import type { Daemon } from "./context.ts";
import { mintCredential } from "./credential.ts";
import { execute, type ProcessResult, requireNotCancelled } from "./execute.ts";
import type { Execution, Reading } from "./stage.ts";
import { recordGateTree } from "./trees.ts";

/** An exec process passes by exit 0 with everything it printed captured; a lost capture is a fail without a code. */
function readingOf(result: ProcessResult): Reading {
  if (result.kind === "not_started") {
    const { startedAtMs, finishedAtMs, problem } = result;
    return { passed: false, exitCode: null, startedAtMs, finishedAtMs, reason: problem };
  }
  const { exitCode, captureComplete, startedAtMs, finishedAtMs } = result.facts;
  const passed = exitCode === 0 && captureComplete;
  return { passed, exitCode: captureComplete ? exitCode : null, startedAtMs, finishedAtMs, reason: null };
}

type Command = { phase: "action" | "check"; cmd: string[]; reported: boolean };

async function runCommand(daemon: Daemon, execution: Execution, command: Command): Promise<Reading> {
  const { run, stage, index, attempt } = execution;
  requireNotCancelled(daemon, run.runId);
  const scope = { runId: run.runId, stage: stage.name, stageIndex: index, attempt, seat: null };
  const result = await execute(daemon, execution, {
    phase: command.phase,
    seat: null,
    source: "stage",
    gated: command.reported,
    launch: async () => {
      await recordGateTree(daemon, execution, { phase: command.phase, seat: null });
      const credential = command.reported ? mintCredential(daemon, run.live, scope) : null;
      return { argv: command.cmd, environment: stageEnvironment(daemon, { ...run, stage, attempt }, credential) };
    },
  });
  return readingOf(result);
}

/** The action of an exec stage; behind a start gate, with a credential, where a report decides. */
export function execAction(daemon: Daemon, execution: Execution, cmd: string[]): Promise<Reading> {
  const reported = execution.stage.resultCheck.kind === "reported";
  return runCommand(daemon, execution, { phase: "action", cmd, reported });
}

/** The command that judges a stage whose action passed. */
export function execCheck(daemon: Daemon, execution: Execution, cmd: string[]): Promise<Reading> {
  return runCommand(daemon, execution, { phase: "check", cmd, reported: false });
}

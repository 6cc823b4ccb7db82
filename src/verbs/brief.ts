// `brief`: the assignment of the stage being executed, as the run was admitted with it.

import { SloopError } from "../core/errors.ts";
import type { Flow } from "../core/flow.ts";
import { definitionOfDone } from "../core/prompt.ts";
import { parseFlowSnapshot, parseTicketSnapshot } from "../core/snapshot.ts";
import type { Daemon, TokenScope } from "../daemon/context.ts";
import { readRun } from "../store/runs.ts";
import type { RunRow } from "../store/tables.ts";
import type { Handler } from "./handler.ts";

/** The run of a worker's token while it executes. Throws SloopError `conflict` when it does not. */
export function executingRun(daemon: Daemon, scope: TokenScope): RunRow {
  const run = readRun(daemon.store.db, scope.runId);
  if (run === null || (run.state !== "running" && run.state !== "driving")) {
    throw new SloopError("conflict", `the run is not executing (it is \`${run?.state ?? "gone"}\`)`);
  }
  return run;
}

/** The stage a token was minted for. Throws SloopError `internal` when the run's flow snapshot cannot be read. */
export function scopedStage(run: RunRow, scope: TokenScope): Flow["stages"][number] {
  const stage = parseFlowSnapshot(run.flowJson)?.stages[scope.stageIndex];
  if (stage === undefined) throw new SloopError("internal", `the flow snapshot of run ${run.id} cannot be read`);
  return stage;
}

export const brief: Handler<"brief"> = (daemon, _args, caller) => {
  const run = executingRun(daemon, caller.scope);
  const stage = scopedStage(run, caller.scope);
  const ticket = parseTicketSnapshot(run.ticketJson);
  if (ticket === null) throw new SloopError("internal", `the ticket snapshot of run ${run.id} cannot be read`);
  const check = stage.resultCheck.kind;
  return {
    run: run.id,
    ticket,
    worktree: run.worktreePath ?? "",
    branch: run.branch ?? "",
    stage: { name: stage.name, attempt: caller.scope.attempt, result_check: check },
    definition_of_done: [definitionOfDone({ seat: caller.scope.seat !== null, check })],
  };
};

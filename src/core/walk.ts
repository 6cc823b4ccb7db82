// Where a run stands: recomputed from its log before every step, never stored (engine.md 9.2).

import type { StageRecord } from "./evidence.ts";
import type { FailAction, Flow } from "./flow.ts";

export type HaltCause = "fail_action" | "return_budget_exhausted" | "corrupt_log";

export type Step =
  | { kind: "run"; index: number; attempt: number }
  | { kind: "halted"; index: number; cause: HaltCause }
  | { kind: "complete" };

type Row = Pick<StageRecord, "stageIndex" | "state" | "attempt">;
type Jump = { cursor: number } | { halt: HaltCause };

function afterFailure(flow: Flow, action: FailAction, cursor: number, failedBefore: number): Jump {
  switch (action.kind) {
    case "fail":
      return { halt: "fail_action" };
    case "continue":
      return { cursor: cursor + 1 };
    case "return_to": {
      const back = flow.stages.findIndex((stage) => stage.name === action.stage);
      if (back < 0) return { halt: "corrupt_log" };
      return failedBefore >= action.attempts ? { halt: "return_budget_exhausted" } : { cursor: back };
    }
  }
}

type Position = { cursor: number; executions: Map<number, number>; failures: Map<number, number> };

/** Moves the position past one resolved row; the cause when the walk ends there. */
function takeRow(flow: Flow, position: Position, row: Row): HaltCause | null {
  const { cursor, executions, failures } = position;
  const stage = flow.stages[cursor];
  const attempt = 1 + (executions.get(cursor) ?? 0);
  if (stage === undefined || row.stageIndex !== cursor || row.attempt !== attempt) return "corrupt_log";
  executions.set(cursor, attempt);
  if (row.state === "passed") {
    position.cursor += 1;
    return null;
  }
  const failedBefore = failures.get(cursor) ?? 0;
  failures.set(cursor, failedBefore + 1);
  const jump = afterFailure(flow, stage.failAction, cursor, failedBefore);
  if ("halt" in jump) return jump.halt;
  position.cursor = jump.cursor;
  return null;
}

/** The next step of a run: a pure function of its flow snapshot and its log's rows in `seq` order. */
export function nextStep(flow: Flow, log: readonly Row[]): Step {
  const position: Position = { cursor: 0, executions: new Map(), failures: new Map() };
  for (const row of log) {
    if (row.state === null) continue;
    const cause = takeRow(flow, position, row);
    if (cause !== null) return { kind: "halted", index: position.cursor, cause };
  }
  const { cursor, executions } = position;
  if (cursor >= flow.stages.length) return { kind: "complete" };
  return { kind: "run", index: cursor, attempt: 1 + (executions.get(cursor) ?? 0) };
}

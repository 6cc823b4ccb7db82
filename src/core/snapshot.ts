// The stored forms of what a run was admitted with: its flow and its ticket (engine.md 9.1).

import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Action, FailAction, Flow, ResultCheck, Reviewer, Stage } from "./flow.ts";

/** The ticket as it was when the run was claimed; the wire and the database share this spelling. */
export type TicketSnapshot = {
  id: string;
  name: string;
  blocked_by: string[];
  worktree: string | null;
  target: string | null;
  model: string | null;
  effort: string | null;
  body: string;
};

const Command = Type.Object({ cmd: Type.Array(Type.String()) });
const Text = Type.Union([Type.String(), Type.Null()]);
const StoredReviewer = Type.Object({
  target: Type.String(),
  model: Type.Optional(Text),
  effort: Type.Optional(Text),
});
const StoredStage = Type.Object({
  name: Type.String(),
  action: Type.Union([
    Type.Literal("Agent"),
    Type.Object({ Exec: Command }),
    Type.Object({ Builtin: Type.Union([Type.Literal("Merge"), Type.Literal("Sync")]) }),
  ]),
  result_check: Type.Union([
    Type.Literal("None"),
    Type.Literal("Reported"),
    Type.Object({
      Actor: Type.Union([Type.Object({ Exec: Command }), Type.Object({ Builtin: Type.Literal("Commits") })]),
    }),
    Type.Object({
      Panel: Type.Object({
        prompt: Type.String(),
        reviewers: Type.Array(StoredReviewer),
        quorum: Type.Integer({ minimum: 1 }),
      }),
    }),
  ]),
  fail_action: Type.Union([
    Type.Literal("Halt"),
    Type.Literal("Continue"),
    Type.Object({ ReturnTo: Type.Object({ stage: Type.String(), attempts: Type.Integer({ minimum: 0 }) }) }),
  ]),
  ff_only: Type.Optional(Type.Boolean()),
});
const StoredFlow = Type.Object({ name: Type.String(), stages: Type.Array(StoredStage) });

function storedReviewer(reviewer: Reviewer): Record<string, string> {
  return {
    target: reviewer.target,
    ...(reviewer.model === null ? {} : { model: reviewer.model }),
    ...(reviewer.effort === null ? {} : { effort: reviewer.effort }),
  };
}

function storedAction(action: Action): unknown {
  switch (action.kind) {
    case "agent":
      return "Agent";
    case "exec":
      return { Exec: { cmd: action.cmd } };
    case "sync":
      return { Builtin: "Sync" };
    case "merge":
      return { Builtin: "Merge" };
  }
}

function storedCheck(check: ResultCheck): unknown {
  switch (check.kind) {
    case "none":
      return "None";
    case "reported":
      return "Reported";
    case "commits":
      return { Actor: { Builtin: "Commits" } };
    case "exec":
      return { Actor: { Exec: { cmd: check.cmd } } };
    case "panel":
      return {
        Panel: { prompt: check.prompt, reviewers: check.reviewers.map(storedReviewer), quorum: check.quorum },
      };
  }
}

function storedFail(fail: FailAction): unknown {
  switch (fail.kind) {
    case "fail":
      return "Halt";
    case "continue":
      return "Continue";
    case "return_to":
      return { ReturnTo: { stage: fail.stage, attempts: fail.attempts } };
  }
}

/** The flow as `runs.flow_json` holds it; `ff_only` is left out when false. */
export function renderFlowSnapshot(flow: Flow): string {
  const stages = flow.stages.map((stage) => ({
    name: stage.name,
    action: storedAction(stage.action),
    result_check: storedCheck(stage.resultCheck),
    fail_action: storedFail(stage.failAction),
    ...(stage.action.kind === "merge" && stage.action.ffOnly ? { ff_only: true } : {}),
  }));
  return JSON.stringify({ name: flow.name, stages });
}

type Stored = typeof StoredStage.static;

function readAction(stored: Stored): Action {
  const { action } = stored;
  if (action === "Agent") return { kind: "agent" };
  if ("Exec" in action) return { kind: "exec", cmd: action.Exec.cmd };
  return action.Builtin === "Sync" ? { kind: "sync" } : { kind: "merge", ffOnly: stored.ff_only ?? false };
}

function readCheck(stored: Stored["result_check"]): ResultCheck {
  if (stored === "None") return { kind: "none" };
  if (stored === "Reported") return { kind: "reported" };
  if ("Panel" in stored) {
    const reviewers = stored.Panel.reviewers.map((reviewer) => ({
      target: reviewer.target,
      model: reviewer.model ?? null,
      effort: reviewer.effort ?? null,
    }));
    return { kind: "panel", prompt: stored.Panel.prompt, reviewers, quorum: stored.Panel.quorum };
  }
  return "Exec" in stored.Actor ? { kind: "exec", cmd: stored.Actor.Exec.cmd } : { kind: "commits" };
}

function readFail(stored: Stored["fail_action"]): FailAction {
  if (stored === "Halt") return { kind: "fail" };
  if (stored === "Continue") return { kind: "continue" };
  return { kind: "return_to", stage: stored.ReturnTo.stage, attempts: stored.ReturnTo.attempts };
}

function readStage(stored: Stored): Stage {
  return {
    name: stored.name,
    action: readAction(stored),
    resultCheck: readCheck(stored.result_check),
    failAction: readFail(stored.fail_action),
  };
}

function parseJson(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Reads `runs.flow_json`; null when it is missing, not JSON, or lacks a field or uses another spelling. */
export function parseFlowSnapshot(text: string | null): Flow | null {
  const value = parseJson(text);
  if (!Value.Check(StoredFlow, value)) return null;
  return { name: value.name, stages: value.stages.map(readStage) };
}

const StoredTicket = Type.Object({
  id: Type.String(),
  name: Type.String(),
  blocked_by: Type.Array(Type.String()),
  worktree: Text,
  target: Text,
  model: Text,
  effort: Text,
  body: Type.String(),
});

/** Reads `runs.ticket_json`; null when it cannot be read. */
export function parseTicketSnapshot(text: string | null): TicketSnapshot | null {
  const value = parseJson(text);
  return Value.Check(StoredTicket, value) ? value : null;
}

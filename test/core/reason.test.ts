// The derived reason of a run and its halt, string by string (protocol.md 6.8).

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { StageRecord } from "../../src/core/evidence.ts";
import type { Flow } from "../../src/core/flow.ts";
import { derivedReason, formatSilence, haltOf, type RunEnd } from "../../src/core/reason.ts";
import { stageRows } from "../../src/core/stagerows.ts";
import { runStates } from "../../src/core/ticket.ts";

const flow: Flow = {
  name: "f",
  stages: [
    { name: "build", action: { kind: "agent" }, resultCheck: { kind: "commits" }, failAction: { kind: "fail" } },
    {
      name: "test",
      action: { kind: "exec", cmd: ["t"] },
      resultCheck: { kind: "none" },
      failAction: { kind: "return_to", stage: "build", attempts: 1 },
    },
    {
      name: "lint",
      action: { kind: "exec", cmd: ["l"] },
      resultCheck: { kind: "none" },
      failAction: { kind: "continue" },
    },
    {
      name: "docs",
      action: { kind: "exec", cmd: ["d"] },
      resultCheck: { kind: "none" },
      failAction: { kind: "continue" },
    },
  ],
};

function row(stage: string, state: "passed" | "failed", more: Partial<StageRecord> = {}): StageRecord {
  return {
    stageIndex: flow.stages.findIndex((one) => one.name === stage),
    stage,
    state,
    attempt: 1,
    phase: "action",
    startedAtMs: 1,
    finishedAtMs: 2,
    exitCode: state === "passed" ? 0 : 1,
    verdictSource: "exit_code",
    reason: null,
    ...more,
  };
}

function reasonOf(log: StageRecord[], more: Partial<RunEnd> = {}): string | null {
  const state = more.state ?? "failed";
  const rows = stageRows({ flow, log, terminal: true, verdicts: [], reports: [], process: null, silence: null });
  return derivedReason({ state, stall: null, log, rows, commits: null, halt: haltOf(state, flow, log), ...more });
}

const some = { complete: true, oids: ["a"] };
const none = { complete: true, oids: [] };

describe("derivedReason", () => {
  test("is null for merged and for unsettled runs", () => {
    for (const state of ["merged", "claimed", "driving", "running"] as const) {
      expect(reasonOf([row("build", "failed")], { state })).toBeNull();
    }
  });

  test("tells a silence kill and nothing else", () => {
    const stall = { stage: "build", last_output_at_ms: 1, threshold_ms: 301_000, last_output_sequence: null };
    expect(reasonOf([row("build", "failed")], { stall })).toBe("stalled: no output for 5m1s");
  });

  test.each<[string, StageRecord[], Partial<RunEnd>, string]>([
    ["the first stage", [row("build", "failed", { exitCode: 2 })], {}, "stage `build` failed (exit 2)"],
    [
      "no code, a reason",
      [row("build", "failed", { exitCode: null, reason: "no verdict reported" })],
      {},
      "stage `build` failed: no verdict reported",
    ],
    [
      "all parts",
      [
        row("build", "passed"),
        row("test", "failed"),
        row("build", "passed", { attempt: 2 }),
        row("test", "failed", { attempt: 2, reason: "two" }),
      ],
      { commits: some },
      "stage `test` failed (exit 1): two on attempt 2 after agent completed with commits; return_to budget spent",
    ],
    [
      "no commits",
      [row("build", "passed"), row("test", "failed")],
      { commits: none },
      "stage `test` failed (exit 1) after agent completed with no commits",
    ],
    [
      "unknown commits",
      [row("build", "passed"), row("test", "failed", { reason: "" })],
      {},
      "stage `test` failed (exit 1) after agent completed with no commits",
    ],
    [
      "a log that does not replay",
      [row("test", "failed")],
      {},
      "stage `test` failed (exit 1); the stage log does not replay against this flow",
    ],
    [
      "the latest by time, not by place",
      [row("build", "passed"), row("test", "failed"), row("build", "failed", { attempt: 2, exitCode: 9 })],
      { commits: some },
      "stage `build` failed (exit 9) on attempt 2",
    ],
    [
      "an advisory failure is passed over",
      [row("build", "passed"), row("test", "failed"), row("lint", "failed")],
      { halt: null, commits: some },
      "stage `test` failed (exit 1) after agent completed with commits",
    ],
    [
      "only advisory failures",
      [row("build", "passed"), row("test", "passed"), row("lint", "failed"), row("docs", "failed")],
      { state: "needs_review" },
      "run ended as needs_review with only advisory failures recorded (stage `lint`, stage `docs`)",
    ],
    [
      "nothing failed",
      [row("build", "passed")],
      { state: "orphaned" },
      "run ended as orphaned with no failing stage recorded",
    ],
    ["nothing at all", [], { state: "aborted" }, "run ended as aborted with no failing stage recorded"],
  ])("%s", (_name, log, more, wanted) => {
    expect(reasonOf(log, more)).toBe(wanted);
  });
});

describe("haltOf", () => {
  test("is told of settled runs only", () => {
    const log = [row("build", "failed")];
    expect(haltOf("failed", flow, log)).toBe("fail_action");
    expect(haltOf("cancelled", flow, log)).toBe("fail_action");
    expect(haltOf("driving", flow, log)).toBeNull();
    expect(haltOf("failed", null, log)).toBeNull();
    expect(haltOf("failed", flow, [row("build", "passed")])).toBeNull();
    expect(haltOf("failed", flow, [row("test", "passed")])).toBe("corrupt_log");
    const spent = [
      row("build", "passed"),
      row("test", "failed"),
      row("build", "passed", { attempt: 2 }),
      row("test", "failed", { attempt: 2 }),
    ];
    expect(haltOf("needs_review", flow, spent)).toBe("return_budget_exhausted");
  });

  test("no unsettled state ever has one", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...runStates),
        fc.array(fc.constantFrom(row("build", "failed"), row("test", "passed"))),
        (state, log) => {
          const unsettled = state === "claimed" || state === "driving" || state === "running";
          if (unsettled) expect(haltOf(state, flow, log)).toBeNull();
        },
      ),
    );
  });
});

test.each([
  [0, "0s"],
  [999, "0s"],
  [45_000, "45s"],
  [60_000, "1m"],
  [1_800_000, "30m"],
  [301_000, "5m1s"],
  [7_200_000, "2h"],
  [7_500_000, "2h5m"],
  [7_501_000, "2h5m"],
  [7_230_000, "2h"],
])("%p ms reads %p", (ms, text) => {
  expect(formatSilence(ms)).toBe(text);
});

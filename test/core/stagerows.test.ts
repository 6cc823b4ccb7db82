// Stage rows: which, in what order, with which fields (protocol.md 6.5), and properties over random walks.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { StageRecord } from "../../src/core/evidence.ts";
import type { Flow, Stage } from "../../src/core/flow.ts";
import { type StageRowsInput, stageRows, stageStrip } from "../../src/core/stagerows.ts";
import { nextStep } from "../../src/core/walk.ts";

const exec: Stage["action"] = { kind: "exec", cmd: ["x"] };

function stage(name: string, more: Partial<Stage> = {}): Stage {
  return { name, action: exec, resultCheck: { kind: "none" }, failAction: { kind: "fail" }, ...more };
}

const flow: Flow = {
  name: "f",
  stages: [
    stage("build", { action: { kind: "agent" }, resultCheck: { kind: "commits" } }),
    stage("test", { failAction: { kind: "return_to", stage: "build", attempts: 1 } }),
    stage("lint", { failAction: { kind: "continue" } }),
    stage("merge", { action: { kind: "merge", ffOnly: false } }),
  ],
};

function record(name: string, more: Partial<StageRecord> = {}): StageRecord {
  const stageIndex = flow.stages.findIndex((one) => one.name === name);
  return {
    stageIndex,
    stage: name,
    state: "passed",
    attempt: 1,
    phase: "action",
    startedAtMs: 1000,
    finishedAtMs: 1500,
    exitCode: 0,
    verdictSource: "exit_code",
    reason: null,
    ...more,
  };
}

function input(more: Partial<StageRowsInput> = {}): StageRowsInput {
  return { flow, log: [], terminal: false, verdicts: [], reports: [], process: null, silence: null, ...more };
}

function shape(rows: StageRowsInput): string[] {
  return stageRows(rows).map((row) => `${row.stage} ${row.attempt} ${row.state}`);
}

describe("which rows", () => {
  test("a fresh run stands on its first stage", () => {
    expect(shape(input())).toEqual(["build 1 running", "test 0 pending", "lint 0 pending", "merge 0 pending"]);
    expect(shape(input({ terminal: true }))).toEqual([
      "build 0 pending",
      "test 0 pending",
      "lint 0 pending",
      "merge 0 pending",
    ]);
  });

  test("a backward edge groups executions by stage", () => {
    const log = [
      record("build"),
      record("test", { state: "failed" }),
      record("build", { attempt: 2 }),
      record("test", { attempt: 2 }),
    ];
    expect(shape(input({ log: log.slice(0, 3) }))).toEqual([
      "build 1 passed",
      "build 2 passed",
      "test 1 failed",
      "test 2 running",
      "lint 0 pending",
      "merge 0 pending",
    ]);
    expect(shape(input({ log, terminal: true }))).toEqual([
      "build 1 passed",
      "build 2 passed",
      "test 1 failed",
      "test 2 passed",
      "lint 0 pending",
      "merge 0 pending",
    ]);
  });

  test("an action whose check decides is not a row by itself", () => {
    const log = [
      record("build", { state: null, startedAtMs: 1, finishedAtMs: 2, exitCode: 7, verdictSource: null }),
      record("build", { phase: "check", startedAtMs: 10, finishedAtMs: 30, exitCode: 0 }),
    ];
    expect(shape(input({ log: log.slice(0, 1) }))[0]).toBe("build 1 running");
    expect(stageRows(input({ log }))[0]).toMatchObject({
      state: "passed",
      started_at_ms: 10,
      finished_at_ms: 30,
      duration_ms: 20,
      exit_code: 0,
    });
  });

  test("a recorded stage the snapshot lacks stands at its recorded index", () => {
    const log = [record("build"), record("odd", { stageIndex: 1 })];
    expect(shape(input({ log, terminal: true }))).toEqual([
      "build 1 passed",
      "odd 1 passed",
      "test 0 pending",
      "lint 0 pending",
      "merge 0 pending",
    ]);
    const far = [record("build"), record("far", { stageIndex: 99 })];
    expect(shape(input({ log: far, terminal: true })).at(-1)).toBe("far 1 passed");
  });

  test("without a snapshot only what is recorded", () => {
    expect(shape(input({ flow: null }))).toEqual([]);
    const log = [record("test", { state: "failed" }), record("build")];
    expect(shape(input({ flow: null, log }))).toEqual(["build 1 passed", "test 1 failed"]);
  });

  test("a log that does not replay: the first stage without an execution runs", () => {
    expect(shape(input({ log: [record("test")] }))).toEqual([
      "build 1 running",
      "test 1 passed",
      "lint 0 pending",
      "merge 0 pending",
    ]);
  });

  test("a walk that is over and not settled yet runs nothing", () => {
    expect(shape(input({ log: [record("build", { state: "failed" })] }))).toEqual([
      "build 1 failed",
      "test 0 pending",
      "lint 0 pending",
      "merge 0 pending",
    ]);
  });
});

describe("fields", () => {
  test("instants never observed are null, and no duration is negative", () => {
    const log = [record("build", { startedAtMs: 0, finishedAtMs: null })];
    expect(stageRows(input({ log }))[0]).toMatchObject({
      started_at_ms: null,
      finished_at_ms: null,
      duration_ms: null,
    });
    const backward = [record("build", { startedAtMs: 2000, finishedAtMs: 1000 })];
    expect(stageRows(input({ log: backward }))[0]?.duration_ms).toBe(0);
  });

  test("the running row knows its process and its silence, when they are its own", () => {
    const running = (more: Partial<StageRowsInput>) => stageRows(input(more))[0];
    expect(running({ process: { stage: "build", attempt: 1, startedAtMs: 42 } })?.started_at_ms).toBe(42);
    expect(running({ process: { stage: "build", attempt: 2, startedAtMs: 42 } })?.started_at_ms).toBeNull();
    expect(running({ silence: { stage: "build", forMs: 600_000 } })?.silent_for_ms).toBe(600_000);
    expect(running({ silence: { stage: "test", forMs: 600_000 } })?.silent_for_ms).toBeNull();
  });

  test("advisory holds whatever the row's state", () => {
    const log = [record("build"), record("test"), record("lint", { state: "failed", exitCode: 3 })];
    const rows = stageRows(input({ log }));
    expect(rows.map((row) => row.advisory)).toEqual([false, false, true, false]);
    expect(stageRows(input()).map((row) => row.advisory)).toEqual([false, false, true, false]);
  });

  test("confidence comes from the report of that execution only", () => {
    const reported: Flow = { name: "r", stages: [stage("review", { resultCheck: { kind: "reported" } })] };
    const verdicts = [
      { stage: "review", attempt: 1, verdict: "fail" as const, confidence: "high" as const, reason: "no", tip: null },
    ];
    const first = record("review", { stageIndex: 0, state: "failed", verdictSource: "reported", reason: "no" });
    const rows = stageRows(input({ flow: reported, terminal: true, log: [first, { ...first, attempt: 2 }], verdicts }));
    expect(rows.map((row) => row.confidence)).toEqual(["high", null]);
    expect(rows.map((row) => row.reason)).toEqual(["no", "no"]);
  });

  test("a panel shows every seat, silent ones too, and counts anew", () => {
    const panel: Flow = {
      name: "p",
      stages: [
        stage("review", {
          resultCheck: {
            kind: "panel",
            prompt: "p",
            quorum: 2,
            reviewers: ["a", "b", "c"].map((target) => ({ target, model: null, effort: null })),
          },
        }),
      ],
    };
    const seat = { stage: "review", stageIndex: 0, attempt: 1 };
    const reports = [
      { ...seat, reviewer: 2, verdict: "pass" as const, confidence: "low" as const, reason: "fine" },
      { ...seat, reviewer: 0, verdict: "pass" as const, confidence: null, reason: "good" },
      { ...seat, attempt: 2, reviewer: 1, verdict: "pass" as const, confidence: null, reason: "other execution" },
    ];
    const check = record("review", {
      stageIndex: 0,
      phase: "check",
      exitCode: null,
      verdictSource: "panel",
      reason: "panel: 2 of 3 reviewers passed, quorum 2",
    });
    const [row] = stageRows(input({ flow: panel, terminal: true, log: [check], reports }));
    expect(row?.reason).toBe("panel: 2 of 3 reviewers passed, quorum 2");
    expect(row?.exit_code).toBeNull();
    expect(row?.reviewers).toEqual([
      { reviewer: 0, target: "a", verdict: "pass", confidence: null, reason: "good" },
      { reviewer: 1, target: "b", verdict: "fail", confidence: null, reason: "no verdict reported" },
      { reviewer: 2, target: "c", verdict: "pass", confidence: "low", reason: "fine" },
    ]);
    const failedAction = record("review", { stageIndex: 0, state: "failed", exitCode: 4 });
    const [failed] = stageRows(input({ flow: panel, terminal: true, log: [failedAction], reports }));
    expect(failed).toMatchObject({ reviewers: [], exit_code: 4, verdict_source: "exit_code", reason: null });
  });

  test("the strip keeps five keys", () => {
    const strip = stageStrip(stageRows(input({ silence: { stage: "build", forMs: 5 } })));
    expect(strip[0]).toEqual({ stage: "build", state: "running", attempt: 1, advisory: false, silent_for_ms: 5 });
  });
});

describe("random walks", () => {
  const failAction = (index: number): fc.Arbitrary<Stage["failAction"]> =>
    fc.oneof(
      fc.constant<Stage["failAction"]>({ kind: "fail" }),
      fc.constant<Stage["failAction"]>({ kind: "continue" }),
      fc.tuple(fc.nat(index), fc.integer({ min: 1, max: 3 })).map(([back, attempts]) => ({
        kind: "return_to" as const,
        stage: `s${back}`,
        attempts,
      })),
    );
  const flows = fc
    .integer({ min: 1, max: 5 })
    .chain((size) => fc.tuple(...Array.from({ length: size }, (_, index) => failAction(index))))
    .map(
      (fails): Flow => ({ name: "f", stages: fails.map((fail, index) => stage(`s${index}`, { failAction: fail })) }),
    );

  function walk(random: Flow, verdicts: readonly boolean[]): StageRecord[] {
    const log: StageRecord[] = [];
    for (const passed of verdicts) {
      const step = nextStep(random, log);
      if (step.kind !== "run") break;
      const name = random.stages[step.index]?.name ?? "";
      log.push({
        ...record(name),
        stageIndex: step.index,
        attempt: step.attempt,
        state: passed ? "passed" : "failed",
      });
    }
    return log;
  }

  test("one row per execution, at most one running, keyed by stage and attempt, in flow order", () => {
    fc.assert(
      fc.property(flows, fc.array(fc.boolean(), { maxLength: 20 }), fc.boolean(), (random, verdicts, terminal) => {
        const log = walk(random, verdicts);
        const rows = stageRows(input({ flow: random, log, terminal }));
        const keys = rows.map((row) => `${row.stage}#${row.attempt}`);
        expect(new Set(keys).size).toBe(keys.length);
        expect(rows.filter((row) => row.state === "passed" || row.state === "failed")).toHaveLength(log.length);
        const step = nextStep(random, log);
        const running = rows.filter((row) => row.state === "running").map((row) => `${row.stage}#${row.attempt}`);
        expect(running).toEqual(step.kind === "run" && !terminal ? [`s${step.index}#${step.attempt}`] : []);
        const order = rows.map((row) => Number(row.stage.slice(1)));
        expect(order).toEqual([...order].sort((a, b) => a - b));
        expect(new Set(order).size).toBe(random.stages.length);
      }),
    );
  });
});

// Replay: where a run stands, from its flow and its log alone (engine.md 9.2, invariants 16-21).

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { FailAction, Flow, Stage } from "../../src/core/flow.ts";
import { nextStep, type Step } from "../../src/core/walk.ts";

type Row = { stageIndex: number; state: "passed" | "failed" | null; attempt: number };

function stage(name: string, failAction: FailAction = { kind: "fail" }): Stage {
  return { name, action: { kind: "exec", cmd: ["true"] }, resultCheck: { kind: "none" }, failAction };
}

const back = (target: string, attempts: number): FailAction => ({ kind: "return_to", stage: target, attempts });
const flow: Flow = { name: "f", stages: [stage("build"), stage("test", back("build", 1)), stage("merge")] };
const row = (stageIndex: number, attempt: number, state: Row["state"]): Row => ({ stageIndex, attempt, state });
const p = "passed" as const;
const f = "failed" as const;

const table: [string, Row[], Step][] = [
  ["nothing yet", [], { kind: "run", index: 0, attempt: 1 }],
  ["first passed", [row(0, 1, p)], { kind: "run", index: 1, attempt: 1 }],
  [
    "an action whose check is open moves nothing",
    [row(0, 1, p), row(1, 1, null)],
    { kind: "run", index: 1, attempt: 1 },
  ],
  ["a failure jumps back", [row(0, 1, p), row(1, 1, f)], { kind: "run", index: 0, attempt: 2 }],
  [
    "the span runs again under higher attempts",
    [row(0, 1, p), row(1, 1, f), row(0, 2, p)],
    { kind: "run", index: 1, attempt: 2 },
  ],
  [
    "the budget of the edge is spent",
    [row(0, 1, p), row(1, 1, f), row(0, 2, p), row(1, 2, f)],
    { kind: "halted", index: 1, cause: "return_budget_exhausted" },
  ],
  ["a failing stage that halts", [row(0, 1, f)], { kind: "halted", index: 0, cause: "fail_action" }],
  ["complete", [row(0, 1, p), row(1, 1, p), row(2, 1, p)], { kind: "complete" }],
  ["a row of the wrong stage", [row(1, 1, p)], { kind: "halted", index: 0, cause: "corrupt_log" }],
  ["a row of the wrong attempt", [row(0, 2, p)], { kind: "halted", index: 0, cause: "corrupt_log" }],
  [
    "a row behind the end",
    [row(0, 1, p), row(1, 1, p), row(2, 1, p), row(3, 1, p)],
    { kind: "halted", index: 3, cause: "corrupt_log" },
  ],
];

describe("nextStep", () => {
  test.each(table)("%s", (_name, log, step) => expect(nextStep(flow, log)).toEqual(step));

  test("an advisory stage is stepped over", () => {
    const advisory: Flow = { name: "f", stages: [stage("lint", { kind: "continue" }), stage("merge")] };
    expect(nextStep(advisory, [row(0, 1, f)])).toEqual({ kind: "run", index: 1, attempt: 1 });
  });

  test("a return to a stage the snapshot does not name is a corrupt log", () => {
    const broken: Flow = { name: "f", stages: [stage("a"), stage("b", back("gone", 3))] };
    expect(nextStep(broken, [row(0, 1, p), row(1, 1, f)])).toEqual({ kind: "halted", index: 1, cause: "corrupt_log" });
  });
});

const names = ["a", "b", "c", "d", "e"];
const flows: fc.Arbitrary<Flow> = fc.integer({ min: 1, max: 5 }).chain((count) =>
  fc
    .tuple(
      ...names.slice(0, count).map((name, index) =>
        fc
          .oneof(
            fc.constant<FailAction>({ kind: "fail" }),
            fc.constant<FailAction>({ kind: "continue" }),
            fc
              .tuple(fc.integer({ min: 0, max: Math.max(0, index - 1) }), fc.integer({ min: 1, max: 3 }))
              .map(([to, attempts]): FailAction => (index === 0 ? { kind: "fail" } : back(names[to]!, attempts))),
          )
          .map((failAction) => stage(name, failAction)),
      ),
    )
    .map((stages) => ({ name: "f", stages })),
);

/** Walks with the given verdicts until the walk ends or they run out. */
function walked(of: Flow, verdicts: boolean[]): { log: Row[]; steps: Step[] } {
  const log: Row[] = [];
  const steps: Step[] = [nextStep(of, log)];
  for (const verdict of verdicts) {
    const step = steps.at(-1)!;
    if (step.kind !== "run") break;
    log.push(row(step.index, step.attempt, verdict ? p : f));
    steps.push(nextStep(of, log));
  }
  return { log, steps };
}

const walks = fc.tuple(flows, fc.array(fc.boolean(), { maxLength: 200 }));

describe("walking", () => {
  test("removing the last row gives back the step that produced it", () => {
    fc.assert(
      fc.property(walks, ([of, verdicts]) => {
        const { log, steps } = walked(of, verdicts);
        for (let n = 0; n <= log.length; n += 1) expect(nextStep(of, log.slice(0, n))).toEqual(steps[n]!);
      }),
    );
  });

  test("rows after a halt change nothing", () => {
    fc.assert(
      fc.property(
        walks,
        fc.array(fc.tuple(fc.nat(6), fc.nat(4), fc.boolean()), { maxLength: 5 }),
        ([of, verdicts], extra) => {
          const { log, steps } = walked(of, verdicts);
          const last = steps.at(-1)!;
          if (last.kind !== "halted") return;
          const rows = extra.map(([index, attempt, ok]) => row(index, attempt, ok ? p : f));
          expect(nextStep(of, [...log, ...rows])).toEqual(last);
        },
      ),
    );
  });

  test("each edge back is taken at most its budget", () => {
    fc.assert(
      fc.property(walks, ([of, verdicts]) => {
        const { log } = walked(of, verdicts);
        const taken = new Map<number, number>();
        for (const entry of log) {
          const action = of.stages[entry.stageIndex]!.failAction;
          if (entry.state === f && action.kind === "return_to") {
            taken.set(entry.stageIndex, (taken.get(entry.stageIndex) ?? 0) + 1);
            expect(taken.get(entry.stageIndex)).toBeLessThanOrEqual(action.attempts + 1);
          }
        }
      }),
    );
  });

  test("a complete walk's last row of every stage passed or is advisory; a halt's last row failed", () => {
    fc.assert(
      fc.property(walks, ([of, verdicts]) => {
        const { log, steps } = walked(of, verdicts);
        const last = steps.at(-1)!;
        if (last.kind === "complete") {
          of.stages.forEach((own, index) => {
            const final = log.findLast((entry) => entry.stageIndex === index)!;
            expect(final.state === p || own.failAction.kind === "continue").toBe(true);
          });
        }
        if (last.kind === "halted") expect(log.at(-1)!.state).toBe(f);
      }),
    );
  });
});

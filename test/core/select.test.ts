// Selection, wake-up and dispatch: pure functions of rows and an instant (engine.md 7.2, 7.4, protocol.md 6.7).

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { World } from "../../src/core/gate.ts";
import { type Candidate, nextDispatch, nextWake, selectTicket, type WakeInput } from "../../src/core/select.ts";
import { due, rearm, type Trigger, triggerKinds } from "../../src/core/trigger.ts";

const world: World = {
  now: 1000,
  agentsConfigured: true,
  branchProblem: null,
  paused: false,
  draining: false,
  storageFull: false,
  unreconciled: false,
  hoursOpen: true,
  activeRuns: 0,
  maxParallelTasks: 1,
  cooldowns: new Map([["slow", { target: "slow", untilMs: 2000, reason: "busy" }]]),
  failedLaunches: new Map(),
};
const ticket = (id: string, change: Partial<Candidate> = {}): Candidate => ({
  id,
  projectId: "p",
  state: "ready",
  attempts: 0,
  heldReason: null,
  missing: false,
  target: "fast",
  unmergedBlockers: [],
  claimedBy: null,
  diagnostic: null,
  createdAtMs: 5,
  ...change,
});
const trigger = (change: Partial<Trigger> = {}): Trigger => ({
  id: "TR1",
  kind: "immediate",
  state: "queued",
  ticketId: null,
  projectId: null,
  eligibleAtMs: null,
  intervalMs: null,
  createdAtMs: 1,
  updatedAtMs: 1,
  only: [],
  ...change,
});

describe("selectTicket", () => {
  const all = [
    ticket("T-9", { createdAtMs: 5 }),
    ticket("T-10", { createdAtMs: 5 }),
    ticket("T-1", { createdAtMs: 4, target: "slow" }),
    ticket("T-2", { createdAtMs: 4, unmergedBlockers: ["T-1"] }),
    ticket("T-3", { createdAtMs: 4, missing: true }),
    ticket("T-4", { createdAtMs: 4, state: "held" }),
  ];
  const cases: [string, Partial<Trigger>, string | null][] = [
    ["the oldest, ties by id as text", {}, "T-10"],
    ["pinned", { ticketId: "T-9" }, "T-9"],
    ["pinned to a cooling target", { ticketId: "T-1" }, null],
    ["pinned to a blocked one", { ticketId: "T-2" }, null],
    ["pinned to a missing one", { ticketId: "T-3" }, null],
    ["pinned to a held one", { ticketId: "T-4" }, null],
    ["filtered", { only: ["T-9", "T-1"] }, "T-9"],
    ["another project", { projectId: "q" }, null],
  ];
  test.each(cases)("%s", (_name, change, id) => {
    expect(selectTicket(trigger(change), all, world)?.id ?? null).toBe(id);
  });

  test("what was taken in this pass is passed over", () => {
    expect(selectTicket(trigger(), all, world, new Set(["T-10"]))?.id).toBe("T-9");
  });
});

describe("due and rearm", () => {
  test("due by kind and instant", () => {
    for (const kind of triggerKinds) {
      const always = kind === "immediate" || kind === "auto";
      expect(due({ kind, eligibleAtMs: null }, 10)).toBe(always);
      expect(due({ kind, eligibleAtMs: 11 }, 10)).toBe(always);
      expect(due({ kind, eligibleAtMs: 10 }, 10)).toBe(true);
    }
  });

  test("every 2 minutes, due 12:00, fired at 12:05, next 12:06", () => {
    const minute = 60_000;
    expect(rearm(0, 2 * minute, 5 * minute)).toBe(6 * minute);
  });

  test("strictly after now and congruent to the old instant", () => {
    fc.assert(
      fc.property(fc.nat(10 ** 12), fc.integer({ min: 1, max: 10 ** 9 }), fc.nat(10 ** 12), (at, step, late) => {
        const now = at + late;
        const next = rearm(at, step, now)!;
        expect(next > now && next <= now + step && (next - at) % step === 0).toBe(true);
      }),
    );
  });

  test("an invalid cadence is none", () => {
    expect(rearm(0, null, 1)).toBeNull();
    expect(rearm(0, 0, 1)).toBeNull();
    expect(rearm(5, 10, 1)).toBeNull();
  });
});

const input = (change: Partial<WakeInput>): WakeInput => ({
  now: 1000,
  triggers: [],
  hoursOpen: true,
  nextOpening: null,
  cooldownEnds: [],
  cleanups: [],
  silences: [],
  ...change,
});
const at = (eligibleAtMs: number, change: Partial<Trigger> = {}) => trigger({ kind: "at", eligibleAtMs, ...change });

describe("nextWake", () => {
  const cases: [string, Partial<WakeInput>, number | null][] = [
    ["nothing", {}, null],
    ["a scheduled trigger", { triggers: [at(3000), at(2000)] }, 2000],
    ["a due trigger needs no timer", { triggers: [trigger()] }, null],
    ["closed hours and a due trigger", { triggers: [trigger()], hoursOpen: false, nextOpening: 5000 }, 5000],
    ["closed hours replace an earlier instant", { triggers: [at(2000)], hoursOpen: false, nextOpening: 5000 }, 5000],
    ["an instant after the opening stays", { triggers: [at(6000)], hoursOpen: false, nextOpening: 5000 }, 6000],
    ["the earliest of all purposes", { cooldownEnds: [4000], cleanups: [3000], silences: [3500] }, 3000],
    ["the past wakes nobody", { cooldownEnds: [999], silences: [1000] }, null],
  ];
  test.each(cases)("%s", (_name, change, instant) => expect(nextWake(input(change))).toBe(instant));
});

describe("nextDispatch", () => {
  const cases: [string, Partial<WakeInput>, unknown][] = [
    ["nothing", { cleanups: [2000], silences: [2000] }, null],
    [
      "closed hours count what waits",
      { triggers: [trigger(), trigger({ id: "TR2" })], hoursOpen: false, nextOpening: 5000, cooldownEnds: [2000] },
      { cause: "running_hours", at: 5000, waiting: 2 },
    ],
    [
      "closed hours, nothing before them",
      { triggers: [at(6000)], hoursOpen: false, nextOpening: 5000 },
      { cause: "scheduled_trigger", at: 6000, trigger: "TR1" },
    ],
    [
      "a cooldown no later than the trigger",
      { triggers: [at(2000)], cooldownEnds: [2000] },
      { cause: "cooldown", at: 2000 },
    ],
    [
      "a trigger before the cooldown",
      { triggers: [at(1500, { ticketId: "T-1" })], cooldownEnds: [2000] },
      { cause: "scheduled_trigger", at: 1500, trigger: "T-1" },
    ],
    [
      "named by its project",
      { triggers: [at(1500, { projectId: "web" })] },
      { cause: "scheduled_trigger", at: 1500, trigger: "web" },
    ],
  ];
  test.each(cases)("%s", (_name, change, dispatch) => expect(nextDispatch(input(change)) as unknown).toEqual(dispatch));
});

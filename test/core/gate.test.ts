// Why a ticket is not running: every line of protocol.md 6.3, its exact text, and its place in the order.

import { describe, expect, test } from "bun:test";
import { type GateTicket, reasonNotRunning, type World } from "../../src/core/gate.ts";
import type { Trigger } from "../../src/core/trigger.ts";

const now = 1_803_873_600_000;
const ready: GateTicket = {
  id: "TICK-7",
  projectId: "web",
  state: "ready",
  attempts: 0,
  heldReason: null,
  missing: false,
  target: "claude",
  unmergedBlockers: [],
  claimedBy: null,
  diagnostic: null,
};
const open: World = {
  now,
  agentsConfigured: true,
  branchProblem: null,
  paused: false,
  draining: false,
  storageFull: false,
  unreconciled: false,
  hoursOpen: true,
  activeRuns: 0,
  maxParallelTasks: 1,
  cooldowns: new Map(),
  failedLaunches: new Map(),
};
const trigger = (change: Partial<Trigger>): Trigger => ({
  id: "TR4",
  kind: "immediate",
  state: "queued",
  ticketId: null,
  projectId: null,
  eligibleAtMs: null,
  intervalMs: null,
  createdAtMs: now,
  updatedAtMs: now,
  only: [],
  ...change,
});
const cooling = new Map([["claude", { target: "claude", untilMs: now + 500, reason: "Claude usage limit reached" }]]);

/** From the last line of the table to the first: each condition is added to all that stand below it. */
const ladder: [Partial<GateTicket>, Partial<World>, string][] = [
  [{}, { activeRuns: 1 }, "all agent slots are busy"],
  [{}, { hoursOpen: false }, "outside configured running hours"],
  [{}, { unreconciled: true }, "run liveness is unreconciled; dispatch waits for a clean scan"],
  [{}, { storageFull: true }, "database storage is full; free disk space to resume dispatch"],
  [{}, { draining: true }, "scheduler is draining for restart; cancel with `sloop resume`"],
  [{}, { paused: true }, "scheduler is paused; resume with `sloop resume`"],
  [
    {},
    { branchProblem: "HEAD is detached" },
    "no target branch (HEAD is detached); check out a branch or set `merge.target`",
  ],
  [{}, { agentsConfigured: false }, "no agent targets configured"],
  [{ missing: true }, {}, "ticket file is missing; restore it or run `sloop reindex`"],
  [{ unmergedBlockers: ["B-2", "B-1"] }, {}, "blocked by unmerged B-2, B-1"],
  [
    {},
    { cooldowns: cooling },
    "target `claude` is cooling down until 2027-03-01T04:00:00.5Z: Claude usage limit reached",
  ],
];

describe("reasonNotRunning", () => {
  test("each condition hides every one below it", () => {
    let ticket = ready;
    let world = open;
    for (const [ticketChange, worldChange, reason] of ladder) {
      ticket = { ...ticket, ...ticketChange };
      world = { ...world, ...worldChange };
      expect(reasonNotRunning(ticket, [], world)).toBe(reason);
    }
  });

  const settled: [Partial<GateTicket>, string | null][] = [
    [{ state: "failed", attempts: 2 }, "failed after 2 attempt(s); requeue with `sloop retry`"],
    [
      { state: "failed", attempts: 1, diagnostic: "Codex authentication is missing or expired" },
      "Codex authentication is missing or expired; failed after 1 attempt(s); requeue with `sloop retry`",
    ],
    [{ state: "held" }, "held by operator; release with `sloop ready`"],
    [{ state: "held", heldReason: "t.md: flow `x` is not defined" }, "t.md: flow `x` is not defined"],
    [{ state: "claimed", claimedBy: "TICK-7-r2" }, "claimed by run TICK-7-r2"],
    [{ state: "claimed" }, "claimed by run ?"],
    [{ state: "merged" }, null],
    [{ state: "needs_review" }, null],
  ];
  test.each(settled)("a ticket that is not ready: %j", (change, reason) => {
    const shut = { ...open, paused: true, cooldowns: cooling };
    expect(reasonNotRunning({ ...ready, ...change, unmergedBlockers: ["X"] }, [], shut)).toBe(reason);
  });

  test("a launch that failed is told only where it is all that is in the way", () => {
    const failedLaunches = new Map([["TICK-7", { problem: "no such program", nextMs: now + 4000 }]]);
    const due = [trigger({ ticketId: "TICK-7" })];
    const failed = { ...open, failedLaunches };
    expect(reasonNotRunning(ready, due, failed)).toBe(
      "its launch failed and is tried again at 2027-03-01T04:00:04Z: no such program",
    );
    expect(reasonNotRunning({ ...ready, id: "TICK-8" }, [trigger({})], failed)).toBeNull();
    expect(reasonNotRunning(ready, [], failed)).toBe("ready but no queued trigger; enqueue with `sloop run`");
    expect(reasonNotRunning(ready, due, { ...failed, activeRuns: 1 })).toBe("all agent slots are busy");
  });

  const noTrigger = "ready but no queued trigger; enqueue with `sloop run`";
  const triggers: [string, Trigger[], string | null][] = [
    ["none", [], noTrigger],
    ["pinned to it", [trigger({ ticketId: "TICK-7" })], null],
    ["pinned elsewhere", [trigger({ ticketId: "TICK-8" })], noTrigger],
    ["its project", [trigger({ projectId: "web" })], null],
    ["another project", [trigger({ projectId: "api" })], noTrigger],
    ["only others", [trigger({ only: ["TICK-8"] })], noTrigger],
    ["only it", [trigger({ only: ["TICK-8", "TICK-7"] })], null],
    ["completed", [trigger({ state: "completed" })], noTrigger],
    [
      "the earliest of two later ones",
      [
        trigger({ kind: "at", id: "TR5", eligibleAtMs: now + 2000 }),
        trigger({ kind: "every", id: "TR6", eligibleAtMs: now + 1000 }),
      ],
      "queued trigger TR6 is due at 2027-03-01T04:00:01Z",
    ],
    ["an auto trigger ignores its instant", [trigger({ kind: "auto", eligibleAtMs: now + 9000 })], null],
    ["due now", [trigger({ kind: "at", eligibleAtMs: now })], null],
  ];
  test.each(triggers)("triggers: %s", (_name, queued, reason) => {
    expect(reasonNotRunning(ready, queued, open)).toBe(reason);
  });
});

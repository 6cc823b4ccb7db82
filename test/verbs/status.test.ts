// `status`: every field from rows, the gate, what comes next, and that a remembered answer is never a stale one.

import { describe, expect, test } from "bun:test";
import { cooldowns, schedulerState } from "../../src/store/tables.ts";
import { ask } from "../support/ask.ts";
import { liveRun, openContext, startMs } from "../support/context.ts";
import { addEvent, addEvidence, addRun, addStage, addTicket, addTrigger, runId } from "../support/rows.ts";

const day = 24 * 3_600_000;

describe("status", () => {
  test("of an idle daemon", async () => {
    using daemon = await openContext();
    expect(await ask(daemon, "status", {})).toEqual({
      daemon: { pid: process.pid, paused: false, draining: false },
      gate: {
        active_agents: 0,
        max_agents: 2,
        capacity_reconciled: true,
        storage: { writable: true, reason: null },
        cooldowns: [],
      },
      runs: [],
      queued_triggers: [],
      queued_activations: [],
      tickets: { ready: 0, held: 0, blocked: 0, claimed: 0, merged: 0, failed: 0, needs_review: 0 },
    });
  });

  test("counts blocked tickets apart from ready ones", async () => {
    using daemon = await openContext();
    const states = ["ready", "held", "claimed", "merged", "failed", "needs_review"] as const;
    states.forEach((state, n) => {
      for (let copy = 0; copy <= n; copy += 1) addTicket(daemon, `${state}-${copy}`, { state });
    });
    addTicket(daemon, "B1", { blockedBy: ["held-0", "merged-0"] });
    addTicket(daemon, "B2", { blockedBy: ["merged-0", "merged-1"] });
    addTicket(daemon, "B3", { state: "failed", blockedBy: ["held-0"] });
    const { tickets } = await ask(daemon, "status", {});
    expect(tickets).toEqual({ ready: 2, held: 2, blocked: 1, claimed: 3, merged: 4, failed: 6, needs_review: 6 });
  });

  test("shows unsettled runs, oldest first, and triggers, oldest first", async () => {
    using daemon = await openContext();
    addTicket(daemon, "TICK-9", { state: "claimed", projectId: "web", name: "Cache avatars" });
    addTicket(daemon, "TICK-3", { state: "claimed" });
    const [older, newer] = [runId("4be19c02"), runId("0a")];
    addRun(daemon, newer, { ticketId: "TICK-3", state: "claimed", createdAtMs: startMs + 5 });
    addRun(daemon, older, { ticketId: "TICK-9", state: "running", attempt: 2, startedAtMs: startMs + 250 });
    addRun(daemon, runId("ff"), { ticketId: "TICK-9", state: "failed", attempt: 1 });
    addTrigger(daemon, "TR9", { ticketId: "TICK-9", createdAtMs: startMs });
    addTrigger(daemon, "TR10", { projectId: "web", createdAtMs: startMs });
    addTrigger(daemon, "TR2", { createdAtMs: startMs - 1 });
    addTrigger(daemon, "TR3", { state: "completed" });
    const status = await ask(daemon, "status", {});
    expect(status.gate.active_agents).toBe(2);
    expect(status.runs).toEqual([
      {
        id: older,
        alias: "TICK-9-r2",
        attempt: 2,
        state: "running",
        terminal: false,
        started_at_ms: startMs + 250,
        finished_at_ms: null,
        reason: null,
        stall: null,
        stages: [
          { stage: "build", state: "running", attempt: 1, advisory: false, silent_for_ms: null },
          { stage: "merge", state: "pending", attempt: 0, advisory: false, silent_for_ms: null },
        ],
        project: "web",
        ticket: "TICK-9",
        ticket_name: "Cache avatars",
      },
      expect.objectContaining({ alias: "TICK-3-r1", started_at_ms: startMs + 5, state: "claimed" }),
    ]);
    const queued = [
      { id: "TR2", ticket: null, project: null, state: "queued" },
      { id: "TR9", ticket: "TICK-9", project: null, state: "queued" },
      { id: "TR10", ticket: null, project: "web", state: "queued" },
    ];
    expect(status.queued_triggers).toEqual(queued as typeof status.queued_triggers);
    expect(status.queued_activations).toEqual(status.queued_triggers);
  });

  test("the gate tells what only memory and the clock know", async () => {
    const hours = { start: "22:00", end: "06:00", startMinute: 22 * 60, endMinute: 6 * 60 };
    using daemon = await openContext({ runningHours: hours, maxParallelTasks: 3 });
    daemon.setNow(new Date(2027, 0, 5, 12, 0).getTime());
    daemon.conditions.storageFull = true;
    daemon.conditions.unreconciled = true;
    const now = daemon.clock.now();
    for (const [target, untilMs] of [
      ["codex", now + 1],
      ["claude", now + 9],
      ["old", now],
    ] as const) {
      daemon.store.db
        .insert(cooldowns)
        .values({ key: `agent_target:${target}`, untilMs, reason: `why ${target}`, updatedAtMs: now })
        .run();
    }
    expect((await ask(daemon, "status", {})).gate).toEqual({
      active_agents: 0,
      max_agents: 3,
      capacity_reconciled: false,
      storage: { writable: false, reason: "database_full" },
      running_hours: { start: "22:00", end: "06:00", open: false },
      cooldowns: [
        { target: "claude", until_ms: now + 9, reason: "why claude" },
        { target: "codex", until_ms: now + 1, reason: "why codex" },
      ],
    });
  });
});

describe("next_wake and dispatch", () => {
  test("the earliest scheduled trigger, named by ticket, project or itself", async () => {
    using daemon = await openContext();
    addTicket(daemon, "TICK-12", { projectId: "web" });
    const at = startMs + 90_500;
    addTrigger(daemon, "TR1x", { kind: "at", eligibleAtMs: at });
    const next = async () => {
      const { next_wake, dispatch } = await ask(daemon, "status", {});
      return { next_wake, dispatch };
    };
    const text = new Date(at).toISOString().replace("500Z", "5Z");
    const scheduled = (trigger: string) => ({
      next_wake: text,
      dispatch: { at: text, cause: "scheduled_trigger" as const, trigger },
    });
    expect(await next()).toEqual(scheduled("TR1x"));
    addTrigger(daemon, "TR0", { kind: "every", eligibleAtMs: at, projectId: "web" });
    expect(await next()).toEqual(scheduled("web"));
    addTrigger(daemon, "TQ", { kind: "at", eligibleAtMs: at, ticketId: "TICK-12" });
    expect(await next()).toEqual(scheduled("TICK-12"));
  });

  test("closed hours come first when anything waits for them", async () => {
    const hours = { start: "22:00", end: "06:00", startMinute: 22 * 60, endMinute: 6 * 60 };
    using daemon = await openContext({ runningHours: hours });
    daemon.setNow(new Date(2027, 0, 5, 12, 0).getTime());
    const opening = new Date(2027, 0, 5, 22, 0).toISOString().replace(".000Z", "Z");
    expect(await ask(daemon, "status", {})).not.toHaveProperty("next_wake");
    addTrigger(daemon, "TRa", { kind: "immediate" });
    addTrigger(daemon, "TRb", { kind: "at", eligibleAtMs: daemon.clock.now() + 60_000 });
    expect(await ask(daemon, "status", {})).toMatchObject({
      next_wake: opening,
      dispatch: { at: opening, cause: "running_hours", waiting: 1 },
    });
  });

  test("a cooldown's end, a cleanup and a silence wake too, without being work", async () => {
    using daemon = await openContext();
    addTicket(daemon, "T", { state: "claimed" });
    addRun(daemon, runId("aa"), { ticketId: "T", state: "merged", cleanupEligibleAtMs: startMs - 5000 });
    const wake = async () => (await ask(daemon, "status", {})).next_wake;
    const text = (ms: number) => new Date(ms).toISOString().replace(/\.?0*Z$/, "Z");
    expect(await wake()).toBe(text(startMs - 5000 + 7 * day));
    expect(await ask(daemon, "status", {})).not.toHaveProperty("dispatch");
    const id = runId("bb");
    addRun(daemon, id, { ticketId: "T", state: "running", attempt: 2 });
    const silence = { stage: "build", attempt: 1, lastOutputAtMs: startMs - 1000, lastOutputSequence: 3 };
    daemon.live.set(id, liveRun(id, "T", { silence }));
    expect(await wake()).toBe(text(startMs - 1000 + daemon.config.stallReportAfterMs));
    daemon.store.db
      .insert(cooldowns)
      .values({ key: "agent_target:claude", untilMs: startMs + 300_000, reason: "x", updatedAtMs: startMs })
      .run();
    expect(await ask(daemon, "status", {})).toMatchObject({
      next_wake: text(startMs + 300_000),
      dispatch: { at: text(startMs + 300_000), cause: "cooldown" },
    });
  });
});

describe("a silent agent", () => {
  test("is told once it is long enough, on the running row only, and not while a cancel is pending", async () => {
    using daemon = await openContext();
    addTicket(daemon, "T", { state: "claimed" });
    const id = runId("aa");
    addRun(daemon, id, { ticketId: "T", state: "running" });
    const silence = { stage: "build", attempt: 1, lastOutputAtMs: startMs, lastOutputSequence: null };
    const live = liveRun(id, "T", { silence });
    daemon.live.set(id, live);
    const told = async () => (await ask(daemon, "status", {})).runs[0]?.stages[0]?.silent_for_ms;
    daemon.setNow(startMs + 599_999);
    expect(await told()).toBeNull();
    daemon.setNow(startMs + 600_000);
    expect(await told()).toBe(600_000);
    live.supervised = false;
    expect(await told()).toBeNull();
    live.supervised = true;
    addEvidence(daemon, id, "cancel_requested");
    expect(await told()).toBeNull();
  });
});

describe("a remembered answer", () => {
  test("is the same object until something could have changed it", async () => {
    using daemon = await openContext();
    addTicket(daemon, "T");
    const first = await ask(daemon, "status", {});
    expect(await ask(daemon, "status", {})).toBe(first);
    addTicket(daemon, "U");
    expect((await ask(daemon, "status", {})).tickets.ready).toBe(2);
    daemon.store.db.update(schedulerState).set({ paused: true }).run();
    expect((await ask(daemon, "status", {})).daemon.paused).toBe(true);
    daemon.conditions.storageFull = true;
    expect((await ask(daemon, "status", {})).gate.storage.writable).toBe(false);
    daemon.conditions.unreconciled = true;
    expect((await ask(daemon, "status", {})).gate.capacity_reconciled).toBe(false);
  });

  test("does not outlive an instant, forward or back", async () => {
    using daemon = await openContext();
    addTrigger(daemon, "TRa", { kind: "at", eligibleAtMs: startMs + 1000 });
    expect(await ask(daemon, "status", {})).toHaveProperty("next_wake");
    daemon.setNow(startMs + 999);
    expect(await ask(daemon, "status", {})).toHaveProperty("next_wake");
    daemon.setNow(startMs + 1000);
    expect(await ask(daemon, "status", {})).not.toHaveProperty("next_wake");
    daemon.setNow(startMs);
    expect(await ask(daemon, "status", {})).toHaveProperty("next_wake");
  });

  test("running hours turn on the minute", async () => {
    const hours = { start: "12:00", end: "12:01", startMinute: 720, endMinute: 721 };
    using daemon = await openContext({ runningHours: hours });
    const open = async () => (await ask(daemon, "status", {})).gate.running_hours?.open;
    const noon = new Date(2027, 0, 5, 12, 0).getTime();
    daemon.setNow(noon - 1);
    expect(await open()).toBe(false);
    daemon.setNow(noon);
    expect(await open()).toBe(true);
    daemon.setNow(noon + 59_999);
    expect(await open()).toBe(true);
    daemon.setNow(noon + 60_000);
    expect(await open()).toBe(false);
  });

  test("active runs are always looked at", async () => {
    using daemon = await openContext();
    addTicket(daemon, "T", { state: "claimed" });
    addRun(daemon, runId("aa"), { ticketId: "T" });
    expect(await ask(daemon, "status", {})).not.toBe(await ask(daemon, "status", {}));
    addStage(daemon, runId("aa"), 1, { stage: "build", stageIndex: 0 });
    addEvent(daemon, "run_started", { runId: runId("aa"), ticketId: "T", occurredAtMs: startMs + 7 });
    const [run] = (await ask(daemon, "status", {})).runs;
    expect(run?.started_at_ms).toBe(startMs + 7);
    expect(run?.stages.map((stage) => stage.state)).toEqual(["passed", "running"]);
  });
});

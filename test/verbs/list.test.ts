// `list` and the rows every list shares: order, display state, and the exact reason a ticket is not running.

import { describe, expect, test } from "bun:test";
import type { Daemon } from "../../src/daemon/context.ts";
import type { ListReply } from "../../src/protocol/replies.ts";
import type { Params } from "../../src/protocol/verbs.ts";
import { cooldowns, schedulerState } from "../../src/store/tables.ts";
import { list } from "../../src/verbs/list.ts";
import { openContext, startMs, type TestDaemon } from "../support/context.ts";
import { addEvidence, addRun, addTicket, addTrigger, runId } from "../support/rows.ts";

function rowsOf(daemon: Daemon, args: Params<"list"> = {}): ListReply["tickets"] {
  return (list(daemon, args, { kind: "operator" }) as ListReply).tickets;
}

function idsOf(daemon: Daemon, args: Params<"list"> = {}): string[] {
  return rowsOf(daemon, args).map((row) => row.id);
}

function reasonOf(daemon: Daemon, id: string): string | null | undefined {
  return rowsOf(daemon).find((row) => row.id === id)?.reason;
}

const rejection = {
  class: "rate_limited",
  vendor: "claude",
  rule_id: "claude.rate-limit.usage-limit",
  diagnostic: "Claude usage limit reached",
  cooldown_until_ms: null,
};

function cool(daemon: TestDaemon, target: string, untilMs: number): void {
  daemon.store.db
    .insert(cooldowns)
    .values({ key: `agent_target:${target}`, untilMs, reason: "Claude API overloaded", updatedAtMs: startMs })
    .run();
}

describe("order", () => {
  test("newest first, then by number, then by id as text", async () => {
    using daemon = await openContext();
    for (const id of ["TICK-2", "TICK-10", "plain", "AB-2", "TICK-9", "x-1-3"]) addTicket(daemon, id);
    addTicket(daemon, "OLD-99", { createdAtMs: startMs - 1 });
    addTicket(daemon, "NEW", { createdAtMs: startMs + 1 });
    const order = ["NEW", "TICK-10", "TICK-9", "x-1-3", "TICK-2", "AB-2", "plain", "OLD-99"];
    expect(idsOf(daemon)).toEqual(order);
    for (const limit of [1, 2, 3, 5, 7, 8, 20]) expect(idsOf(daemon, { limit })).toEqual(order.slice(0, limit));
  });

  test("ids beyond 2^53 are ordered by their whole number", async () => {
    using daemon = await openContext();
    for (const id of ["T-9007199254740993", "T-9007199254740992", "T-18446744073709551615"]) addTicket(daemon, id);
    expect(idsOf(daemon)).toEqual(["T-18446744073709551615", "T-9007199254740993", "T-9007199254740992"]);
  });
});

describe("filters", () => {
  test("apply before the limit", async () => {
    using daemon = await openContext();
    addTicket(daemon, "TICK-1", { state: "failed", projectId: "web" });
    addTicket(daemon, "TICK-2", { projectId: "web" });
    addTicket(daemon, "TICK-3", { blockedBy: ["TICK-2"], projectId: "web" });
    addTicket(daemon, "TICK-4");
    expect(idsOf(daemon, { project: "web", limit: 2 })).toEqual(["TICK-3", "TICK-2"]);
    expect(idsOf(daemon, { states: ["blocked"] })).toEqual(["TICK-3"]);
    expect(idsOf(daemon, { states: ["ready"] })).toEqual(["TICK-4", "TICK-2"]);
    expect(idsOf(daemon, { states: ["failed", "blocked"], limit: 1 })).toEqual(["TICK-3"]);
    expect(idsOf(daemon, { states: [] })).toHaveLength(4);
    expect(idsOf(daemon, { states: null, project: null, limit: null })).toHaveLength(4);
  });

  test.each([
    [{ limit: 0 }, "invalid_arguments", "limit"],
    [{ states: ["ready", "done"] }, "invalid_arguments", "`done`"],
    [{ project: "nope" }, "not_found", "project `nope` is not indexed"],
  ])("refuses %j", async (args, code, literal) => {
    using daemon = await openContext();
    expect(() => rowsOf(daemon, args)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(literal) }),
    );
  });
});

describe("rows", () => {
  test("a claimed ticket names its run, and every row has the same eight keys", async () => {
    using daemon = await openContext();
    addTicket(daemon, "TICK-9", { state: "claimed", projectId: "web", name: "Cache avatars" });
    addTicket(daemon, "TICK-8", { state: "claimed" });
    addRun(daemon, runId("aa"), { ticketId: "TICK-9", state: "failed", attempt: 1 });
    addRun(daemon, runId("4be19c02"), { ticketId: "TICK-9", state: "running", attempt: 2 });
    expect(rowsOf(daemon)).toEqual([
      {
        id: "TICK-9",
        name: "Cache avatars",
        project: "web",
        state: "claimed",
        run: "TICK-9-r2",
        run_id: runId("4be19c02"),
        reason: "claimed by run TICK-9-r2",
        classification: null,
      },
      {
        id: "TICK-8",
        name: "Name of TICK-8",
        project: "default",
        state: "claimed",
        run: null,
        run_id: null,
        reason: "claimed by run ?",
        classification: null,
      },
    ]);
  });

  test("a classification is the latest run's, and on a ready ticket only while it holds the ticket back", async () => {
    using daemon = await openContext();
    const states = { F: "failed", R: "ready", N: "needs_review" } as const;
    for (const [id, state] of Object.entries(states)) {
      addTicket(daemon, id, { state, attempts: 2 });
      addRun(daemon, runId(`${id.charCodeAt(0)}1`), { ticketId: id, state: "failed", attempt: 1 });
      addRun(daemon, runId(`${id.charCodeAt(0)}2`), { ticketId: id, state: "failed", attempt: 2 });
      addEvidence(daemon, runId(`${id.charCodeAt(0)}2`), "vendor_error_classified", { data: rejection });
    }
    addTicket(daemon, "O", { state: "failed", attempts: 1 });
    addRun(daemon, runId("e1"), { ticketId: "O", state: "rate_limited", attempt: 1 });
    addEvidence(daemon, runId("e1"), "vendor_error_classified", { data: rejection });
    addRun(daemon, runId("e2"), { ticketId: "O", state: "failed", attempt: 2 });
    const classified = () =>
      Object.fromEntries(rowsOf(daemon).map((row) => [row.id, row.classification?.rule_id ?? null]));
    const rule = rejection.rule_id;
    expect(classified()).toEqual({ F: rule, R: null, N: rule, O: null });
    expect(reasonOf(daemon, "F")).toBe(
      "Claude usage limit reached; failed after 2 attempt(s); requeue with `sloop retry`",
    );
    expect(reasonOf(daemon, "O")).toBe("failed after 1 attempt(s); requeue with `sloop retry`");
    cool(daemon, "claude", startMs + 1);
    expect(classified()).toEqual({ F: rule, R: rule, N: rule, O: null });
    daemon.setNow(startMs + 1);
    expect(classified()["R"]).toBeNull();
    const row = rowsOf(daemon).find(({ id }) => id === "F");
    expect(Object.keys(row?.classification ?? {}).sort()).toEqual(["class", "diagnostic", "rule_id", "vendor"]);
  });
});

describe("reason", () => {
  test("of settled and held tickets", async () => {
    using daemon = await openContext();
    addTicket(daemon, "H", { state: "held" });
    addTicket(daemon, "V", { state: "held", heldReason: ".agents/x.md: flow `x` is not defined" });
    addTicket(daemon, "M", { state: "merged" });
    addTicket(daemon, "N", { state: "needs_review" });
    const reasons = Object.fromEntries(rowsOf(daemon).map((row) => [row.id, row.reason]));
    expect(reasons).toEqual({
      H: "held by operator; release with `sloop ready`",
      V: ".agents/x.md: flow `x` is not defined",
      M: null,
      N: null,
    });
  });

  test("of a ready ticket, from the strongest down to none", async () => {
    using daemon = await openContext({
      runningHours: { start: "00:00", end: "00:01", startMinute: 0, endMinute: 1 },
      maxParallelTasks: 1,
    });
    daemon.setNow(new Date(2027, 0, 1, 12, 0).getTime());
    const now = daemon.clock.now();
    addTicket(daemon, "B1", { state: "merged" });
    addTicket(daemon, "B2", { state: "failed" });
    addTicket(daemon, "T", { blockedBy: ["B2", "B1"], missingAtMs: startMs });
    addRun(daemon, runId("aa"), { ticketId: "B1", state: "driving" });
    daemon.store.db.update(schedulerState).set({ paused: true, draining: true }).run();
    daemon.conditions.storageFull = true;
    daemon.conditions.unreconciled = true;
    cool(daemon, "claude", now + 90_500);

    const until = new Date(now + 90_500).toISOString().replace("500Z", "5Z");
    expect(reasonOf(daemon, "T")).toBe(`target \`claude\` is cooling down until ${until}: Claude API overloaded`);
    expect(rowsOf(daemon, { limit: 1 })[0]?.state).toBe("blocked");
    daemon.store.sqlite.run("delete from cooldowns");
    expect(reasonOf(daemon, "T")).toBe("blocked by unmerged B2");
    daemon.store.sqlite.run("update tickets set state = 'merged' where id = 'B2'");
    expect(reasonOf(daemon, "T")).toBe("ticket file is missing; restore it or run `sloop reindex`");
    daemon.store.sqlite.run("update tickets set missing_at_ms = null");
    expect(reasonOf({ ...daemon, config: { ...daemon.config, agent: null } }, "T")).toBe("no agent targets configured");
    expect(reasonOf({ ...daemon, config: { ...daemon.config, mergeTarget: "gone" } }, "T")).toBe(
      "no target branch (branch `gone` is missing); check out a branch or set `merge.target`",
    );
    expect(reasonOf(daemon, "T")).toBe("scheduler is paused; resume with `sloop resume`");
    daemon.store.db.update(schedulerState).set({ paused: false }).run();
    expect(reasonOf(daemon, "T")).toBe("scheduler is draining for restart; cancel with `sloop resume`");
    daemon.store.db.update(schedulerState).set({ draining: false }).run();
    expect(reasonOf(daemon, "T")).toBe("database storage is full; free disk space to resume dispatch");
    daemon.conditions.storageFull = false;
    expect(reasonOf(daemon, "T")).toBe("run liveness is unreconciled; dispatch waits for a clean scan");
    daemon.conditions.unreconciled = false;
    expect(reasonOf(daemon, "T")).toBe("outside configured running hours");
    const open = { ...daemon, config: { ...daemon.config, runningHours: null } };
    expect(reasonOf(open, "T")).toBe("all agent slots are busy");
    daemon.store.sqlite.run("update runs set exited_at_ms = 1, state = 'merged'");
    expect(reasonOf(open, "T")).toBe("ready but no queued trigger; enqueue with `sloop run`");
    addTrigger(daemon, "TR8", { kind: "at", ticketId: "T", eligibleAtMs: now + 2000 });
    addTrigger(daemon, "TR9", { kind: "every", eligibleAtMs: now + 1000, only: ["T", "B1"] });
    addTrigger(daemon, "TR7", { kind: "immediate", ticketId: "B1" });
    addTrigger(daemon, "TR6", { kind: "immediate", only: ["B2"] });
    expect(reasonOf(open, "T")).toBe(
      `queued trigger TR9 is due at ${new Date(now + 1000).toISOString().replace(".000Z", "Z")}`,
    );
    addTrigger(daemon, "TR5", { kind: "auto", projectId: "default" });
    expect(reasonOf(open, "T")).toBeNull();
  });
});

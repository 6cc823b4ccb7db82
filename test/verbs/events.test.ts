// `events`: pages and cursors of the activity feed, and what a scope lets through.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { renderSuccess } from "../../src/server/reply.ts";
import { ask, refusedWith } from "../support/ask.ts";
import { openContext, startMs, type TestDaemon } from "../support/context.ts";
import { addEvent, addRun, addTicket, runId } from "../support/rows.ts";

async function feed(count: number): Promise<TestDaemon> {
  const daemon = await openContext();
  daemon.store.sqlite.transaction(() => {
    for (let n = 0; n < count; n += 1) addEvent(daemon, "daemon_restart_requested");
  })();
  return daemon;
}

const range = (from: number, to: number) => Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n);

describe("pages", () => {
  test("an empty feed", async () => {
    using daemon = await feed(0);
    expect(await ask(daemon, "events", {})).toEqual({ events: [], next_cursor: 0, latest: 0 });
    expect(await ask(daemon, "events", { tail: 20 })).toEqual({ events: [], next_cursor: 0, latest: 0 });
    expect(await ask(daemon, "events", { after: 5 })).toEqual({ events: [], next_cursor: 5, latest: 0 });
  });

  test.each([
    [{}, 1, 64, 64],
    [{ after: null, limit: null, tail: null }, 1, 64, 64],
    [{ limit: 3 }, 1, 3, 3],
    [{ limit: 1000 }, 1, 256, 256],
    [{ after: 298 }, 299, 300, 300],
    [{ after: 300 }, 1, 0, 300],
    [{ after: 301 }, 1, 0, 301],
    [{ after: -7 }, 1, 64, 64],
    [{ after: -7, limit: 0 }, 1, 0, 0],
    [{ tail: 0 }, 1, 0, 300],
    [{ tail: 2 }, 299, 300, 300],
    [{ tail: 100 }, 201, 264, 264],
    [{ tail: 100, limit: 256 }, 201, 300, 300],
    [{ tail: 4_294_967_295 }, 1, 64, 64],
    [{ tail: 2, after: 10, limit: 1 }, 11, 11, 11],
    [{ tail: 5, limit: 0 }, 1, 0, 295],
    [{ after: 7, limit: 0 }, 1, 0, 7],
  ])("%j", async (args, from, to, cursor) => {
    using daemon = await feed(300);
    const { events, next_cursor, latest } = await ask(daemon, "events", args);
    expect(events.map((event) => event.sequence)).toEqual(range(from, to));
    expect({ next_cursor, latest }).toEqual({ next_cursor: cursor, latest: 300 });
  });

  test("a cursor beyond 2^53 comes back as it went, one far below as 0", async () => {
    using daemon = await feed(1);
    const after = 9_223_372_036_854_775_807n;
    const page = await ask(daemon, "events", { after });
    expect(page).toEqual({ events: [], next_cursor: after, latest: 1 });
    expect(renderSuccess("x", page)).toContain(`"next_cursor":${after}`);
    expect((await ask(daemon, "events", { after: -(2n ** 63n) })).next_cursor).toBe(1);
  });

  test("other kinds do not exist here: gaps, but no part in counting", async () => {
    using daemon = await openContext();
    for (const kind of ["run_claimed", "ticket_posted", "run_started", "stage_passed", "run_finished", "secret"]) {
      addEvent(daemon, kind);
    }
    const kinds = async (args: object) => (await ask(daemon, "events", args)).events.map((event) => event.kind);
    expect(await kinds({})).toEqual(["run_claimed", "run_started", "run_finished"]);
    expect(await kinds({ tail: 2 })).toEqual(["run_started", "run_finished"]);
    expect(await kinds({ limit: 2 })).toEqual(["run_claimed", "run_started"]);
    expect(await ask(daemon, "events", {})).toMatchObject({ next_cursor: 5, latest: 5 });
    expect(await ask(daemon, "events", { tail: 0 })).toMatchObject({ next_cursor: 5 });
  });

  test("following by cursor gives every event once, whatever the limits", async () => {
    using daemon = await feed(120);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 5 }), async (limits) => {
        const seen: number[] = [];
        let after = 0;
        for (let turn = 0; turn < 500; turn += 1) {
          const page = await ask(daemon, "events", { after, limit: limits[turn % limits.length] ?? 1 });
          seen.push(...page.events.map((event) => event.sequence));
          after = Number(page.next_cursor);
          if (after === page.latest) break;
        }
        expect(seen).toEqual(range(1, 120));
      }),
      { numRuns: 15 },
    );
  });
});

describe("an event", () => {
  test("names its run by internal id, with the alias beside it while the run is known", async () => {
    using daemon = await openContext();
    addTicket(daemon, "TICK-8");
    addRun(daemon, runId("aa"), { ticketId: "TICK-8", state: "needs_review", attempt: 3 });
    const data = { outcome: "needs_review", exit_code: null, ticket_state: "needs_review" };
    addEvent(daemon, "run_finished", { runId: runId("aa"), ticketId: "TICK-8", dataJson: JSON.stringify(data) });
    addEvent(daemon, "run_aborted", { runId: "gone", ticketId: "TICK-8" });
    addEvent(daemon, "daemon_restart_requested", { dataJson: "not json" });
    const base = { occurred_at_ms: startMs };
    expect((await ask(daemon, "events", {})).events).toEqual([
      { ...base, sequence: 1, kind: "run_finished", run: runId("aa"), ticket: "TICK-8", data, alias: "TICK-8-r3" },
      { ...base, sequence: 2, kind: "run_aborted", run: "gone", ticket: "TICK-8", data: {} },
      { ...base, sequence: 3, kind: "daemon_restart_requested", run: null, ticket: null, data: {} },
    ]);
  });
});

describe("scope", () => {
  async function scoped(): Promise<TestDaemon> {
    const daemon = await openContext();
    addTicket(daemon, "TICK-1", { projectId: "web", name: "Cache avatars" });
    addTicket(daemon, "TICK-2", { projectId: "web", name: "Other" });
    addTicket(daemon, "TICK-3");
    const runs = { a1: ["TICK-1", 1], a2: ["TICK-1", 2], b1: ["TICK-2", 1], c1: ["TICK-3", 1] } as const;
    for (const [head, [ticketId, attempt]] of Object.entries(runs)) {
      addRun(daemon, runId(head), { ticketId, attempt, state: "merged" });
      addEvent(daemon, "run_claimed", { runId: runId(head), ticketId });
    }
    addEvent(daemon, "external_merge_reconciled", { ticketId: "TICK-1" });
    addEvent(daemon, "daemon_restart_requested");
    addEvent(daemon, "run_claimed", { runId: "gone", ticketId: "TICK-99" });
    return daemon;
  }

  test.each([
    ["TICK-1", [1, 2, 5]],
    ["Cache avatars", [1, 2, 5]],
    ["TICK-1-r2", [2]],
    [runId("b1"), [3]],
    ["web", [1, 2, 3, 5]],
    ["default", [4]],
    ["tick-[12]", [1, 2, 3, 5]],
    ["", [1, 2, 3, 4, 5]],
    ["no such thing", []],
    ["TICK-99", []],
  ])("%p", async (scope, wanted) => {
    using daemon = await scoped();
    const page = await ask(daemon, "events", { scope });
    expect(page.events.map((event) => event.sequence)).toEqual(wanted);
    expect(page).toMatchObject({ next_cursor: 7, latest: 7 });
  });

  test("the limit counts what is scanned, so the cursor moves past what is filtered out", async () => {
    using daemon = await scoped();
    expect(await ask(daemon, "events", { scope: "default", limit: 2 })).toEqual({
      events: [],
      next_cursor: 2,
      latest: 7,
    });
  });

  test.each([
    ["(", ["invalid ticket pattern `(`"]],
    ["0000", []],
  ])("%p", async (scope, literals) => {
    using daemon = await scoped();
    if (literals.length > 0) {
      const refused = refusedWith("invalid_arguments", ...literals) as object;
      await expect(ask(daemon, "events", { scope })).rejects.toMatchObject(refused);
      return;
    }
    addRun(daemon, "0000a", { ticketId: "TICK-1", attempt: 7 });
    addRun(daemon, "0000b", { ticketId: "TICK-1", attempt: 8 });
    await expect(ask(daemon, "events", { scope })).rejects.toMatchObject({ code: "invalid_arguments" });
  });
});

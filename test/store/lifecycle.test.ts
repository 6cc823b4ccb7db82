// Claims, leases, settlements and triggers: the storage invariants of engine.md 22 over random operation sequences.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { builtInFlow } from "../../src/core/flow.ts";
import { renderFlowSnapshot } from "../../src/core/snapshot.ts";
import { type Outcome, outcomes, ticketAfter } from "../../src/core/ticket.ts";
import { due } from "../../src/core/trigger.ts";
import { claimTicket, leaseMs, rearmLease, renewLease } from "../../src/store/claims.ts";
import { appendStageRows, readStageLog } from "../../src/store/evidence.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { beginRun, readRun, releaseAgentProcess, startAgentProcess } from "../../src/store/runs.ts";
import { abortRun, releaseInterrupted, type Settlement, settleRun } from "../../src/store/settle.ts";
import { moveTicket, readTicket } from "../../src/store/tickets.ts";
import { insertTrigger, listDueTriggers, listQueuedTriggers, readTrigger } from "../../src/store/triggers.ts";
import { addTicket, tempStore } from "../support/store.ts";

const flowJson = renderFlowSnapshot(builtInFlow);
let minted = 0;

function admission(id: string) {
  minted += 1;
  const runId = minted.toString(16).padStart(32, "0");
  return { runId, ticket: { id, projectId: "default" }, targetBranch: "main", flowJson, ticketJson: "{}" };
}

function settlement(runId: string, outcome: Outcome): Settlement {
  return {
    runId,
    outcome,
    exitCode: 0,
    commits: null,
    vendor: null,
    captureComplete: true,
    merged: outcome === "merged",
    recovery: null,
    resumeError: null,
    wip: null,
    cooldown: null,
  };
}

type Row = Record<string, string | number | null>;
const rows = (store: Store, sql: string) => store.sqlite.query<Row, []>(sql).all();

/** Invariants 1-4 and 11, whatever happened before. */
function checkInvariants(store: Store): void {
  for (const lease of rows(
    store,
    "select l.ticket_id, t.state, r.exited_at_ms from leases l join tickets t on t.id = l.ticket_id join runs r on r.id = l.run_id",
  )) {
    expect(lease["state"]).toBe("claimed");
    expect(lease["exited_at_ms"]).toBeNull();
  }
  expect(
    rows(
      store,
      "select t.id from tickets t where state = 'claimed' and not exists (select 1 from leases where ticket_id = t.id)",
    ),
  ).toEqual([]);
  expect(
    rows(store, "select ticket_id from runs where exited_at_ms is null group by ticket_id having count(*) > 1"),
  ).toEqual([]);
  expect(
    rows(store, "select id from runs where (state in ('claimed','driving','running')) <> (exited_at_ms is null)"),
  ).toEqual([]);
  expect(
    rows(store, "select ticket_id from runs group by ticket_id having max(attempt) <> count(*) or min(attempt) <> 1"),
  ).toEqual([]);
  expect(
    rows(
      store,
      "select 1 from triggers t join tickets k on k.id = t.ticket_id where t.state = 'queued' and k.state = 'merged'",
    ),
  ).toEqual([]);
}

type Op =
  | { op: "queue"; ticket: string | null; kind: "auto" | "at" | "every"; later: number }
  | { op: "claim"; ticket: string }
  | { op: "begin" | "start" | "release" | "abort" | "renew" | "rearm" | "reopen" | "repair" }
  | { op: "settle"; outcome: Outcome }
  | { op: "move"; ticket: string; to: "held" | "ready" }
  | { op: "advance"; ms: number };

const ids = ["T-1", "T-2", "T-3"];
const anyTicket = fc.constantFrom(...ids);
const ops: fc.Arbitrary<Op> = fc.oneof(
  fc.record({
    op: fc.constant("queue" as const),
    ticket: fc.constantFrom(null, ...ids),
    kind: fc.constantFrom("auto" as const, "at" as const, "every" as const),
    later: fc.nat(3000),
  }),
  fc.record({ op: fc.constant("claim" as const), ticket: anyTicket }),
  fc.record({
    op: fc.constantFrom("begin", "start", "release", "abort", "renew", "rearm", "reopen", "repair"),
  }) as fc.Arbitrary<Op>,
  fc.record({ op: fc.constant("settle" as const), outcome: fc.constantFrom(...outcomes) }),
  fc.record({
    op: fc.constant("move" as const),
    ticket: anyTicket,
    to: fc.constantFrom("held" as const, "ready" as const),
  }),
  fc.record({ op: fc.constant("advance" as const), ms: fc.nat(leaseMs * 2) }),
);

/** Plays operations on a store, the last claimed run being the one they are about. */
class Player {
  store: Store;
  now = 1000;
  run: string | null = null;
  readonly path: string;

  constructor(store: Store, path: string) {
    this.store = store;
    this.path = path;
  }

  claim(ticket: string): void {
    const { store } = this;
    const before = readTicket(store.db, ticket)!;
    const fits = listQueuedTriggers(store.db).some(
      (trigger) => due(trigger, this.now) && (trigger.ticketId ?? ticket) === ticket,
    );
    const snapshot = JSON.stringify([rows(store, "select * from triggers"), rows(store, "select * from runs"), before]);
    const claimed = claimTicket(store, admission(ticket), this.now);
    const eligible =
      before.state === "ready" && fits && (ticket !== "T-3" || readTicket(store.db, "T-1")!.state === "merged");
    expect(claimed !== null).toBe(eligible);
    const after = JSON.stringify([
      rows(store, "select * from triggers"),
      rows(store, "select * from runs"),
      readTicket(store.db, ticket),
    ]);
    if (claimed === null) expect(after).toBe(snapshot);
    else {
      this.run = claimed.runId;
      expect(readTicket(store.db, ticket)!.attempts).toBe(before.attempts + 1);
    }
  }

  settle(outcome: Outcome): void {
    if (this.run === null) return;
    const { store } = this;
    const row = readRun(store.db, this.run)!;
    const consumed = row.triggerId;
    const { applied } = settleRun(store, settlement(this.run, outcome), this.now);
    expect(applied).toBe(row.exitedAtMs === null);
    if (!applied) return;
    expect(readTicket(store.db, row.ticketId)!.state).toBe(ticketAfter(outcome));
    if (outcome === "rate_limited") expect(readTrigger(store.db, consumed)!.state).toBe("queued");
    if (outcome === "cancelled" || outcome === "orphaned") {
      const trigger = readTrigger(store.db, consumed)!;
      expect(trigger.state).toBe(trigger.kind === "every" ? "queued" : "completed");
    }
    expect(settleRun(store, settlement(this.run, "failed"), this.now)).toMatchObject({
      applied: false,
      run: { state: outcome },
    });
  }

  onRun(op: string, run: string): void {
    const { store, now } = this;
    const row = readRun(store.db, run)!;
    const live = row.exitedAtMs === null;
    const process = { pid: 5, pidStartTime: 6, processGroupId: 5 };
    switch (op) {
      case "begin": {
        const workspace = { id: run, ticketId: row.ticketId, branch: "b", worktreePath: "/w" };
        expect(store.write((tx) => beginRun(tx, workspace, now))).toBe(live && row.state === "claimed");
        return;
      }
      case "start":
        expect(store.write((tx) => startAgentProcess(tx, run, process, now))).toBe(live);
        return;
      case "release":
        expect(store.write((tx) => releaseAgentProcess(tx, run, { exitCode: 0 }, now))).toBe(
          live && row.state === "running",
        );
        return;
      case "abort":
        expect(abortRun(store, run, now)).toBe(live);
        if (live) expect(readTrigger(store.db, row.triggerId)).toMatchObject({ state: "queued", eligibleAtMs: now });
        return;
      case "renew": {
        const lease = store.sqlite
          .query<{ expires_at_ms: number }, [string]>("select expires_at_ms from leases where run_id = ?")
          .get(run);
        expect(store.write((tx) => renewLease(tx, run, now))).toBe(lease !== null && lease.expires_at_ms > now);
        return;
      }
      case "rearm":
        expect(store.write((tx) => rearmLease(tx, run, now))).toBe(live);
        return;
    }
  }

  play(op: Op): void {
    switch (op.op) {
      case "queue": {
        if (op.ticket !== null && readTicket(this.store.db, op.ticket)!.state === "merged") return;
        const at = op.kind === "auto" ? null : this.now + op.later;
        const interval = op.kind === "every" ? 500 : null;
        this.store.write((tx) =>
          insertTrigger(tx, { kind: op.kind, ticketId: op.ticket, eligibleAtMs: at, intervalMs: interval }, this.now),
        );
        return;
      }
      case "claim":
        this.claim(op.ticket);
        return;
      case "settle":
        this.settle(op.outcome);
        return;
      case "move":
        this.store.write((tx) =>
          moveTicket(tx, op.ticket, { from: [op.to === "held" ? "ready" : "held"], to: op.to }, this.now),
        );
        return;
      case "advance":
        this.now += op.ms;
        return;
      case "repair":
        // With no foreign program at work there is nothing to repair.
        expect(releaseInterrupted(this.store, this.now)).toEqual([]);
        return;
      case "reopen": {
        const before = JSON.stringify(rows(this.store, "select * from runs"));
        const again = openStore(this.path, this.now);
        expect(JSON.stringify(rows(again, "select * from runs"))).toBe(before);
        again.close();
        return;
      }
      default:
        if (this.run !== null) this.onRun(op.op, this.run);
    }
  }
}

describe("random operation sequences", () => {
  test("keep the storage invariants", () => {
    fc.assert(
      fc.property(fc.array(ops, { minLength: 5, maxLength: 40 }), (sequence) => {
        using at = tempStore();
        addTicket(at.store, "T-1");
        addTicket(at.store, "T-2");
        addTicket(at.store, "T-3", { blockedBy: ["T-1"] });
        const player = new Player(at.store, at.path);
        for (const op of sequence) {
          player.play(op);
          checkInvariants(at.store);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("the SQL due predicate and the pure one agree for every kind, state and instant", () => {
    using at = tempStore();
    addTicket(at.store, "T-1");
    const now = 1000;
    for (const kind of ["immediate", "auto", "at", "every", "overnight"] as const) {
      for (const eligibleAtMs of [null, now - 1, now, now + 1]) {
        for (const state of ["queued", "completed", "cancelled"] as const) {
          const { id } = at.store.write((tx) => insertTrigger(tx, { kind, eligibleAtMs, ticketId: "T-1" }, 1));
          at.store.sqlite.query("update triggers set state = ? where id = ?").run(state, id);
          const listed = listDueTriggers(at.store.db, now, { after: null, limit: 1000 }).some((row) => row.id === id);
          expect(listed).toBe(state === "queued" && due({ kind, eligibleAtMs }, now));
        }
      }
    }
  });
});

describe("one winner", () => {
  test("of many simultaneous claims of one ticket over many connections", () => {
    using at = tempStore();
    addTicket(at.store, "T-1");
    for (let n = 0; n < 8; n += 1) at.store.write((tx) => insertTrigger(tx, { kind: "immediate" }, 1));
    const stores = Array.from({ length: 8 }, () => openStore(at.path, 1));
    const won = stores.map((store) => claimTicket(store, admission("T-1"), 2)).filter((claim) => claim !== null);
    expect(won).toHaveLength(1);
    for (const store of stores) store.close();
  });

  test("of exit checkpoints, and of settlements with different outcomes", () => {
    using at = tempStore();
    addTicket(at.store, "T-1");
    at.store.write((tx) => insertTrigger(tx, { kind: "immediate" }, 1));
    const { runId } = claimTicket(at.store, admission("T-1"), 2)!;
    at.store.write((tx) => startAgentProcess(tx, runId, { pid: 1, pidStartTime: 1, processGroupId: 1 }, 2));
    const other = openStore(at.path, 1);
    const takes = [at.store, other].map((store) =>
      store.write((tx) => releaseAgentProcess(tx, runId, { exitCode: 0 }, 3)),
    );
    expect(takes).toEqual([true, false]);
    expect(settleRun(other, settlement(runId, "merged"), 4).applied).toBe(true);
    expect(settleRun(at.store, settlement(runId, "failed"), 4)).toMatchObject({
      applied: false,
      run: { state: "merged" },
    });
    expect(readTicket(at.store.db, "T-1")!.state).toBe("merged");
    other.close();
  });
});

describe("stage rows", () => {
  test("written again keep their seq, so the order of the walk stands", () => {
    using at = tempStore();
    addTicket(at.store, "T-1");
    at.store.write((tx) => insertTrigger(tx, { kind: "immediate" }, 1));
    const { runId } = claimTicket(at.store, admission("T-1"), 2)!;
    const record = (stageIndex: number, attempt: number) => ({
      stageIndex,
      stage: `s${stageIndex}`,
      state: "passed" as const,
      attempt,
      phase: "action" as const,
      startedAtMs: 1,
      finishedAtMs: 2,
      exitCode: 0,
      verdictSource: "exit_code" as const,
      reason: null,
    });
    at.store.write((tx) => appendStageRows(tx, runId, [record(0, 1), record(1, 1)]));
    at.store.write((tx) => appendStageRows(tx, runId, [{ ...record(0, 1), state: "failed", reason: "why" }]));
    const log = readStageLog(at.store.db, runId);
    expect(log.map((row) => [row.stageIndex, row.state, row.reason])).toEqual([
      [0, "failed", "why"],
      [1, "passed", null],
    ]);
  });
});

describe("a lease that only another program can leave", () => {
  test("of a settled run gives the ticket its outcome back", () => {
    using at = tempStore();
    addTicket(at.store, "T-1");
    at.store.write((tx) => insertTrigger(tx, { kind: "immediate" }, 1));
    const { runId } = claimTicket(at.store, admission("T-1"), 2)!;
    at.store.sqlite.query("update runs set state = 'failed', exited_at_ms = 3 where id = ?").run(runId);
    expect(releaseInterrupted(at.store, 5)).toEqual(["T-1"]);
    expect(readTicket(at.store.db, "T-1")!.state).toBe("failed");
    checkInvariants(at.store);
  });

  test("of a run that is not there is claimed again: ticket ready, its trigger queued", () => {
    using at = tempStore();
    addTicket(at.store, "T-1");
    const { id } = at.store.write((tx) => insertTrigger(tx, { kind: "immediate" }, 1));
    const { runId } = claimTicket(at.store, admission("T-1"), 2)!;
    at.store.sqlite.run("PRAGMA foreign_keys=OFF");
    at.store.sqlite.query("delete from runs where id = ?").run(runId);
    at.store.sqlite.run("PRAGMA foreign_keys=ON");
    expect(releaseInterrupted(at.store, 5)).toEqual(["T-1"]);
    expect(readTicket(at.store.db, "T-1")).toMatchObject({ state: "ready", attempts: 1 });
    expect(readTrigger(at.store.db, id)).toMatchObject({ state: "queued", eligibleAtMs: 5 });
  });
});

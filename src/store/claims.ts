// Claiming a ticket: trigger, ticket, run and lease in one transaction, or nothing (engine.md 8.1).

import { and, eq, gt, isNull, ne, notExists, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { due, type Trigger } from "../core/trigger.ts";
import { appendEvent } from "./journal.ts";
import type { Queries, Store } from "./open.ts";
import { leases, runs, ticketBlockers, tickets } from "./tables.ts";
import { fireTrigger, listTriggersFor } from "./triggers.ts";

export const leaseMs = 600_000;

const blocker = alias(tickets, "blocker");

/** SQL: the ticket has no blocker that is not merged. */
export function unblocked(q: Queries) {
  return notExists(
    q
      .select({ one: sql`1` })
      .from(ticketBlockers)
      .innerJoin(blocker, eq(blocker.id, ticketBlockers.blockerId))
      .where(and(eq(ticketBlockers.ticketId, tickets.id), ne(blocker.state, "merged"))),
  );
}

export type Admission = {
  runId: string;
  ticket: { id: string; projectId: string };
  targetBranch: string;
  flowJson: string;
  ticketJson: string;
};

export type Claim = { runId: string; ticketId: string; attempt: number; triggerId: string };

class InvalidCadence extends Error {}

function nextAttempt(tx: Queries, ticketId: string): number {
  const greatest = tx
    .select({ n: sql<number>`max(${runs.attempt})` })
    .from(runs)
    .where(eq(runs.ticketId, ticketId))
    .get();
  return 1 + (greatest?.n ?? 0);
}

function takeTicket(tx: Queries, id: string, now: number): boolean {
  const taken = tx
    .update(tickets)
    .set({ state: "claimed", attempts: sql`${tickets.attempts} + 1`, heldReason: null, updatedAtMs: now })
    .where(and(eq(tickets.id, id), eq(tickets.state, "ready"), isNull(tickets.missingAtMs), unblocked(tx)))
    .returning({ id: tickets.id })
    .all();
  return taken.length > 0;
}

function insertRun(tx: Queries, admission: Admission, trigger: Trigger, now: number): number {
  const attempt = nextAttempt(tx, admission.ticket.id);
  tx.insert(runs)
    .values({
      id: admission.runId,
      triggerId: trigger.id,
      ticketId: admission.ticket.id,
      state: "claimed",
      attempt,
      targetBranch: admission.targetBranch,
      flowJson: admission.flowJson,
      ticketJson: admission.ticketJson,
      createdAtMs: now,
      updatedAtMs: now,
    })
    .run();
  appendEvent(
    tx,
    { kind: "run_claimed", runId: admission.runId, ticketId: admission.ticket.id, data: { attempt } },
    now,
  );
  tx.insert(leases)
    .values({
      ticketId: admission.ticket.id,
      runId: admission.runId,
      ownerId: JSON.stringify({ owner: admission.runId, trigger: trigger.id }),
      acquiredAtMs: now,
      renewedAtMs: now,
      expiresAtMs: now + leaseMs,
    })
    .run();
  return attempt;
}

/**
 * Claims the ticket for one run; null when somebody else was first, or it is not eligible any more, and nothing is
 * written. Throws when the trigger's cadence is invalid, and on any database error: then nothing is written either.
 */
export function claimTicket(store: Store, admission: Admission, now: number): Claim | null {
  return store.write((tx) => {
    const trigger = listTriggersFor(tx, admission.ticket, "service").find((candidate) => due(candidate, now));
    if (trigger === undefined || !takeTicket(tx, admission.ticket.id, now)) return null;
    if (!fireTrigger(tx, trigger, now)) throw new InvalidCadence(`trigger ${trigger.id} has no valid cadence`);
    const attempt = insertRun(tx, admission, trigger, now);
    return { runId: admission.runId, ticketId: admission.ticket.id, attempt, triggerId: trigger.id };
  });
}

/** The trigger a lease says was consumed; null when its owner is not the JSON we write. */
export function consumedTrigger(ownerId: string): string | null {
  try {
    const owner: unknown = JSON.parse(ownerId);
    if (typeof owner !== "object" || owner === null || !("trigger" in owner)) return null;
    return typeof owner.trigger === "string" ? owner.trigger : null;
  } catch {
    return null;
  }
}

/** The leases of runs that execute: a claimed one has nothing yet that could go on. */
export function listRenewable(q: Queries): { runId: string; renewedAtMs: number }[] {
  return q
    .select({ runId: leases.runId, renewedAtMs: leases.renewedAtMs })
    .from(leases)
    .innerJoin(runs, eq(runs.id, leases.runId))
    .where(and(isNull(runs.exitedAtMs), ne(runs.state, "claimed")))
    .all();
}

/** Renews a lease by its own length; false when it has lapsed or is not held by that run. */
export function renewLease(tx: Queries, runId: string, now: number): boolean {
  const renewed = tx
    .update(leases)
    .set({ expiresAtMs: sql`${now} + (${leases.expiresAtMs} - ${leases.renewedAtMs})`, renewedAtMs: now })
    .where(and(eq(leases.runId, runId), gt(leases.expiresAtMs, now)))
    .returning({ runId: leases.runId })
    .all();
  return renewed.length > 0;
}

/** Re-adoption's right to lift a lapsed lease, for a run that has not ended. */
export function rearmLease(tx: Queries, runId: string, now: number): boolean {
  const rearmed = tx
    .update(leases)
    .set({ renewedAtMs: now, expiresAtMs: now + leaseMs })
    .where(eq(leases.runId, runId))
    .returning({ runId: leases.runId })
    .all();
  return rearmed.length > 0;
}

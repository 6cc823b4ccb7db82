// Trigger rows: queueing, firing, requeueing and retiring demand.

import { and, asc, desc, eq, gt, inArray, isNotNull, isNull, lte, or, type SQL, sql } from "drizzle-orm";
import { rearm, type Trigger, type TriggerKind, targets } from "../core/trigger.ts";
import { reserveId } from "./counters.ts";
import type { Queries } from "./open.ts";
import { triggerFilters, triggers } from "./tables.ts";

type TriggerRow = typeof triggers.$inferSelect;

function withFilters(q: Queries, rows: TriggerRow[]): Trigger[] {
  const only = new Map<string, string[]>();
  const unpinned = rows.filter((row) => row.ticketId === null).map((row) => row.id);
  if (unpinned.length > 0) {
    const filters = q.select().from(triggerFilters).where(inArray(triggerFilters.triggerId, unpinned)).all();
    for (const filter of filters) only.set(filter.triggerId, [...(only.get(filter.triggerId) ?? []), filter.ticketId]);
  }
  return rows.map((row) => ({ ...row, only: only.get(row.id) ?? [] }));
}

/** The order in which they are served: ids as text. */
const order = [asc(triggers.createdAtMs), asc(triggers.id)];
/** The order in which they came: of two of one instant the one with the smaller number. */
const age = [asc(triggers.createdAtMs), asc(sql`length(${triggers.id})`), asc(triggers.id)];

export function readTrigger(q: Queries, id: string): Trigger | null {
  return withFilters(q, q.select().from(triggers).where(eq(triggers.id, id)).all())[0] ?? null;
}

/** Every queued trigger, oldest first. */
export function listQueuedTriggers(q: Queries): Trigger[] {
  return withFilters(
    q,
    q
      .select()
      .from(triggers)
      .where(eq(triggers.state, "queued"))
      .orderBy(...age)
      .all(),
  );
}

function dueAt(now: number): SQL | undefined {
  return and(
    eq(triggers.state, "queued"),
    or(inArray(triggers.kind, ["immediate", "auto"]), lte(triggers.eligibleAtMs, now)),
  );
}

/** One page of due triggers in the order they are served, behind `after`; the same rule as core/trigger `due`. */
export function listDueTriggers(q: Queries, now: number, page: { after: Trigger | null; limit: number }): Trigger[] {
  const { after } = page;
  const behind =
    after === null
      ? undefined
      : or(
          gt(triggers.createdAtMs, after.createdAtMs),
          and(eq(triggers.createdAtMs, after.createdAtMs), gt(triggers.id, after.id)),
        );
  const rows = q
    .select()
    .from(triggers)
    .where(and(dueAt(now), behind))
    .orderBy(...order)
    .limit(page.limit)
    .all();
  return withFilters(q, rows);
}

/** Queued triggers that could select the ticket, pinned to it or unpinned ones that fit, as they came or as they are served. */
export function listTriggersFor(
  q: Queries,
  ticket: { id: string; projectId: string },
  by: "age" | "service",
): Trigger[] {
  const rows = q
    .select()
    .from(triggers)
    .where(and(eq(triggers.state, "queued"), or(eq(triggers.ticketId, ticket.id), isNull(triggers.ticketId))))
    .orderBy(...(by === "age" ? age : order))
    .all();
  return withFilters(q, rows).filter((trigger) => targets(trigger, ticket));
}

/** The earliest scheduled instant after `now`, with its trigger. */
export function nextScheduled(q: Queries, now: number): Trigger | null {
  const rows = q
    .select()
    .from(triggers)
    .where(
      and(
        eq(triggers.state, "queued"),
        inArray(triggers.kind, ["at", "every", "overnight"]),
        gt(triggers.eligibleAtMs, now),
      ),
    )
    .orderBy(asc(triggers.eligibleAtMs), ...order)
    .limit(1)
    .all();
  return withFilters(q, rows)[0] ?? null;
}

export type NewTrigger = {
  kind: TriggerKind;
  ticketId?: string | null;
  projectId?: string | null;
  eligibleAtMs?: number | null;
  intervalMs?: number | null;
  only?: readonly string[];
};

/** Queues a trigger with all its filters, in the caller's transaction. */
export function insertTrigger(tx: Queries, trigger: NewTrigger, now: number): Trigger {
  const row: TriggerRow = {
    id: reserveId(tx, "trigger"),
    kind: trigger.kind,
    state: "queued",
    ticketId: trigger.ticketId ?? null,
    projectId: trigger.projectId ?? null,
    eligibleAtMs: trigger.eligibleAtMs ?? null,
    intervalMs: trigger.intervalMs ?? null,
    createdAtMs: now,
    updatedAtMs: now,
  };
  tx.insert(triggers).values(row).run();
  const only = [...new Set(trigger.only ?? [])];
  for (const ticketId of only) tx.insert(triggerFilters).values({ triggerId: row.id, ticketId }).run();
  return { ...row, only };
}

/** The oldest queued trigger of that kind pinned to the ticket. */
export function queuedPinned(q: Queries, ticketId: string, kind: TriggerKind): Trigger | null {
  const rows = q
    .select()
    .from(triggers)
    .where(and(eq(triggers.state, "queued"), eq(triggers.ticketId, ticketId), eq(triggers.kind, kind)))
    .orderBy(...order)
    .limit(1)
    .all();
  return withFilters(q, rows)[0] ?? null;
}

export function retimeTrigger(tx: Queries, id: string, eligibleAtMs: number, now: number): void {
  tx.update(triggers).set({ eligibleAtMs, updatedAtMs: now }).where(eq(triggers.id, id)).run();
}

/** Completes every queued trigger pinned to a ticket that is merged now; returns how many. */
export function retirePinned(tx: Queries, ticketId: string, now: number): number {
  return tx
    .update(triggers)
    .set({ state: "completed", updatedAtMs: now })
    .where(and(eq(triggers.state, "queued"), eq(triggers.ticketId, ticketId)))
    .returning({ id: triggers.id })
    .all().length;
}

/** Fires a trigger for a claim: completed, or re-armed if recurring. False: it is not queued, or its cadence is invalid. */
export function fireTrigger(tx: Queries, trigger: Trigger, now: number): boolean {
  const next = trigger.kind === "every" ? rearm(trigger.eligibleAtMs ?? now, trigger.intervalMs, now) : null;
  if (trigger.kind === "every" && next === null) return false;
  const change = next === null ? { state: "completed" as const } : { eligibleAtMs: next };
  const fired = tx
    .update(triggers)
    .set({ ...change, updatedAtMs: now })
    .where(and(eq(triggers.id, trigger.id), eq(triggers.state, "queued")))
    .returning({ id: triggers.id })
    .all();
  return fired.length > 0;
}

/** Returns a consumed trigger to the queue with that instant, whatever its kind; a cancelled one stays cancelled. */
export function requeueTrigger(tx: Queries, id: string, eligibleAtMs: number, now: number): boolean {
  const requeued = tx
    .update(triggers)
    .set({ state: "queued", eligibleAtMs, updatedAtMs: now })
    .where(and(eq(triggers.id, id), inArray(triggers.state, ["queued", "completed"])))
    .returning({ id: triggers.id })
    .all();
  return requeued.length > 0;
}

/** For a lease that names no trigger: the most recently updated consumed one that targets the ticket. */
export function lastConsumed(q: Queries, ticket: { id: string; projectId: string }): Trigger | null {
  const rows = q
    .select()
    .from(triggers)
    .where(
      and(
        or(eq(triggers.state, "completed"), and(eq(triggers.state, "queued"), eq(triggers.kind, "every"))),
        or(eq(triggers.ticketId, ticket.id), isNull(triggers.ticketId)),
        isNotNull(triggers.updatedAtMs),
      ),
    )
    .orderBy(desc(triggers.updatedAtMs), desc(triggers.id))
    .limit(200)
    .all();
  return withFilters(q, rows).find((trigger) => targets(trigger, ticket)) ?? null;
}

// What a starting daemon brings in order before it answers anybody (engine.md 16.2).

import { and, eq, isNull, lt, lte, sql } from "drizzle-orm";
import type { Queries } from "./open.ts";
import { events, requestKeys, tickets, triggers } from "./tables.ts";

const eventsKept = 50_000;
const requestKeysKeptMs = 24 * 60 * 60 * 1000;

/** Drops all but the newest 50 000 sequence numbers of the feed, and request keys older than a day. */
export function trimHistory(tx: Queries, now: number): void {
  const newest =
    tx
      .select({ n: sql<number>`coalesce(max(${events.sequence}), 0)` })
      .from(events)
      .get()?.n ?? 0;
  if (newest > eventsKept)
    tx.delete(events)
      .where(lte(events.sequence, newest - eventsKept))
      .run();
  tx.delete(requestKeys)
    .where(lt(requestKeys.createdAtMs, now - requestKeysKeptMs))
    .run();
}

/** Gives tickets without a target the current default one. */
export function backfillTargets(tx: Queries, target: string, now: number): void {
  tx.update(tickets).set({ target, updatedAtMs: now }).where(isNull(tickets.target)).run();
}

/** Completes queued triggers pinned to merged tickets; returns which. */
export function retireMerged(tx: Queries, now: number): { triggerId: string; ticketId: string }[] {
  const stale = tx
    .select({ triggerId: triggers.id, ticketId: tickets.id })
    .from(triggers)
    .innerJoin(tickets, eq(tickets.id, triggers.ticketId))
    .where(and(eq(triggers.state, "queued"), eq(tickets.state, "merged")))
    .all();
  for (const { triggerId } of stale) {
    tx.update(triggers).set({ state: "completed", updatedAtMs: now }).where(eq(triggers.id, triggerId)).run();
  }
  return stale;
}

// Finding runs by the names people give them (protocol.md 5.2, 5.3). Read only.

import { and, asc, desc, eq, gte, like, lt, sql } from "drizzle-orm";
import type { Queries } from "./open.ts";
import { type RunRow, runs } from "./tables.ts";

/** The run an alias names: an exact ticket id and an attempt. */
export function readRunByAttempt(q: Queries, ticketId: string, attempt: number): RunRow | null {
  const where = and(eq(runs.ticketId, ticketId), eq(runs.attempt, attempt));
  return q.select().from(runs).where(where).get() ?? null;
}

/** Runs whose internal id starts with `prefix` (lowercase hex), in order of creation, then id. */
export function listByPrefix(q: Queries, prefix: string): RunRow[] {
  // `g` follows every hexadecimal digit, so the index finds exactly the ids that begin so.
  return q
    .select()
    .from(runs)
    .where(and(gte(runs.id, prefix), lt(runs.id, `${prefix}g`), like(runs.id, `${prefix}%`)))
    .orderBy(asc(runs.createdAtMs), asc(runs.id))
    .all();
}

/** A ticket's runs, highest attempt first. */
export function listRunsOf(q: Queries, ticketId: string): RunRow[] {
  return q
    .select()
    .from(runs)
    .where(eq(runs.ticketId, ticketId))
    .orderBy(desc(runs.attempt), desc(sql`${runs}.rowid`))
    .all();
}

/** The attempts of a ticket below `attempt`, ascending. */
export function listEarlierAttempts(q: Queries, ticketId: string, attempt: number): number[] {
  return q
    .select({ attempt: runs.attempt })
    .from(runs)
    .where(and(eq(runs.ticketId, ticketId), lt(runs.attempt, attempt)))
    .orderBy(asc(runs.attempt))
    .all()
    .map((row) => row.attempt);
}

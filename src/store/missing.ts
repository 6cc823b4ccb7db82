// Marks and drops of tickets whose file is gone.

import { and, eq, isNotNull, notExists, sql } from "drizzle-orm";
import type { Queries } from "./open.ts";
import { leases, runs, ticketBlockers, tickets, triggerFilters, triggers } from "./tables.ts";

/** Every local ticket that came from a file. */
export function listFiledTickets(q: Queries): { id: string; filePath: string; missingAtMs: number | null }[] {
  return q
    .select({ id: tickets.id, filePath: tickets.filePath, missingAtMs: tickets.missingAtMs })
    .from(tickets)
    .where(and(eq(tickets.source, "local"), isNotNull(tickets.filePath)))
    .all()
    .flatMap((row) => (row.filePath === null ? [] : [{ ...row, filePath: row.filePath }]));
}

export function setMissing(tx: Queries, id: string, missingAtMs: number | null, now: number): void {
  tx.update(tickets).set({ missingAtMs, updatedAtMs: now }).where(eq(tickets.id, id)).run();
}

/** Deletes a ticket that no run, lease, trigger, filter or other ticket refers to; any other stays. */
export function deleteUnreferenced(tx: Queries, id: string): void {
  const none = (table: typeof runs | typeof leases | typeof triggers | typeof triggerFilters) =>
    notExists(tx.select({ one: sql`1` }).from(table).where(eq(table.ticketId, id)));
  const blocksNone = notExists(tx.select({ one: sql`1` }).from(ticketBlockers).where(eq(ticketBlockers.blockerId, id)));
  tx.delete(tickets)
    .where(and(eq(tickets.id, id), none(runs), none(leases), none(triggers), none(triggerFilters), blocksNone))
    .run();
}

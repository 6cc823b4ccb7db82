// Ticket rows: reading one, registering one from its file, moving one from state to state.

import { and, asc, eq, inArray, ne } from "drizzle-orm";
import type { TicketState } from "../core/ticket.ts";
import type { Queries } from "./open.ts";
import { type TicketRow, ticketBlockers, tickets } from "./tables.ts";

export function readTicket(q: Queries, id: string): TicketRow | null {
  return q.select().from(tickets).where(eq(tickets.id, id)).get() ?? null;
}

/** The ticket registered for a repository-relative file path. */
export function readTicketByFile(q: Queries, filePath: string): TicketRow | null {
  return q.select().from(tickets).where(eq(tickets.filePath, filePath)).get() ?? null;
}

/** Ids of every ticket, missing ones included: what a new id must be greater than. */
export function listTicketIds(q: Queries): string[] {
  return q
    .select({ id: tickets.id })
    .from(tickets)
    .all()
    .map((row) => row.id);
}

/** The lowest id (as text) of a ticket with exactly that name. */
export function ticketNamed(q: Queries, name: string): string | null {
  return (
    q.select({ id: tickets.id }).from(tickets).where(eq(tickets.name, name)).orderBy(asc(tickets.id)).get()?.id ?? null
  );
}

/** A ticket's blockers in the order its file lists them. */
export function listBlockers(q: Queries, ticketId: string): { id: string; state: TicketState }[] {
  return q
    .select({ id: tickets.id, state: tickets.state })
    .from(ticketBlockers)
    .innerJoin(tickets, eq(tickets.id, ticketBlockers.blockerId))
    .where(eq(ticketBlockers.ticketId, ticketId))
    .orderBy(asc(ticketBlockers.position))
    .all();
}

/** Blockers that are not merged, in file order. */
export function unmergedBlockers(q: Queries, ticketId: string): string[] {
  return q
    .select({ id: tickets.id })
    .from(ticketBlockers)
    .innerJoin(tickets, eq(tickets.id, ticketBlockers.blockerId))
    .where(and(eq(ticketBlockers.ticketId, ticketId), ne(tickets.state, "merged")))
    .orderBy(asc(ticketBlockers.position))
    .all()
    .map((row) => row.id);
}

/** Every edge of the dependency graph, by ticket. */
export function blockerGraph(q: Queries): Map<string, string[]> {
  const graph = new Map<string, string[]>();
  const rows = q.select().from(ticketBlockers).orderBy(asc(ticketBlockers.position)).all();
  for (const row of rows) {
    const edges = graph.get(row.ticketId);
    if (edges === undefined) graph.set(row.ticketId, [row.blockerId]);
    else edges.push(row.blockerId);
  }
  return graph;
}

/** What a ticket file says, as it is registered. */
export type TicketContent = {
  name: string;
  worktree: string;
  target: string | null;
  model: string | null;
  effort: string | null;
  flow: string;
  body: string;
  contentHash: string;
  blockedBy: readonly string[];
};

export type NewTicket = TicketContent & { id: string; projectId: string; filePath: string; state: "ready" | "held" };

/** Replaces a ticket's edges; the tickets they lead to are there. */
export function writeBlockers(tx: Queries, ticketId: string, blockedBy: readonly string[]): void {
  tx.delete(ticketBlockers).where(eq(ticketBlockers.ticketId, ticketId)).run();
  blockedBy.forEach((blockerId, position) => {
    tx.insert(ticketBlockers).values({ ticketId, blockerId, position }).run();
  });
}

function contentColumns(content: TicketContent): Partial<TicketRow> {
  const { name, worktree, target, model, effort, flow, body, contentHash } = content;
  return { name, worktree, target, model, effort, flow, body, contentHash };
}

export function insertTicket(tx: Queries, ticket: NewTicket, now: number): void {
  tx.insert(tickets)
    .values({
      id: ticket.id,
      projectId: ticket.projectId,
      filePath: ticket.filePath,
      sourceRef: ticket.filePath,
      state: ticket.state,
      ...contentColumns(ticket),
      createdAtMs: now,
      updatedAtMs: now,
    })
    .run();
  writeBlockers(tx, ticket.id, ticket.blockedBy);
}

/** Refreshes a known ticket from its file. The state stays, but for one that validation held and that is good now. */
export function refreshTicket(tx: Queries, row: TicketRow, content: TicketContent, now: number): void {
  const released = row.state === "held" && row.heldReason !== null;
  tx.update(tickets)
    .set({
      ...contentColumns(content),
      heldReason: null,
      missingAtMs: null,
      updatedAtMs: now,
      ...(released ? { state: "ready" as const } : {}),
    })
    .where(eq(tickets.id, row.id))
    .run();
  writeBlockers(tx, row.id, content.blockedBy);
}

/** Moves a ticket if it is in one of `from`; false when it is not, and nothing is written. Clears a stored hold reason. */
export function moveTicket(
  tx: Queries,
  id: string,
  move: { from: readonly TicketState[]; to: TicketState; attempts?: number },
  now: number,
): boolean {
  const moved = tx
    .update(tickets)
    .set({
      state: move.to,
      heldReason: null,
      updatedAtMs: now,
      ...(move.attempts === undefined ? {} : { attempts: move.attempts }),
    })
    .where(and(eq(tickets.id, id), inArray(tickets.state, [...move.from])))
    .returning({ id: tickets.id })
    .all();
  return moved.length > 0;
}

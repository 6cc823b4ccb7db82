// What reports read of the index: counts, tickets by recency, and what a row says beside its ticket. Read only.

import { and, asc, desc, eq, gt, inArray, isNull, ne, not, or, type SQL, sql } from "drizzle-orm";
import type { VendorEvidence } from "../core/evidence.ts";
import { newestFirst, type Registered } from "../core/recency.ts";
import type { DisplayState, TicketState } from "../core/ticket.ts";
import type { Queries } from "./open.ts";
import { numberOf, runEvidence, runs, type TicketRow, ticketBlockers, tickets } from "./tables.ts";

/** SQLite takes a bounded number of parameters; longer lists are asked for in pieces. */
const pieceSize = 500;

export function inPieces<T, R>(items: readonly T[], ask: (piece: T[]) => R[]): R[] {
  const answers: R[] = [];
  for (let at = 0; at < items.length; at += pieceSize) answers.push(...ask(items.slice(at, at + pieceSize)));
  return answers;
}

const blockedTicket = sql`exists (select 1 from ${ticketBlockers} join tickets as blocker
  on blocker.id = ${ticketBlockers.blockerId} where ${ticketBlockers.ticketId} = ${tickets.id}
  and blocker.state <> 'merged')`;

export function countAllTickets(q: Queries): number {
  return q.select({ n: sql<number>`count(*)` }).from(tickets).get()?.n ?? 0;
}

export type TicketFilter = { projectId?: string | null; states?: readonly DisplayState[] };

function stateCondition(state: DisplayState): SQL | undefined {
  if (state === "blocked") return and(eq(tickets.state, "ready"), blockedTicket);
  if (state === "ready") return and(eq(tickets.state, "ready"), not(blockedTicket));
  return eq(tickets.state, state);
}

function filterCondition(filter: TicketFilter): SQL | undefined {
  const { projectId, states } = filter;
  return and(
    projectId == null ? undefined : eq(tickets.projectId, projectId),
    states === undefined || states.length === 0 ? undefined : or(...states.map(stateCondition)),
  );
}

const registered = { id: tickets.id, createdAtMs: tickets.createdAtMs };

type Query = { all(): Registered[]; values(): unknown[][] };

// Thousands of rows as plain arrays cost a third of what objects cost.
function rowsOf(query: Query): Registered[] {
  return (query.values() as [string, number][]).map(([id, createdAtMs]) => ({ id, createdAtMs }));
}

/** Ids of the newest tickets, newest first, as `newestFirst` has them; an index holds them in that order. */
function listNewest(q: Queries, limit: number | null): string[] {
  const order = [tickets.createdAtMs, ...numberOf(tickets.id), tickets.id].map((term) => desc(term));
  const query = q
    .select({ id: tickets.id })
    .from(tickets)
    .orderBy(...order);
  const rows = (limit === null ? query : query.limit(limit)).values() as [string][];
  return rows.map(([id]) => id);
}

/** Ids of the newest tickets that pass `filter`, newest first; all of them without a limit. */
export function listRecent(q: Queries, limit: number | null, filter: TicketFilter = {}): string[] {
  const where = filterCondition(filter);
  if (where === undefined) return listNewest(q, limit);
  const base = q.select(registered).from(tickets).where(where).orderBy(desc(tickets.createdAtMs));
  const first = rowsOf(limit === null ? base : base.limit(limit));
  const last = first.at(-1);
  if (limit === null || last === undefined || first.length < limit)
    return newestFirst(first, null).map((row) => row.id);
  // Which of those registered at the last instant belong to the page is not for the index to say.
  const at = and(eq(tickets.createdAtMs, last.createdAtMs), where);
  const tied = rowsOf(q.select(registered).from(tickets).where(at));
  const newer = first.filter((row) => row.createdAtMs > last.createdAtMs);
  return newestFirst([...newer, ...tied], limit).map((row) => row.id);
}

/** A ticket without its body. */
export type ListedTicket = Pick<
  TicketRow,
  "id" | "name" | "projectId" | "state" | "attempts" | "heldReason" | "missingAtMs" | "target"
>;

/** The tickets with those ids, in that order; ids that are not there are left out. */
export function readListed(q: Queries, ids: readonly string[]): ListedTicket[] {
  const rows = inPieces(ids, (piece) =>
    q
      .select({
        id: tickets.id,
        name: tickets.name,
        projectId: tickets.projectId,
        state: tickets.state,
        attempts: tickets.attempts,
        heldReason: tickets.heldReason,
        missingAtMs: tickets.missingAtMs,
        target: tickets.target,
      })
      .from(tickets)
      .where(inArray(tickets.id, piece))
      .all(),
  );
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

/** Unmerged blockers of each of those tickets, in file order; tickets without any are absent. */
export function listUnmergedBlockers(q: Queries, ids: readonly string[]): Map<string, string[]> {
  const blockers = new Map<string, string[]>();
  const rows = inPieces(ids, (piece) =>
    q
      .select({ ticketId: ticketBlockers.ticketId, blockerId: ticketBlockers.blockerId })
      .from(ticketBlockers)
      .innerJoin(tickets, eq(tickets.id, ticketBlockers.blockerId))
      .where(and(inArray(ticketBlockers.ticketId, piece), ne(tickets.state, "merged")))
      .orderBy(asc(ticketBlockers.ticketId), asc(ticketBlockers.position))
      .all(),
  );
  for (const { ticketId, blockerId } of rows) {
    const listed = blockers.get(ticketId);
    if (listed === undefined) blockers.set(ticketId, [blockerId]);
    else listed.push(blockerId);
  }
  return blockers;
}

/** The latest run's vendor rejection of each of those tickets; tickets whose latest run has none are absent. */
export function listLatestRejections(q: Queries, ids: readonly string[]): Map<string, VendorEvidence> {
  const latest = inPieces(ids, (piece) =>
    q
      .select({ ticketId: runs.ticketId, runId: runs.id, attempt: sql<number>`max(${runs.attempt})` })
      .from(runs)
      .where(inArray(runs.ticketId, piece))
      .groupBy(runs.ticketId)
      .all(),
  );
  const tickets = new Map(latest.map((row) => [`settlement:${row.runId}:vendor_error_classified`, row.ticketId]));
  const found = inPieces([...tickets.keys()], (piece) =>
    q
      .select({ key: runEvidence.dedupeKey, dataJson: runEvidence.dataJson })
      .from(runEvidence)
      .where(inArray(runEvidence.dedupeKey, piece))
      .all(),
  );
  const rejections = new Map<string, VendorEvidence>();
  for (const { key, dataJson } of found) {
    const ticketId = tickets.get(key ?? "");
    if (ticketId !== undefined) rejections.set(ticketId, JSON.parse(dataJson) as VendorEvidence);
  }
  return rejections;
}

/** Ids of tickets in one of those stored states, unordered. */
export function listInStates(q: Queries, states: readonly TicketState[]): Registered[] {
  return q
    .select(registered)
    .from(tickets)
    .where(inArray(tickets.state, [...states]))
    .all();
}

/** The earliest instant (epoch ms) after `eligibleAfterMs` from which a worktree not yet cleaned counts its retention. */
export function nextCleanupEligible(q: Queries, eligibleAfterMs: number): number | null {
  const row = q
    .select({ atMs: runs.cleanupEligibleAtMs })
    .from(runs)
    .where(and(isNull(runs.cleanedAtMs), gt(runs.cleanupEligibleAtMs, eligibleAfterMs)))
    .orderBy(asc(runs.cleanupEligibleAtMs))
    .limit(1)
    .get();
  return row?.atMs ?? null;
}

/** When (epoch ms) the process an unsettled run stands on was recorded; null when it stands on none. */
export function readProcessStart(q: Queries, runId: string): number | null {
  const where = eq(runEvidence.dedupeKey, `settlement:${runId}:stage_process`);
  return q.select({ atMs: runEvidence.observedAtMs }).from(runEvidence).where(where).get()?.atMs ?? null;
}

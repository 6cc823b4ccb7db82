// Tickets as the gate looks at them, for selection: one by id, or the next page of those that could be ready.

import { and, asc, eq, gt, isNull, or } from "drizzle-orm";
import type { Candidate } from "../core/select.ts";
import { unblocked } from "./claims.ts";
import type { Queries } from "./open.ts";
import { type TicketRow, tickets } from "./tables.ts";
import { readTicket, unmergedBlockers } from "./tickets.ts";

function candidateOf(q: Queries, row: TicketRow, defaultTarget: string | null): Candidate {
  return {
    id: row.id,
    projectId: row.projectId,
    state: row.state,
    attempts: row.attempts,
    heldReason: row.heldReason,
    missing: row.missingAtMs !== null,
    target: row.target ?? defaultTarget,
    unmergedBlockers: unmergedBlockers(q, row.id),
    claimedBy: null,
    diagnostic: null,
    createdAtMs: row.createdAtMs,
  };
}

/** One ticket as a candidate; null when there is none. */
export function readCandidate(q: Queries, id: string, defaultTarget: string | null): Candidate | null {
  const row = readTicket(q, id);
  return row === null ? null : candidateOf(q, row, defaultTarget);
}

export type CandidatePage = { projectId: string | null; after: Candidate | null; limit: number };

/** The next ready, present, unblocked tickets in registration order; the gate still judges each of them. */
export function listCandidates(q: Queries, page: CandidatePage, defaultTarget: string | null): Candidate[] {
  const { projectId, after } = page;
  const behind =
    after === null
      ? undefined
      : or(
          gt(tickets.createdAtMs, after.createdAtMs),
          and(eq(tickets.createdAtMs, after.createdAtMs), gt(tickets.id, after.id)),
        );
  const rows = q
    .select()
    .from(tickets)
    .where(
      and(
        eq(tickets.state, "ready"),
        isNull(tickets.missingAtMs),
        projectId === null ? undefined : eq(tickets.projectId, projectId),
        behind,
        unblocked(q),
      ),
    )
    .orderBy(asc(tickets.createdAtMs), asc(tickets.id))
    .limit(page.limit)
    .all();
  return rows.map((row) => candidateOf(q, row, defaultTarget));
}

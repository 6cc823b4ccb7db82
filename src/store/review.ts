// Runs that wait for a person: which there are, and the merge by hand that settles their ticket (engine.md 15.2).

import { and, desc, eq, isNotNull } from "drizzle-orm";
import { appendEvidence } from "./evidence-rows.ts";
import { appendEvent } from "./journal.ts";
import type { Queries, Store } from "./open.ts";
import { type RunRow, runs, tickets } from "./tables.ts";
import { moveTicket } from "./tickets.ts";
import { retirePinned } from "./triggers.ts";

/** For each `needs_review` ticket its newest `needs_review` run with a branch. */
export function listReviewRuns(q: Queries): RunRow[] {
  const rows = q
    .select({ run: runs })
    .from(tickets)
    .innerJoin(runs, eq(runs.ticketId, tickets.id))
    .where(and(eq(tickets.state, "needs_review"), eq(runs.state, "needs_review"), isNotNull(runs.branch)))
    .orderBy(desc(runs.attempt))
    .all();
  const newest = new Map<string, RunRow>();
  for (const { run } of rows) if (!newest.has(run.ticketId)) newest.set(run.ticketId, run);
  return [...newest.values()];
}

export type ExternalMerge = { branch: string; branch_tip: string; observed_default_tip: string };

function releaseReviewed(tx: Queries, ticketId: string, now: number): boolean {
  if (!moveTicket(tx, ticketId, { from: ["needs_review"], to: "merged" }, now)) return false;
  retirePinned(tx, ticketId, now);
  return true;
}

/** A branch was found merged by hand: the ticket is merged, the run stays what it is. False: somebody was first. */
export function settleExternalMerge(store: Store, run: RunRow, merge: ExternalMerge, now: number): boolean {
  return store.write((tx) => {
    const key = `external_merge:${run.id}`;
    const first = appendEvidence(tx, { runId: run.id, kind: "external_merge_observed", key, data: merge }, now);
    if (first) {
      const event = { kind: "external_merge_reconciled", runId: run.id, ticketId: run.ticketId, data: merge };
      appendEvent(tx, event, now);
      tx.update(runs).set({ cleanupEligibleAtMs: now, updatedAtMs: now }).where(eq(runs.id, run.id)).run();
    }
    return releaseReviewed(tx, run.ticketId, now);
  });
}

/** The merge was recorded, but a crash came before its ticket was released. */
export function releaseMergedTicket(store: Store, ticketId: string, now: number): boolean {
  return store.write((tx) => releaseReviewed(tx, ticketId, now));
}

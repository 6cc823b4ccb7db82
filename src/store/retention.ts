// What retention may take away, and the record of what it took (engine.md 15.3).

import { and, asc, eq, gt, inArray, isNotNull, isNull, lte, max, notExists, or, sql } from "drizzle-orm";
import { upsertEvidence } from "./evidence-rows.ts";
import { appendEvent } from "./journal.ts";
import type { Queries, Store } from "./open.ts";
import { leases, type RunRow, runs, tickets } from "./tables.ts";

const unleased = (q: Queries) => notExists(q.select({ one: sql`1` }).from(leases).where(eq(leases.runId, runs.id)));

/** Settled runs whose worktree and branch may go, those that may go first in front. `untilMs` null: however young. */
export function listCleanable(q: Queries, untilMs: number | null, limit: number): RunRow[] {
  return q
    .select()
    .from(runs)
    .where(
      and(
        isNull(runs.cleanedAtMs),
        isNotNull(runs.exitedAtMs),
        untilMs === null ? isNotNull(runs.cleanupEligibleAtMs) : lte(runs.cleanupEligibleAtMs, untilMs),
        isNotNull(runs.branch),
        isNotNull(runs.worktreePath),
        unleased(q),
      ),
    )
    .orderBy(asc(runs.cleanupEligibleAtMs))
    .limit(limit)
    .all();
}

/** Where a list of forgotten runs goes on: behind this run. */
export type ForgottenCursor = { exitedAtMs: number; id: string };

export type ForgottenPage = {
  /** Epoch ms: only runs settled by then. */
  untilMs: number;
  after: ForgottenCursor | null;
  limit: number;
};

function behind(after: ForgottenCursor | null) {
  if (after === null) return undefined;
  const { exitedAtMs, id } = after;
  return or(gt(runs.exitedAtMs, exitedAtMs), and(eq(runs.exitedAtMs, exitedAtMs), gt(runs.id, id)));
}

/** Failed and needs_review runs that nobody resolved, oldest settlement first. */
export function listForgotten(q: Queries, { untilMs, after, limit }: ForgottenPage): RunRow[] {
  return q
    .select()
    .from(runs)
    .where(
      and(
        isNull(runs.cleanedAtMs),
        isNull(runs.cleanupEligibleAtMs),
        inArray(runs.state, ["failed", "needs_review"]),
        lte(runs.exitedAtMs, untilMs),
        isNotNull(runs.worktreePath),
        behind(after),
      ),
    )
    .orderBy(asc(runs.exitedAtMs), asc(runs.id))
    .limit(limit)
    .all();
}

/** Records that worktree and branch of a run are gone. */
export function recordCleaned(store: Store, run: RunRow, now: number): void {
  store.write((tx) => {
    tx.update(runs)
      .set({ cleanedAtMs: now, updatedAtMs: now })
      .where(and(eq(runs.id, run.id), isNull(runs.cleanedAtMs)))
      .run();
    const data = { branch: run.branch, worktree: run.worktreePath };
    appendEvent(tx, { kind: "run_worktree_cleaned", runId: run.id, ticketId: run.ticketId, data }, now);
  });
}

/** Records where a run's uncommitted files are kept, so that people are told, also when that was not possible at its end. */
export function recordKept(store: Store, runId: string, wip: { ref: string; files: number }, now: number): void {
  store.write((tx) => upsertEvidence(tx, { runId, kind: "uncommitted_kept", data: wip }, now));
}

/** `known`: whether the run still has a row. Instants are epoch ms, null for what has not happened. */
export type Resolution = { known: boolean; atMs: number | null; cleanedAtMs: number | null };

/**
 * When a run's ticket was resolved; null while it is not. A ticket's row does not say when it was merged, but
 * was written at that instant, be it by a reindex: what was written to it later only makes this later.
 */
export function resolvedAt(q: Queries, runId: string): Resolution {
  const run = q
    .select({ ticketId: runs.ticketId, cleanedAtMs: runs.cleanedAtMs })
    .from(runs)
    .where(eq(runs.id, runId))
    .get();
  if (run === undefined) return { known: false, atMs: null, cleanedAtMs: null };
  const { cleanedAtMs } = run;
  const ticket = q
    .select({ state: tickets.state, writtenAtMs: tickets.updatedAtMs })
    .from(tickets)
    .where(eq(tickets.id, run.ticketId))
    .get();
  if (ticket?.state !== "merged") return { known: true, atMs: null, cleanedAtMs };
  const latest = q
    .select({ ended: max(runs.exitedAtMs), eligible: max(runs.cleanupEligibleAtMs) })
    .from(runs)
    .where(eq(runs.ticketId, run.ticketId))
    .get();
  const atMs = Math.max(ticket.writtenAtMs, latest?.ended ?? 0, latest?.eligible ?? 0);
  return { known: true, atMs, cleanedAtMs };
}

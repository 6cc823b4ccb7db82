// What retention may take away, and the record of what it took (engine.md 15.3).

import { and, asc, eq, inArray, isNotNull, isNull, lte, max, notExists, sql } from "drizzle-orm";
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

/** Failed and needs_review runs that nobody resolved by `untilMs` (epoch ms of their settlement). */
export function listForgotten(q: Queries, untilMs: number, limit: number): RunRow[] {
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
      ),
    )
    .orderBy(asc(runs.exitedAtMs))
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

/** When a run's ticket was resolved (epoch ms): its last run's end once it is merged; null while it is not. */
export function resolvedAt(q: Queries, runId: string): { known: boolean; atMs: number | null } {
  const run = q.select({ ticketId: runs.ticketId }).from(runs).where(eq(runs.id, runId)).get();
  if (run === undefined) return { known: false, atMs: null };
  const ticket = q.select({ state: tickets.state }).from(tickets).where(eq(tickets.id, run.ticketId)).get();
  if (ticket?.state !== "merged") return { known: true, atMs: null };
  const latest = q
    .select({ ended: max(runs.exitedAtMs), eligible: max(runs.cleanupEligibleAtMs) })
    .from(runs)
    .where(eq(runs.ticketId, run.ticketId))
    .get();
  return { known: true, atMs: Math.max(latest?.ended ?? 0, latest?.eligible ?? 0) };
}

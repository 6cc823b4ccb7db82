// Run rows: one per attempt, inserted at its claim and only updated later, always conditionally.

import { and, asc, desc, eq, inArray, isNull, sql } from "drizzle-orm";
import { appendEvent } from "./journal.ts";
import type { Queries } from "./open.ts";
import { leases, type RunRow, runs } from "./tables.ts";

export function readRun(q: Queries, id: string): RunRow | null {
  return q.select().from(runs).where(eq(runs.id, id)).get() ?? null;
}

/** Unsettled runs in the order of their claims. */
export function listUnsettled(q: Queries): RunRow[] {
  return q
    .select()
    .from(runs)
    .where(isNull(runs.exitedAtMs))
    .orderBy(asc(runs.createdAtMs), asc(sql`${runs}.rowid`))
    .all();
}

export function countUnsettled(q: Queries): number {
  return q.select({ n: sql<number>`count(*)` }).from(runs).where(isNull(runs.exitedAtMs)).get()?.n ?? 0;
}

/** The ticket's run with the highest attempt. */
export function latestRun(q: Queries, ticketId: string): RunRow | null {
  return q.select().from(runs).where(eq(runs.ticketId, ticketId)).orderBy(desc(runs.attempt)).limit(1).get() ?? null;
}

/** Unsettled runs that hold a lease: what a starting daemon has to look after. */
export function listLeased(q: Queries): { run: RunRow; expiresAtMs: number }[] {
  return q
    .select({ run: runs, expiresAtMs: leases.expiresAtMs })
    .from(leases)
    .innerJoin(runs, eq(runs.id, leases.runId))
    .where(isNull(runs.exitedAtMs))
    .orderBy(asc(runs.createdAtMs), asc(sql`${runs}.rowid`))
    .all();
}

function unsettled(id: string, states: readonly RunRow["state"][]) {
  return and(eq(runs.id, id), isNull(runs.exitedAtMs), inArray(runs.state, [...states]));
}

/** `claimed` to `driving`, once the workspace is open; false when somebody else has the run. */
export function beginRun(
  tx: Queries,
  run: { id: string; ticketId: string; branch: string; worktreePath: string },
  now: number,
): boolean {
  const begun = tx
    .update(runs)
    .set({
      state: "driving",
      branch: run.branch,
      worktreePath: run.worktreePath,
      startedAtMs: sql`coalesce(${runs.startedAtMs}, ${now})`,
      updatedAtMs: now,
    })
    .where(unsettled(run.id, ["claimed"]))
    .returning({ id: runs.id })
    .all();
  if (begun.length === 0) return false;
  appendEvent(tx, { kind: "run_started", runId: run.id, ticketId: run.ticketId }, now);
  return true;
}

export type ProcessIdentity = { pid: number; pidStartTime: number | null; processGroupId: number };

/** An agent stage's process was started and identified: the run is `running`. */
export function startAgentProcess(tx: Queries, id: string, process: ProcessIdentity, now: number): boolean {
  const started = tx
    .update(runs)
    .set({ state: "running", ...process, updatedAtMs: now })
    .where(unsettled(id, ["claimed", "driving", "running"]))
    .returning({ id: runs.id })
    .all();
  return started.length > 0;
}

/**
 * `running` to `driving` when an agent's exit is taken; whoever's update changes the row owns the rest of the walk. An
 * agent of which nothing is known but that it was started may not have got as far as `running`: `lost`.
 */
export function releaseAgentProcess(
  tx: Queries,
  id: string,
  exit: { exitCode?: number | null; lost?: boolean },
  now: number,
): boolean {
  const released = tx
    .update(runs)
    .set({ state: "driving", updatedAtMs: now, ...(exit.exitCode === undefined ? {} : { exitCode: exit.exitCode }) })
    .where(unsettled(id, exit.lost === true ? ["running", "driving"] : ["running"]))
    .returning({ id: runs.id })
    .all();
  return released.length > 0;
}

/** Stores a freshly minted credential, so that a later daemon can serve it again. */
export function storeCredential(
  tx: Queries,
  id: string,
  credential: { token: string; socketPath: string },
  now: number,
): void {
  tx.update(runs)
    .set({ workerToken: credential.token, workerSocketPath: credential.socketPath, updatedAtMs: now })
    .where(eq(runs.id, id))
    .run();
}

/** A run's end: only where it has none yet; false when it was settled before. */
export function endRun(
  tx: Queries,
  id: string,
  end: { state: RunRow["state"]; exitCode: number | null; cleanupEligibleAtMs: number | null },
  now: number,
): boolean {
  const ended = tx
    .update(runs)
    .set({ ...end, exitedAtMs: now, updatedAtMs: now })
    .where(and(eq(runs.id, id), isNull(runs.exitedAtMs)))
    .returning({ id: runs.id })
    .all();
  return ended.length > 0;
}

/** Makes a resolved ticket's runs that ended so, and whose worktrees waited for a person, eligible for cleanup from `now`. */
export function releaseWorktrees(
  tx: Queries,
  ticketId: string,
  ended: readonly ("failed" | "needs_review")[],
  now: number,
): void {
  tx.update(runs)
    .set({ cleanupEligibleAtMs: now, updatedAtMs: now })
    .where(
      and(
        eq(runs.ticketId, ticketId),
        inArray(runs.state, [...ended]),
        isNull(runs.cleanedAtMs),
        isNull(runs.cleanupEligibleAtMs),
      ),
    )
    .run();
}

// The end of a run, whichever: run, evidence, ticket, triggers and lease in one transaction (engine.md 13.2, 6.3, 8.4).

import { and, eq } from "drizzle-orm";
import type { CommitObservation, VendorEvidence } from "../core/evidence.ts";
import type { Cooldown } from "../core/gate.ts";
import { type Outcome, ticketAfter } from "../core/ticket.ts";
import { consumedTrigger } from "./claims.ts";
import { readFacts } from "./evidence.ts";
import { deleteEvidence, insertFact, type SettlementFact } from "./evidence-rows.ts";
import { appendEvent } from "./journal.ts";
import type { Queries, Store } from "./open.ts";
import { endRun, readRun } from "./runs.ts";
import { coolDown } from "./scheduler.ts";
import { type LeaseRow, leases, type RunRow } from "./tables.ts";
import { moveTicket, readTicket } from "./tickets.ts";
import { lastConsumed, requeueTrigger, retirePinned } from "./triggers.ts";

export type Settlement = {
  runId: string;
  outcome: Outcome;
  exitCode: number | null;
  commits: CommitObservation | null;
  vendor: VendorEvidence | null;
  captureComplete: boolean;
  /** Null: no merge was attempted. */
  merged: boolean | null;
  recovery: "resumed" | "orphaned" | null;
  resumeError: string | null;
  wip: { ref: string; files: number } | null;
  cooldown: Cooldown | null;
};

function readLease(q: Queries, runId: string): LeaseRow | null {
  return q.select().from(leases).where(eq(leases.runId, runId)).get() ?? null;
}

function requeueConsumed(tx: Queries, lease: LeaseRow, atMs: number, now: number): void {
  const named = consumedTrigger(lease.ownerId);
  const ticket = readTicket(tx, lease.ticketId);
  const id = named ?? (ticket === null ? null : lastConsumed(tx, ticket)?.id);
  if (id != null) requeueTrigger(tx, id, atMs, now);
}

type Released = "ready" | "merged" | "failed" | "needs_review";

function releasedState(outcome: Outcome): Released {
  const state = ticketAfter(outcome);
  return state === "merged" || state === "failed" || state === "needs_review" ? state : "ready";
}

/** Gives the ticket of a lease back: its new state, its demand if `requeueAtMs` is an instant, the lease gone. */
function releaseTicket(
  tx: Queries,
  lease: LeaseRow,
  release: { to: Released; requeueAtMs: number | null },
  now: number,
): void {
  moveTicket(tx, lease.ticketId, { from: ["claimed"], to: release.to }, now);
  if (release.to === "merged") retirePinned(tx, lease.ticketId, now);
  if (release.requeueAtMs !== null) requeueConsumed(tx, lease, release.requeueAtMs, now);
  tx.delete(leases)
    .where(and(eq(leases.ticketId, lease.ticketId), eq(leases.runId, lease.runId)))
    .run();
}

function settlementFacts(end: Settlement): SettlementFact[] {
  const { runId } = end;
  const facts: SettlementFact[] = [{ runId, kind: "exit_classified", data: { exit_code: end.exitCode } }];
  facts.push({ runId, kind: "commits_observed", data: end.commits ?? { complete: false, oids: [] } });
  if (end.recovery !== null) facts.push({ runId, kind: "recovery_classified", data: { classification: end.recovery } });
  if (end.merged !== null) facts.push({ runId, kind: "merge_result", data: { merged: end.merged } });
  if (!end.captureComplete) facts.push({ runId, kind: "capture_incomplete", data: {} });
  if (end.vendor !== null) facts.push({ runId, kind: "vendor_error_classified", data: end.vendor });
  if (end.resumeError !== null) facts.push({ runId, kind: "driver_resume_failed", data: { error: end.resumeError } });
  if (end.wip !== null) facts.push({ runId, kind: "uncommitted_kept", data: end.wip });
  return facts;
}

/** Failed and needs_review worktrees wait for a person; all others may be cleaned after their retention. */
function cleanupFrom(outcome: Outcome, now: number): number | null {
  return outcome === "failed" || outcome === "needs_review" ? null : now;
}

function requeueInstant(end: Settlement, now: number): number | null {
  if (end.outcome !== "rate_limited") return null;
  return end.vendor?.cooldown_until_ms ?? now;
}

/** Settles a run once: a settled one absorbs it, and the recorded outcome is returned. */
export function settleRun(store: Store, end: Settlement, now: number): { applied: boolean; run: RunRow | null } {
  return store.write((tx) => {
    const { runId, outcome, exitCode } = end;
    const settled = { state: outcome, exitCode, cleanupEligibleAtMs: cleanupFrom(outcome, now) };
    const applied = endRun(tx, runId, settled, now);
    if (!applied) return { applied, run: readRun(tx, runId) };
    for (const fact of settlementFacts(end)) insertFact(tx, fact, now);
    deleteEvidence(tx, runId, "stage_process");
    if (end.cooldown !== null) coolDown(tx, { ...end.cooldown, sourceRunId: runId }, now);
    const run = readRun(tx, runId);
    const to = releasedState(outcome);
    const data = { outcome, exit_code: exitCode, ticket_state: to };
    appendEvent(tx, { kind: "run_finished", runId, ...(run === null ? {} : { ticketId: run.ticketId }), data }, now);
    const lease = readLease(tx, runId);
    if (lease !== null) releaseTicket(tx, lease, { to, requeueAtMs: requeueInstant(end, now) }, now);
    return { applied, run };
  });
}

/** Rolls an admission back: the launch failed before anything ran. False when the run had ended already. */
export function abortRun(store: Store, runId: string, now: number): boolean {
  return store.write((tx) => {
    const applied = endRun(tx, runId, { state: "aborted", exitCode: null, cleanupEligibleAtMs: now }, now);
    const run = readRun(tx, runId);
    if (!applied || run === null) return false;
    deleteEvidence(tx, runId, "stage_process");
    appendEvent(tx, { kind: "run_aborted", runId, ticketId: run.ticketId }, now);
    const lease = readLease(tx, runId);
    if (lease !== null) releaseTicket(tx, lease, { to: "ready", requeueAtMs: now }, now);
    return true;
  });
}

/** What becomes of the ticket of a lease whose run has ended, or is not there; null while the run goes on. */
function interruptedRelease(tx: Queries, run: RunRow | null, now: number): Parameters<typeof releaseTicket>[2] | null {
  if (run === null || run.state === "aborted") return { to: "ready", requeueAtMs: now };
  if (run.exitedAtMs === null) return null;
  const cooled = run.state === "rate_limited" ? (readFacts(tx, run.id).vendor?.cooldown_until_ms ?? now) : null;
  return { to: releasedState(run.state as Outcome), requeueAtMs: cooled };
}

/** Repairs leases whose run has ended or is gone: only another program can leave one. Returns the tickets freed. */
export function releaseInterrupted(store: Store, now: number): string[] {
  // Asked at every tick of an idle daemon, so nothing is locked for nothing.
  if (store.db.select({ runId: leases.runId }).from(leases).limit(1).get() === undefined) return [];
  return store.write((tx) => {
    const freed: string[] = [];
    for (const lease of tx.select().from(leases).all()) {
      const release = interruptedRelease(tx, readRun(tx, lease.runId), now);
      if (release === null) continue;
      releaseTicket(tx, lease, release, now);
      freed.push(lease.ticketId);
    }
    return freed;
  });
}

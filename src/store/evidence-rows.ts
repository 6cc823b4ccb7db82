// The three ways an evidence row is written: upserted, inserted once, deleted.

import { eq } from "drizzle-orm";
import type { Queries } from "./open.ts";
import { runEvidence } from "./tables.ts";

/** Facts that the exit checkpoint and the settlement share; there is at most one of each kind per run. */
export type SettlementKind =
  | "stage_process"
  | "exit_classified"
  | "commits_observed"
  | "vendor_error_classified"
  | "capture_incomplete"
  | "recovery_classified"
  | "merge_result"
  | "uncommitted_kept"
  | "driver_resume_failed";

function settlementKey(runId: string, kind: SettlementKind): string {
  return `settlement:${runId}:${kind}`;
}

export type SettlementFact = { runId: string; kind: SettlementKind; data: object };

export type KeyedEvidence = { runId: string; kind: string; key: string; data: object };

/** Writes evidence, replacing what stood under its key. */
export function replaceEvidence(tx: Queries, evidence: KeyedEvidence, now: number): void {
  const { runId, kind, key: dedupeKey } = evidence;
  const dataJson = JSON.stringify(evidence.data);
  tx.insert(runEvidence)
    .values({ runId, kind, observedAtMs: now, dedupeKey, dataJson })
    .onConflictDoUpdate({ target: runEvidence.dedupeKey, set: { observedAtMs: now, dataJson } })
    .run();
}

/** Writes the fact, replacing what was there. */
export function upsertEvidence(tx: Queries, fact: SettlementFact, now: number): void {
  replaceEvidence(tx, { ...fact, key: settlementKey(fact.runId, fact.kind) }, now);
}

/** Writes the fact unless an earlier one stands: at settlement the checkpoint's values win. */
export function insertFact(tx: Queries, fact: SettlementFact, now: number): void {
  appendEvidence(tx, { ...fact, key: settlementKey(fact.runId, fact.kind) }, now);
}

export function deleteEvidence(tx: Queries, runId: string, kind: SettlementKind): void {
  tx.delete(runEvidence)
    .where(eq(runEvidence.dedupeKey, settlementKey(runId, kind)))
    .run();
}

/** Inserts once per key; false when the key was there, which changes nothing. */
export function appendEvidence(tx: Queries, evidence: KeyedEvidence, now: number): boolean {
  const inserted = tx
    .insert(runEvidence)
    .values({
      runId: evidence.runId,
      kind: evidence.kind,
      observedAtMs: now,
      dedupeKey: evidence.key,
      dataJson: JSON.stringify(evidence.data),
    })
    .onConflictDoNothing({ target: runEvidence.dedupeKey })
    .returning({ sequence: runEvidence.sequence })
    .all();
  return inserted.length > 0;
}

// How a finished walk is read: the run's outcome as a total function of its evidence (engine.md 13.1).

import { type CommitObservation, coolsDown, type VendorClass } from "./evidence.ts";
import type { Outcome } from "./ticket.ts";

export type End = {
  orphaned: boolean;
  cancelRequested: boolean;
  stalled: boolean;
  vendorClass: VendorClass | null;
  merged: boolean;
  /** What the walk needs to go on is missing or unreadable. */
  unresumable: boolean;
  /** The primary agent's last exit; `ran` false when no agent ever exited, which counts as success. */
  exit: { ran: boolean; code: number | null };
  /** Index of the stage the walk stopped on; null when it is not known or the walk is complete. */
  haltIndex: number | null;
  halted: boolean;
  commits: CommitObservation | null;
};

function vendorOutcome(vendorClass: VendorClass): Outcome {
  return coolsDown(vendorClass) ? "rate_limited" : "failed";
}

function certainlyNoCommits(commits: CommitObservation | null): boolean {
  return commits?.complete === true && commits.oids.length === 0;
}

/** The outcome: the first matching row of engine.md 13.1. */
export function deriveOutcome(end: End): Outcome {
  if (end.cancelRequested) return "cancelled";
  if (end.stalled) return "failed";
  if (end.vendorClass !== null) return vendorOutcome(end.vendorClass);
  if (end.orphaned) return "orphaned";
  if (end.merged) return "merged";
  if (end.unresumable) return "needs_review";
  if (end.exit.ran && end.exit.code !== 0) return "failed";
  const haltedLater = end.halted && end.haltIndex !== 0;
  if (haltedLater && certainlyNoCommits(end.commits)) return "failed";
  return "needs_review";
}

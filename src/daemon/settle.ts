// The end of a run: its outcome derived from evidence, everything about it written at once, and what follows from that.

import type { CommitObservation, RunFacts } from "../core/evidence.ts";
import { deriveOutcome, type End } from "../core/outcome.ts";
import type { Outcome } from "../core/ticket.ts";
import { observeCommits } from "../git/inspect.ts";
import { keepUncommitted, NotAllKept } from "../git/keep.ts";
import { readFacts } from "../store/evidence.ts";
import { readRun } from "../store/runs.ts";
import { type Settlement, settleRun } from "../store/settle.ts";
import type { RunRow } from "../store/tables.ts";
import type { Daemon } from "./context.ts";
import { closeCredential } from "./credential.ts";
import { reportOutcome } from "./source.ts";
import { noteStorageFull } from "./storage.ts";

/** How a walk ended, as its driver saw it. */
export type WalkEnd = {
  runId: string;
  /** The stage it stopped on; null: the walk is complete, was cancelled, or the position is not known. */
  haltIndex: number | null;
  halted: boolean;
  /** Null: no merge was attempted. */
  merged: boolean | null;
  recovery: "resumed" | "orphaned" | null;
  resumeError: string | null;
};

type Kept = { commits: CommitObservation | null; wip: { ref: string; files: number } | null };

/** The run's evidence; a cancel that could not be stored is known from memory alone. */
function factsOf(daemon: Daemon, runId: string): RunFacts {
  const facts = readFacts(daemon.store.db, runId);
  return { ...facts, cancelRequested: facts.cancelRequested || daemon.live.get(runId)?.cancelling === true };
}

function endOf(end: WalkEnd, facts: RunFacts, commits: CommitObservation | null): End {
  return {
    orphaned: end.recovery === "orphaned",
    cancelRequested: facts.cancelRequested,
    stalled: facts.stall !== null,
    vendorClass: facts.vendor?.class ?? null,
    merged: end.merged === true,
    unresumable: end.resumeError !== null,
    exit: { ran: facts.exit !== null, code: facts.exit?.exitCode ?? null },
    haltIndex: end.haltIndex,
    halted: end.halted,
    commits,
  };
}

function cooldownOf(facts: RunFacts, outcome: Outcome, target: string | null): Settlement["cooldown"] {
  const until = facts.vendor?.cooldown_until_ms ?? null;
  if (facts.vendor === null || until === null || target === null) return null;
  if (outcome !== "rate_limited") return null;
  return { target, untilMs: until, reason: facts.vendor.diagnostic };
}

function targetOf(daemon: Daemon, run: RunRow): string | null {
  try {
    const ticket: unknown = JSON.parse(run.ticketJson ?? "null");
    if (typeof ticket === "object" && ticket !== null && "target" in ticket && typeof ticket.target === "string") {
      return ticket.target;
    }
  } catch {
    // An unreadable snapshot leaves the default.
  }
  return daemon.config.agent?.defaultTarget ?? null;
}

/** What has to be looked at in git before a run may settle: work nobody committed, commits nobody counted. */
async function gather(daemon: Daemon, run: RunRow, end: WalkEnd): Promise<Kept> {
  const facts = factsOf(daemon, run.id);
  const { branch, worktreePath: worktree } = run;
  const { root } = daemon.paths;
  if (branch === null || worktree === null) return { commits: { complete: true, oids: [] }, wip: null };
  const commits = facts.exit === null ? await observeCommits(root, branch) : facts.commits;
  const outcome = deriveOutcome(endOf(end, facts, commits));
  if (outcome === "merged") return { commits, wip: null };
  try {
    return { commits, wip: await keepUncommitted({ root, worktree, branch, runId: run.id }) };
  } catch (error) {
    // The run settles all the same: its directory stays for as long as something in it cannot be kept.
    const fields = { run_id: run.id, ticket_id: run.ticketId, worktree, error: String(error) };
    daemon.log.warn("sloop::dispatcher", "uncommitted_work_not_kept", fields);
    return { commits, wip: error instanceof NotAllKept ? error.kept : null };
  }
}

function settlementOf(daemon: Daemon, run: RunRow, end: WalkEnd, kept: Kept): Settlement {
  const facts = factsOf(daemon, run.id);
  const outcome = deriveOutcome(endOf(end, facts, kept.commits));
  return {
    runId: run.id,
    outcome,
    exitCode: facts.exit === null ? (end.recovery === "orphaned" ? null : 0) : facts.exit.exitCode,
    commits: kept.commits,
    vendor: facts.vendor,
    captureComplete: !facts.captureIncomplete,
    merged: end.merged,
    recovery: end.recovery,
    resumeError: end.resumeError,
    wip: kept.wip,
    cooldown: cooldownOf(facts, outcome, targetOf(daemon, run)),
  };
}

/** Drops a run from memory: its slot is free, its socket gone. */
export function forgetRun(daemon: Daemon, runId: string): void {
  const live = daemon.live.get(runId);
  if (live !== undefined) closeCredential(live);
  daemon.live.delete(runId);
}

/** Settles a finished walk; false when the store would not take it, and it must be tried again. */
function trySettle(daemon: Daemon, end: WalkEnd, kept: Kept): boolean {
  const run = readRun(daemon.store.db, end.runId);
  if (run === null) {
    forgetRun(daemon, end.runId);
    return true;
  }
  try {
    const settlement = settlementOf(daemon, run, end, kept);
    const { applied, run: settled } = settleRun(daemon.store, settlement, daemon.clock.now());
    forgetRun(daemon, run.id);
    if (applied) {
      daemon.log.info("sloop::dispatcher", "run_exited", { run_id: run.id, outcome: settled?.state });
      void reportOutcome(daemon, run.ticketId, settlement.outcome);
    }
    return true;
  } catch (error) {
    noteStorageFull(daemon, error);
    const fields = { run_id: run.id, error: error instanceof Error ? error.message : String(error) };
    daemon.log.error("sloop::dispatcher", "run_exit_persist_failed", fields);
    return false;
  }
}

/** Finished walks whose settlement the store has not taken yet. */
export type PendingExits = Map<string, () => boolean>;

/** Settles a run whose walk is over; what cannot be stored is kept and tried again at every pass. */
export async function settleWalk(daemon: Daemon, pending: PendingExits, end: WalkEnd): Promise<void> {
  const run = readRun(daemon.store.db, end.runId);
  const kept = run === null ? { commits: null, wip: null } : await gather(daemon, run, end);
  await daemon.enqueue(() => {
    // What a forced stop has ended settles at the next start, all of it alike (protocol.md 7.3).
    if (daemon.conditions.stopping) return;
    const settle = () => trySettle(daemon, end, kept);
    if (!settle()) pending.set(end.runId, settle);
  });
}

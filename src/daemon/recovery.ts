// Runs that outlived their daemon: sorted at start and whenever one turns up that memory does not know (engine.md 16.3).

import { parseFlowSnapshot } from "../core/snapshot.ts";
import { rearmLease } from "../store/claims.ts";
import { readFacts } from "../store/evidence.ts";
import { listLeased } from "../store/runs.ts";
import { abortRun, releaseInterrupted } from "../store/settle.ts";
import type { RunRow } from "../store/tables.ts";
import { identify } from "../system/process.ts";
import type { Daemon, LiveRun } from "./context.ts";
import { restoreCredential } from "./credential.ts";
import { driveOpened } from "./driver.ts";
import { type Launcher, newLiveRun, superviseRun } from "./launch.ts";
import { readStallEpisodes } from "./stall-episodes.ts";
import { recordedProcess, stopRecordedProcess } from "./stop-process.ts";

/** Serves the worker socket of a process that is still alive: same path, same token, the scope of its checkpoint. */
function restoreDoor(daemon: Daemon, run: RunRow, live: LiveRun): void {
  const { process } = readFacts(daemon.store.db, run.id);
  const { workerToken: token, workerSocketPath: socketPath } = run;
  if (process === null || token === null || socketPath === null) return;
  const stages = parseFlowSnapshot(run.flowJson)?.stages ?? [];
  const stageIndex = stages.findIndex((stage) => stage.name === process.stage);
  const stage = stages[stageIndex];
  const works = stage?.action.kind === "agent" || stage?.resultCheck.kind === "reported" || process.seat !== undefined;
  if (stage === undefined || !works) return;
  const { attempt, seat } = process;
  const scope = { runId: run.id, stage: process.stage, stageIndex, attempt, seat: seat ?? null };
  try {
    restoreCredential(daemon, live, { token, socketPath, scope });
  } catch (error) {
    daemon.log.error("sloop::recovery", "worker_socket_restore_failed", { run_id: run.id, error: String(error) });
  }
}

/** Takes up one unsettled run: aborts a claim that nothing followed, re-adopts what lives, resumes what does not. */
export function adoptRun(launcher: Launcher, run: RunRow): void {
  const { daemon } = launcher;
  const now = daemon.clock.now();
  if (run.state === "claimed") {
    abortRun(daemon.store, run.id, now);
    daemon.log.warn("sloop::recovery", "interrupted_claim_released", { run_id: run.id, ticket_id: run.ticketId });
    return;
  }
  const live = newLiveRun({ runId: run.id, ticketId: run.ticketId });
  daemon.store.write((tx) => rearmLease(tx, run.id, now));
  const group = recordedProcess(daemon, run.id);
  const identity = group === null ? "gone" : identify(group.pid, group.pid_start_time);
  const facts = readFacts(daemon.store.db, run.id);
  live.cancelling = facts.cancelRequested;
  live.stalling = facts.stall !== null;
  if (identity === "unverifiable") daemon.log.warn("sloop::recovery", "run_identity_unverifiable", { run_id: run.id });
  const lives = identity !== "gone";
  if (lives) {
    restoreDoor(daemon, run, live);
    daemon.log.info("sloop::recovery", "run_readopted", { run_id: run.id, ticket_id: run.ticketId });
  }
  superviseRun(launcher, live, () => driveOpened(daemon, live, lives ? null : "resumed"));
  // An intent recorded before the crash is carried out again: its signal may never have been sent.
  if (lives && (live.cancelling || live.stalling)) void stopRecordedProcess(daemon, run.id);
}

/** At start: leases of ended runs are given back, then every leased run is sorted. Nobody is answered before that. */
export function recoverRuns(launcher: Launcher): void {
  const { daemon } = launcher;
  for (const ticket of releaseInterrupted(daemon.store, daemon.clock.now())) {
    daemon.log.warn("sloop::recovery", "interrupted_claim_released", { ticket_id: ticket });
  }
  const leased = listLeased(daemon.store.db);
  if (leased.length === 0) return;
  const episodes = readStallEpisodes(daemon.paths.logFile);
  for (const { run } of leased) {
    adoptRun(launcher, run);
    const live = daemon.live.get(run.id);
    if (live !== undefined) live.reportedStall = episodes.get(run.id);
  }
}

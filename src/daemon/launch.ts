// From a selected ticket to a run being driven: the claim, the driver, and what becomes of it when it is over.

import { existsSync } from "node:fs";
import { type Flow, spliceTest } from "../core/flow.ts";
import type { Candidate } from "../core/select.ts";
import { renderFlowSnapshot, type TicketSnapshot } from "../core/snapshot.ts";
import { branchExists } from "../git/inspect.ts";
import { type Claim, claimTicket } from "../store/claims.ts";
import { latestRun, readRun } from "../store/runs.ts";
import { abortRun } from "../store/settle.ts";
import { listBlockers, readTicket } from "../store/tickets.ts";
import type { Daemon, LiveRun } from "./context.ts";
import { type DriveResult, driveClaimed } from "./driver.ts";
import { endRecordedProcess } from "./end-process.ts";
import type { MergeWatch } from "./external-merge.ts";
import type { Retention } from "./retention.ts";
import { forgetRun, type PendingExits, settleWalk } from "./settle.ts";
import { takeBackWorkspace, workspaceOf } from "./workspace.ts";

export type Launcher = {
  daemon: Daemon;
  pending: PendingExits;
  /** Runs whose log is being looked at for a sign of life. */
  looking: Set<string>;
  mergeWatch: MergeWatch;
  retention: Retention;
  /** When housekeeping was last begun; milliseconds of `performance.now`. */
  keptHouseAt: number;
};

/** A run in memory, owned by a driver of this daemon. */
export function newLiveRun(run: { runId: string; ticketId: string }): LiveRun {
  return {
    ...run,
    supervised: true,
    recovering: false,
    suspectedDead: false,
    cancelling: false,
    stalling: false,
    credential: null,
    door: null,
    silence: null,
    booted: null,
    reportedStall: undefined,
    leaseDenied: false,
  };
}

const mintTries = 100;

function randomRunId(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
}

/** An id whose worktree and branch do not exist yet; null when none could be found. */
function mintRunId(daemon: Daemon, ticketId: string, attempt: number): string | null {
  for (let tries = 0; tries < mintTries; tries += 1) {
    const id = randomRunId();
    const { worktree, branch } = workspaceOf(daemon, { id, ticketId, attempt });
    if (!existsSync(worktree) && !branchExists(daemon.paths.root, branch)) return id;
  }
  return null;
}

function snapshotTicket(daemon: Daemon, id: string): TicketSnapshot | null {
  const row = readTicket(daemon.store.db, id);
  if (row === null) return null;
  const { name, worktree, target, model, effort } = row;
  const blocked_by = listBlockers(daemon.store.db, id).map((blocker) => blocker.id);
  return { id, name, blocked_by, worktree, target, model, effort, body: row.body ?? "" };
}

function boundFlow(daemon: Daemon, ticketId: string): Flow | null {
  const name = readTicket(daemon.store.db, ticketId)?.flow ?? "default";
  const flow = daemon.flows.get(name);
  if (flow !== undefined) return flow;
  const error = `flow \`${name}\` is not defined`;
  daemon.log.error("sloop::dispatcher", "bound_flow_resolution_failed", { ticket_id: ticketId, error });
  return null;
}

/** Claims one selected ticket; null when it cannot be admitted, or somebody else was first. Throws on a store error. */
export function claim(daemon: Daemon, ticket: Candidate, targetBranch: string): Claim | null {
  const flow = boundFlow(daemon, ticket.id);
  const snapshot = snapshotTicket(daemon, ticket.id);
  if (flow === null || snapshot === null) return null;
  const runId = mintRunId(daemon, ticket.id, (latestRun(daemon.store.db, ticket.id)?.attempt ?? 0) + 1);
  if (runId === null) {
    daemon.log.error("sloop::dispatcher", "run_id_minting_failed", { ticket_id: ticket.id });
    return null;
  }
  const admission = {
    runId,
    ticket,
    targetBranch,
    flowJson: renderFlowSnapshot(spliceTest(flow, daemon.config.testCmd)),
    ticketJson: JSON.stringify(snapshot),
  };
  return claimTicket(daemon.store, admission, daemon.clock.now());
}

/** Undoes an admission: run aborted, demand queued again, and the workspace it made itself removed. */
type Failure = { problem: string; created: boolean };

async function rollBack(launcher: Launcher, live: LiveRun, failure: Failure): Promise<void> {
  const { daemon } = launcher;
  const { runId, ticketId } = live;
  const fields = { run_id: runId, ticket_id: ticketId, error: failure.problem };
  daemon.log.error("sloop::driver", "driver_start_failed", fields);
  const run = readRun(daemon.store.db, runId);
  if (run !== null && failure.created) await takeBackWorkspace(daemon, run);
  await daemon.enqueue(() => {
    const delayMs = daemon.launches.fail(ticketId, failure.problem);
    abortRun(daemon.store, runId, daemon.clock.now());
    forgetRun(daemon, runId);
    daemon.log.error("sloop::dispatcher", "run_launch_failed", fields);
    setTimeout(() => daemon.poke(), delayMs).unref();
  });
}

async function finish(launcher: Launcher, live: LiveRun, result: DriveResult): Promise<void> {
  const { daemon, pending } = launcher;
  switch (result.kind) {
    case "ended":
      daemon.launches.clear(live.ticketId);
      // Whatever ended the walk: nothing of the run may go on while its ticket is free.
      await endRecordedProcess(daemon, live.runId);
      return settleWalk(daemon, pending, result.end);
    case "admission_failed":
      return rollBack(launcher, live, result);
    case "superseded":
      daemon.log.info("sloop::driver", "exit_checkpoint_already_claimed", { run_id: live.runId, state: result.state });
      live.supervised = false;
  }
}

/** Lets a driver have the run; a bug in it ends the run's walk, not the daemon. */
export function superviseRun(launcher: Launcher, live: LiveRun, drive: () => Promise<DriveResult>): void {
  const { daemon } = launcher;
  daemon.live.set(live.runId, live);
  const failed = (error: unknown) => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    daemon.log.error("sloop::driver", "driver_start_failed", { run_id: live.runId, error: text });
    live.supervised = false;
  };
  void drive()
    .then((result) => finish(launcher, live, result))
    .catch(failed);
}

/** Starts the driver of a granted claim. */
export function startRun(launcher: Launcher, claimed: Claim, tip: string): void {
  const { runId, ticketId, attempt } = claimed;
  const fields = { run_id: runId, ticket_id: ticketId, attempt };
  launcher.daemon.log.info("sloop::dispatcher", "run_dispatched", fields);
  const live = newLiveRun({ runId, ticketId });
  superviseRun(launcher, live, () => driveClaimed(launcher.daemon, live, tip));
}

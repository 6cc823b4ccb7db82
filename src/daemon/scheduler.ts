// The pass: what the daemon does after every request, message, timer and tick (engine.md 7.1).

import { dispatchGate, type World } from "../core/gate.ts";
import { nextOpening } from "../core/hours.ts";
import { type Candidate, nextWake, selectTicket } from "../core/select.ts";
import { due, type Trigger } from "../core/trigger.ts";
import { readTarget } from "../git/inspect.ts";
import { listCandidates, readCandidate } from "../store/candidates.ts";
import { type Claim, listRenewable, renewLease } from "../store/claims.ts";
import { storageFull } from "../store/open.ts";
import { countUnsettled } from "../store/runs.ts";
import { probeWrite, readFlags } from "../store/scheduler.ts";
import { listDueTriggers, nextScheduled, readTrigger } from "../store/triggers.ts";
import { waitUntil } from "../system/clock.ts";
import type { Daemon } from "./context.ts";
import { claim, type Launcher, startRun } from "./launch.ts";
import { checkLiveness } from "./liveness.ts";
import { noteStorageFull } from "./storage.ts";
import { silenceDeadlines, watchSilence } from "./watchdog.ts";
import { cleanupDeadlines, readWorld } from "./world.ts";

export type Scheduler = {
  /** One pass; a promise only when it had to wait. Never throws. */
  pass(): void | Promise<void>;
  /** Makes the next pass look even though nothing was written. */
  force(): void;
  close(): void;
};

const pageSize = 64;

type Pass = { launcher: Launcher; world: World; branch: string; tip: string; taken: Set<string> };

function defaultTarget(daemon: Daemon): string | null {
  return daemon.config.agent?.defaultTarget ?? null;
}

/** The ticket a due trigger selects: its own, or the first of the queue that nothing holds back. */
function pickTicket({ launcher, world, taken }: Pass, trigger: Trigger): Candidate | null {
  const { daemon } = launcher;
  const q = daemon.store.db;
  if (trigger.ticketId !== null) {
    const pinned = readCandidate(q, trigger.ticketId, defaultTarget(daemon));
    return pinned === null ? null : selectTicket(trigger, [pinned], world, taken);
  }
  for (let after: Candidate | null = null; ; ) {
    const page = listCandidates(q, { projectId: trigger.projectId, after, limit: pageSize }, defaultTarget(daemon));
    const found = selectTicket(trigger, page, world, taken);
    if (found !== null || page.length < pageSize) return found;
    after = page.at(-1) ?? null;
  }
}

/** A claim that fails for reasons of its own must not keep the others from being served; a full disk stops them all. */
function tryClaim(daemon: Daemon, ticket: Candidate, branch: string): Claim | null {
  try {
    return claim(daemon, ticket, branch);
  } catch (error) {
    if (storageFull(error)) throw error;
    const fields = { ticket_id: ticket.id, error: error instanceof Error ? error.message : String(error) };
    daemon.log.error("sloop::dispatcher", "claim_failed", fields);
    return null;
  }
}

/** Serves one due trigger: one run at most. */
function serveTrigger(pass: Pass, scanned: Trigger): void {
  const { launcher, world, taken } = pass;
  const { daemon } = launcher;
  // An earlier claim of this pass may have consumed it: a claim takes the oldest trigger that fits, whichever was scanned.
  const trigger = readTrigger(daemon.store.db, scanned.id);
  if (trigger === null || trigger.state !== "queued" || !due(trigger, world.now)) return;
  for (let ticket = pickTicket(pass, trigger); ticket !== null; ticket = pickTicket(pass, trigger)) {
    taken.add(ticket.id);
    if (daemon.launches.holds(ticket.id)) continue;
    const claimed = tryClaim(daemon, ticket, pass.branch);
    if (claimed === null) continue;
    startRun(launcher, claimed, pass.tip);
    return;
  }
}

function slotFree(daemon: Daemon): boolean {
  return daemon.live.size < daemon.config.maxParallelTasks;
}

function serveDueTriggers(pass: Pass): void {
  const { daemon } = pass.launcher;
  for (let after: Trigger | null = null; ; ) {
    const page = listDueTriggers(daemon.store.db, pass.world.now, { after, limit: pageSize });
    for (const trigger of page) {
      if (!slotFree(daemon)) return;
      serveTrigger(pass, trigger);
    }
    if (page.length < pageSize) return;
    after = page.at(-1) ?? null;
  }
}

async function dispatch(launcher: Launcher): Promise<void> {
  const { daemon } = launcher;
  await daemon.hook("before-spawn-capacity-reconciliation");
  await checkLiveness(launcher);
  const world = readWorld(daemon);
  const target = readTarget(daemon.paths.root, daemon.config.mergeTarget);
  if (dispatchGate(world) !== null || "problem" in target) return;
  serveDueTriggers({ launcher, world, branch: target.branch, tip: target.tip, taken: new Set() });
}

/** Whether anything could be claimed: gates open, a slot free, a trigger due. */
function wantsDispatch(daemon: Daemon): boolean {
  if (daemon.conditions.stopping || !slotFree(daemon)) return false;
  if (listDueTriggers(daemon.store.db, daemon.clock.now(), { after: null, limit: 1 }).length === 0) return false;
  return dispatchGate(readWorld(daemon)) === null;
}

/** Whether a restart was asked for and nothing is in its way any more. */
function drained(daemon: Daemon): boolean {
  if (daemon.conditions.stopping || daemon.live.size > 0 || !readFlags(daemon.store.db).draining) return false;
  daemon.conditions.stopping = countUnsettled(daemon.store.db) === 0;
  return daemon.conditions.stopping;
}

function probeStorage(daemon: Daemon): boolean {
  if (!daemon.conditions.storageFull) return true;
  daemon.store.write((tx) => probeWrite(tx, daemon.clock.now()));
  daemon.conditions.storageFull = false;
  daemon.log.info("sloop::dispatcher", "storage_recovered");
  return true;
}

function settlePending({ pending }: Launcher): void {
  for (const [runId, settle] of pending) if (settle()) pending.delete(runId);
}

const houseEveryMs = 200;

/** Looks that cost more the longer the history: not at every one of many requests. */
function keepHouse(launcher: Launcher): void {
  const { daemon, mergeWatch, retention } = launcher;
  if (daemon.conditions.stopping || performance.now() - launcher.keptHouseAt < houseEveryMs) return;
  launcher.keptHouseAt = performance.now();
  mergeWatch.look();
  if (!readFlags(daemon.store.db).draining) retention.look();
}

/** Renewal is a write, and a write waits for whoever else has the file: not more often than this, on the daemon clock. */
const renewEveryMs = 1000;

/** Renews the leases of the runs that go on under this daemon; a lease that has lapsed is told once. */
function renewLeases(launcher: Launcher): void {
  const { daemon } = launcher;
  const now = daemon.clock.now();
  const due = listRenewable(daemon.store.db).filter(({ runId, renewedAtMs }) => {
    const live = daemon.live.get(runId);
    return live?.supervised === true && !live.leaseDenied && Math.abs(now - renewedAtMs) >= renewEveryMs;
  });
  if (due.length === 0) return;
  daemon.store.write((tx) => {
    for (const { runId } of due) {
      if (renewLease(tx, runId, now)) continue;
      const live = daemon.live.get(runId);
      if (live !== undefined) live.leaseDenied = true;
      daemon.log.warn("sloop::dispatcher", "lease_renewal_denied", { run_id: runId });
    }
  });
}

function runPass(launcher: Launcher): void | Promise<void> {
  const { daemon } = launcher;
  if (!probeStorage(daemon)) return undefined;
  settlePending(launcher);
  watchSilence(launcher);
  keepHouse(launcher);
  renewLeases(launcher);
  if (drained(daemon)) daemon.shutDown("restart");
  return wantsDispatch(daemon) ? dispatch(launcher) : undefined;
}

/** A pass that failed is tried again at the next occasion; a full disk closes the storage gate until a write succeeds. */
function passFailed(daemon: Daemon, error: unknown): void {
  if (noteStorageFull(daemon, error)) return;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  daemon.log.error("sloop::dispatcher", "trigger_scan_failed", { error: text });
}

function wakeInstant(daemon: Daemon, now: number): number | null {
  const scheduled = nextScheduled(daemon.store.db, now);
  const world = readWorld(daemon);
  const hours = daemon.config.runningHours;
  return nextWake({
    now,
    triggers: [
      ...listDueTriggers(daemon.store.db, now, { after: null, limit: 1 }),
      ...(scheduled === null ? [] : [scheduled]),
    ],
    hoursOpen: world.hoursOpen,
    nextOpening: hours === null ? null : nextOpening(hours, now),
    cooldownEnds: [...world.cooldowns.values()].map((cooldown) => cooldown.untilMs),
    cleanups: cleanupDeadlines(daemon, now),
    silences: silenceDeadlines(daemon),
  });
}

/** The scheduler of one daemon. Its timer is re-armed after every pass that looked. */
export function openScheduler(launcher: Launcher): Scheduler {
  const { daemon } = launcher;
  let forced = true;
  let seen = "";
  let wakeAt: number | null = null;
  let timer = new AbortController();

  /** Whether the armed instant still stands: only the store, the clock and the silence of live runs move it. */
  function armed(now: number): boolean {
    const ahead = wakeAt === null || now < wakeAt;
    return ahead && daemon.live.size === 0 && daemon.store.version() === seen;
  }

  function arm(): void {
    const now = daemon.clock.now();
    if (armed(now)) return;
    timer.abort();
    const own = new AbortController();
    timer = own;
    wakeAt = wakeInstant(daemon, now);
    seen = daemon.store.version();
    if (wakeAt === null || daemon.conditions.stopping) return;
    void waitUntil(daemon.clock, wakeAt, own.signal).then(() => {
      if (own.signal.aborted) return;
      daemon.log.info("sloop::dispatcher", "timer_fired");
      daemon.poke();
    });
  }

  /** Whether a pass could change nothing: no write since the last, no message, no instant reached. */
  function idle(): boolean {
    return !forced && (wakeAt === null || daemon.clock.now() < wakeAt) && daemon.store.version() === seen;
  }

  function guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      passFailed(daemon, error);
    }
  }

  return {
    pass() {
      let waiting: Promise<void> | undefined;
      guarded(() => {
        if (idle()) return;
        forced = false;
        const result = runPass(launcher);
        if (result instanceof Promise) waiting = result;
        else arm();
      });
      return waiting?.catch((error) => passFailed(daemon, error)).then(() => guarded(arm));
    },
    force() {
      forced = true;
    },
    close: () => timer.abort(),
  };
}

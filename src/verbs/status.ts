// `status`: what runs, what waits, and what comes next.

import type { World } from "../core/gate.ts";
import type { Trigger } from "../core/trigger.ts";
import type { Daemon } from "../daemon/context.ts";
import type { Status } from "../protocol/replies.ts";
import type { ActiveRun, Gate, QueuedTrigger } from "../protocol/rows.ts";
import { readListed } from "../store/report.ts";
import type { RunRow } from "../store/tables.ts";
import { countTickets } from "../store/tally.ts";
import type { Handler } from "./handler.ts";
import { type RowFacts, readRowFacts } from "./rows.ts";
import { reportRuns, runSummary } from "./run-report.ts";
import { readWake } from "./wake.ts";

function gateOf(daemon: Daemon, world: World): Gate {
  const hours = daemon.config.runningHours;
  return {
    active_agents: world.activeRuns,
    max_agents: world.maxParallelTasks,
    capacity_reconciled: !world.unreconciled,
    storage: world.storageFull ? { writable: false, reason: "database_full" } : { writable: true, reason: null },
    ...(hours === null ? {} : { running_hours: { start: hours.start, end: hours.end, open: world.hoursOpen } }),
    cooldowns: [...world.cooldowns.values()].map((cooldown) => ({
      target: cooldown.target,
      until_ms: cooldown.untilMs,
      reason: cooldown.reason,
    })),
  };
}

function activeRuns(daemon: Daemon, active: readonly RunRow[]): ActiveRun[] {
  const ids = [...new Set(active.map((run) => run.ticketId))];
  const tickets = new Map(readListed(daemon.store.db, ids).map((ticket) => [ticket.id, ticket]));
  return reportRuns(daemon, active).map((report) => ({
    ...runSummary(report),
    project: tickets.get(report.run.ticketId)?.projectId ?? "",
    ticket: report.run.ticketId,
    ticket_name: tickets.get(report.run.ticketId)?.name ?? "",
  }));
}

function queuedTriggers(triggers: readonly Trigger[]): QueuedTrigger[] {
  return triggers.map((trigger) => ({
    id: trigger.id,
    ticket: trigger.ticketId,
    project: trigger.projectId,
    state: "queued",
  }));
}

/** Every field of `status`, from facts already gathered; `wakeAtMs` is `next_wake` as epoch ms. */
export function statusOf(daemon: Daemon, facts: RowFacts): { status: Status; wakeAtMs: number | null } {
  const { world, triggers, active } = facts;
  const queued = queuedTriggers(triggers);
  const wake = readWake(daemon, world, triggers);
  const status: Status = {
    daemon: { pid: daemon.pid, paused: world.paused, draining: world.draining },
    gate: gateOf(daemon, world),
    runs: activeRuns(daemon, active),
    queued_triggers: queued,
    queued_activations: queued,
    tickets: countTickets(daemon.store),
    ...wake.wire,
  };
  return { status, wakeAtMs: wake.atMs };
}

type Remembered = { key: string; fromMs: number; untilMs: number; status: Status };

const remembered = new WeakMap<Daemon, Remembered>();

function keyOf(daemon: Daemon): string {
  const { storageFull, unreconciled } = daemon.conditions;
  return `${daemon.store.version()} ${storageFull} ${unreconciled}`;
}

/** When (epoch ms) the clock alone could change a status computed at `now`; running hours turn on whole minutes. */
function staleAt(daemon: Daemon, now: number, wakeAtMs: number | null): number {
  const minute =
    daemon.config.runningHours === null ? Number.POSITIVE_INFINITY : (Math.floor(now / 60_000) + 1) * 60_000;
  return Math.min(minute, wakeAtMs ?? Number.POSITIVE_INFINITY);
}

// Pollers ask this all day long. While no run is active only the store and the clock can change the answer, so the
// same frozen object is handed out until one of them does.
export const status: Handler<"status"> = (daemon) => {
  const key = keyOf(daemon);
  const now = daemon.clock.now();
  const known = remembered.get(daemon);
  if (known !== undefined && known.key === key && known.fromMs <= now && now < known.untilMs) return known.status;
  const facts = readRowFacts(daemon);
  const { status, wakeAtMs } = statusOf(daemon, facts);
  if (facts.active.length > 0) return status;
  const untilMs = staleAt(daemon, now, wakeAtMs);
  remembered.set(daemon, { key, fromMs: now, untilMs, status: Object.freeze(status) });
  return status;
};

// Why a ticket is not running: the ONE eligibility predicate. The scheduler filters by it, every report prints it.

import { formatInstant } from "./instant.ts";
import type { TicketState } from "./ticket.ts";
import { due, type Trigger, targets } from "./trigger.ts";

/** A ticket as the gate looks at it. */
export type GateTicket = {
  id: string;
  projectId: string;
  state: TicketState;
  attempts: number;
  heldReason: string | null;
  missing: boolean;
  /** The target it runs on, the default filled in; null without agents. */
  target: string | null;
  /** Blockers that are not merged, in file order. */
  unmergedBlockers: readonly string[];
  /** Alias of the unsettled run that owns it. */
  claimedBy: string | null;
  /** The latest run's vendor diagnostic. */
  diagnostic: string | null;
};

export type Cooldown = { target: string; untilMs: number; reason: string };

/** What was in the way of a launch, and when it is tried again (epoch ms). */
export type FailedLaunch = { problem: string; nextMs: number };

/** What holds every ticket back alike. */
export type World = {
  now: number;
  agentsConfigured: boolean;
  /** What is wrong with the target branch; null when there is one. */
  branchProblem: string | null;
  paused: boolean;
  draining: boolean;
  storageFull: boolean;
  unreconciled: boolean;
  hoursOpen: boolean;
  activeRuns: number;
  maxParallelTasks: number;
  /** Still running, by target. */
  cooldowns: ReadonlyMap<string, Cooldown>;
  /** Tickets left alone for a while after a launch that failed, by id. */
  failedLaunches: ReadonlyMap<string, FailedLaunch>;
};

function settledReason(ticket: GateTicket): string | null | undefined {
  switch (ticket.state) {
    case "failed": {
      const text = `failed after ${ticket.attempts} attempt(s); requeue with \`sloop retry\``;
      return ticket.diagnostic === null ? text : `${ticket.diagnostic}; ${text}`;
    }
    case "held":
      return ticket.heldReason ?? "held by operator; release with `sloop ready`";
    case "claimed":
      return `claimed by run ${ticket.claimedBy ?? "?"}`;
    case "merged":
    case "needs_review":
      return null;
    case "ready":
      return undefined;
  }
}

/** What keeps this ready ticket itself from being selected; null when nothing does. */
export function ticketGate(ticket: GateTicket, world: World): string | null {
  const cooldown = ticket.target === null ? undefined : world.cooldowns.get(ticket.target);
  if (cooldown !== undefined && cooldown.untilMs > world.now) {
    return `target \`${cooldown.target}\` is cooling down until ${formatInstant(cooldown.untilMs)}: ${cooldown.reason}`;
  }
  if (ticket.unmergedBlockers.length > 0) return `blocked by unmerged ${ticket.unmergedBlockers.join(", ")}`;
  return ticket.missing ? "ticket file is missing; restore it or run `sloop reindex`" : null;
}

/** What keeps everything from being dispatched, slots apart; null when the gates are open. */
export function dispatchGate(world: World): string | null {
  if (!world.agentsConfigured) return "no agent targets configured";
  if (world.branchProblem !== null) {
    return `no target branch (${world.branchProblem}); check out a branch or set \`merge.target\``;
  }
  if (world.paused) return "scheduler is paused; resume with `sloop resume`";
  if (world.draining) return "scheduler is draining for restart; cancel with `sloop resume`";
  if (world.storageFull) return "database storage is full; free disk space to resume dispatch";
  if (world.unreconciled) return "run liveness is unreconciled; dispatch waits for a clean scan";
  return world.hoursOpen ? null : "outside configured running hours";
}

function triggerGate(ticket: GateTicket, triggers: readonly Trigger[], now: number): string | null {
  const fitting = triggers.filter((trigger) => trigger.state === "queued" && targets(trigger, ticket));
  if (fitting.some((trigger) => due(trigger, now))) return null;
  let earliest: { id: string; at: number } | null = null;
  for (const trigger of fitting) {
    if (trigger.eligibleAtMs === null) continue;
    if (earliest === null || trigger.eligibleAtMs < earliest.at)
      earliest = { id: trigger.id, at: trigger.eligibleAtMs };
  }
  if (earliest !== null) return `queued trigger ${earliest.id} is due at ${formatInstant(earliest.at)}`;
  return "ready but no queued trigger; enqueue with `sloop run`";
}

function launchGate(ticket: GateTicket, world: World): string | null {
  const failed = world.failedLaunches.get(ticket.id);
  if (failed === undefined) return null;
  return `its launch failed and is tried again at ${formatInstant(failed.nextMs)}: ${failed.problem}`;
}

/** Why the ticket is not running (protocol.md 6.3, exact strings); null: settled for good, or about to be dispatched. */
export function reasonNotRunning(ticket: GateTicket, triggers: readonly Trigger[], world: World): string | null {
  const settled = settledReason(ticket);
  if (settled !== undefined) return settled;
  const own = ticketGate(ticket, world) ?? dispatchGate(world);
  if (own !== null) return own;
  if (world.activeRuns >= world.maxParallelTasks) return "all agent slots are busy";
  return triggerGate(ticket, triggers, world.now) ?? launchGate(ticket, world);
}

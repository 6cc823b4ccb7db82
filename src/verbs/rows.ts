// Ticket rows as every list shows them: display state, why it is not running, whose run owns it (protocol.md 6.2, 6.3).

import { type Classification, coolsDown, type VendorEvidence } from "../core/evidence.ts";
import { type GateTicket, reasonNotRunning, type World } from "../core/gate.ts";
import { runAlias } from "../core/ids.ts";
import type { Trigger } from "../core/trigger.ts";
import type { Daemon } from "../daemon/context.ts";
import { readWorld } from "../daemon/world.ts";
import type { TicketDisplayRow } from "../protocol/rows.ts";
import { type ListedTicket, listLatestRejections, listUnmergedBlockers, readListed } from "../store/report.ts";
import { listUnsettled } from "../store/runs.ts";
import type { RunRow } from "../store/tables.ts";
import { listQueuedTriggers } from "../store/triggers.ts";

/** The wire's four keys of a rejection. */
export function classificationOf(vendor: VendorEvidence | null): Classification | null {
  if (vendor === null) return null;
  return { class: vendor.class, vendor: vendor.vendor, rule_id: vendor.rule_id, diagnostic: vendor.diagnostic };
}

/** The target a ticket runs on; null without agents. */
export function targetOf(daemon: Daemon, ticket: { target: string | null }): string | null {
  return ticket.target ?? daemon.config.agent?.defaultTarget ?? null;
}

/** The latest run's rejection as a ticket shows it: on a ready one only while it still holds the ticket back (6.6). */
export function shownRejection(
  ticket: { state: string },
  target: string | null,
  latest: VendorEvidence | null,
  world: Pick<World, "cooldowns" | "now">,
): VendorEvidence | null {
  if (latest === null || ticket.state !== "ready") return latest;
  const cooling = target !== null && (world.cooldowns.get(target)?.untilMs ?? 0) > world.now;
  return cooling && coolsDown(latest.class) ? latest : null;
}

/** Queued triggers by the ticket they are pinned to; the rest may fit any. */
type Demand = { pinned: Map<string, Trigger[]>; open: Trigger[] };

function demandOf(triggers: readonly Trigger[]): Demand {
  const pinned = new Map<string, Trigger[]>();
  const open: Trigger[] = [];
  for (const trigger of triggers) {
    if (trigger.ticketId === null) {
      open.push(trigger);
      continue;
    }
    const known = pinned.get(trigger.ticketId);
    if (known === undefined) pinned.set(trigger.ticketId, [trigger]);
    else known.push(trigger);
  }
  return { pinned, open };
}

export type RowFacts = {
  world: World;
  /** Queued, oldest first. */
  triggers: readonly Trigger[];
  /** Unsettled, oldest first. */
  active: readonly RunRow[];
};

/** What all rows of one reply share. */
export function readRowFacts(daemon: Daemon): RowFacts {
  const q = daemon.store.db;
  return { world: readWorld(daemon), triggers: listQueuedTriggers(q), active: listUnsettled(q) };
}

function displayState(ticket: ListedTicket, blockers: readonly string[]): TicketDisplayRow["state"] {
  return ticket.state === "ready" && blockers.length > 0 ? "blocked" : ticket.state;
}

function idsIn(tickets: readonly ListedTicket[], wanted: (ticket: ListedTicket) => boolean): string[] {
  return tickets.filter(wanted).map((ticket) => ticket.id);
}

/** The rows of those tickets, in that order. */
export function ticketRows(daemon: Daemon, ids: readonly string[], facts: RowFacts): TicketDisplayRow[] {
  const q = daemon.store.db;
  const { world, active } = facts;
  const tickets = readListed(q, ids);
  const blocked = listUnmergedBlockers(
    q,
    idsIn(tickets, (ticket) => ticket.state === "ready"),
  );
  const rejections = listLatestRejections(
    q,
    idsIn(tickets, (ticket) => ticket.state !== "ready" || world.cooldowns.size > 0),
  );
  const owners = new Map(active.map((run) => [run.ticketId, run]));
  const demand = demandOf(facts.triggers);

  return tickets.map((ticket) => {
    const unmergedBlockers = blocked.get(ticket.id) ?? [];
    const owner = ticket.state === "claimed" ? owners.get(ticket.id) : undefined;
    const alias = owner === undefined ? null : runAlias(owner.ticketId, owner.attempt);
    const target = targetOf(daemon, ticket);
    const latest = rejections.get(ticket.id) ?? null;
    const gate: GateTicket = {
      id: ticket.id,
      projectId: ticket.projectId,
      state: ticket.state,
      attempts: ticket.attempts,
      heldReason: ticket.heldReason,
      missing: ticket.missingAtMs !== null,
      target,
      unmergedBlockers,
      claimedBy: alias,
      diagnostic: latest?.diagnostic ?? null,
    };
    const triggers = [...(demand.pinned.get(ticket.id) ?? []), ...demand.open];
    return {
      id: ticket.id,
      name: ticket.name,
      project: ticket.projectId,
      state: displayState(ticket, unmergedBlockers),
      run: alias,
      run_id: owner?.id ?? null,
      reason: reasonNotRunning(gate, triggers, world),
      classification: classificationOf(shownRejection(ticket, target, latest, world)),
    };
  });
}

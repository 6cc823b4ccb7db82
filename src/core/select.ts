// Which tickets to claim for which due triggers: a pure function of rows and an instant (engine.md 7.1, 7.2).

import { type GateTicket, ticketGate, type World } from "./gate.ts";
import { due, type Trigger, targets } from "./trigger.ts";

/** A ticket as selection looks at it: `createdAtMs` and the id as text give the order. */
export type Candidate = GateTicket & { createdAtMs: number };

/** Whether the ticket may be claimed now, its own gates only. */
export function selectable(ticket: GateTicket, world: World): boolean {
  return ticket.state === "ready" && ticketGate(ticket, world) === null;
}

export function byRegistration(a: { createdAtMs: number; id: string }, b: { createdAtMs: number; id: string }): number {
  if (a.createdAtMs !== b.createdAtMs) return a.createdAtMs - b.createdAtMs;
  if (a.id === b.id) return 0;
  return a.id < b.id ? -1 : 1;
}

/** The ticket a due trigger selects among `tickets`, minus those in `taken`; null when there is none. */
export function selectTicket(
  trigger: Trigger,
  tickets: readonly Candidate[],
  world: World,
  taken: ReadonlySet<string> = new Set(),
): Candidate | null {
  let best: Candidate | null = null;
  for (const ticket of tickets) {
    if (taken.has(ticket.id) || !targets(trigger, ticket) || !selectable(ticket, world)) continue;
    if (best === null || byRegistration(ticket, best) < 0) best = ticket;
  }
  return best;
}

export type WakeInput = {
  now: number;
  triggers: readonly Trigger[];
  hoursOpen: boolean;
  /** Next opening of the running hours; null when they are not configured. */
  nextOpening: number | null;
  cooldownEnds: readonly number[];
  cleanups: readonly number[];
  silences: readonly number[];
};

function earliest(instants: readonly number[], now: number): number | null {
  let first: number | null = null;
  for (const at of instants) if (at > now && (first === null || at < first)) first = at;
  return first;
}

export type Dispatch =
  | { cause: "running_hours"; at: number; waiting: number }
  | { cause: "cooldown"; at: number }
  | { cause: "scheduled_trigger"; at: number; trigger: string };

/** The next instant that leads to dispatch, and why (protocol.md 6.7); null when no timed work is pending. */
export function nextDispatch(input: WakeInput): Dispatch | null {
  const { now } = input;
  const queued = input.triggers.filter((trigger) => trigger.state === "queued");
  const waiting = queued.filter((trigger) => due(trigger, now)).length;
  const later = queued.filter((trigger) => !due(trigger, now) && trigger.eligibleAtMs !== null);
  const scheduled = later.sort((a, b) => (a.eligibleAtMs ?? 0) - (b.eligibleAtMs ?? 0) || byRegistration(a, b))[0];
  const scheduledAt = scheduled?.eligibleAtMs ?? null;
  const opening = input.nextOpening;
  if (!input.hoursOpen && opening !== null && (waiting > 0 || (scheduledAt !== null && scheduledAt <= opening))) {
    return { cause: "running_hours", at: opening, waiting };
  }
  const cooled = earliest(input.cooldownEnds, now);
  if (input.hoursOpen && cooled !== null && (scheduledAt === null || cooled <= scheduledAt)) {
    return { cause: "cooldown", at: cooled };
  }
  if (scheduled === undefined || scheduledAt === null) return null;
  return {
    cause: "scheduled_trigger",
    at: scheduledAt,
    trigger: scheduled.ticketId ?? scheduled.projectId ?? scheduled.id,
  };
}

/** The earliest future instant at which the daemon acts by itself (engine.md 7.4); null when there is none. */
export function nextWake(input: WakeInput): number | null {
  const { now, nextOpening: opening } = input;
  const queued = input.triggers.filter((trigger) => trigger.state === "queued");
  const anyDue = queued.some((trigger) => due(trigger, now));
  const scheduled = earliest(
    queued.flatMap((trigger) => (due(trigger, now) || trigger.eligibleAtMs === null ? [] : [trigger.eligibleAtMs])),
    now,
  );
  const closed = !input.hoursOpen && opening !== null && (anyDue || (scheduled !== null && scheduled <= opening));
  const triggerAt = closed ? opening : scheduled;
  const rest = [...input.cooldownEnds, ...input.cleanups, ...input.silences];
  return earliest(triggerAt === null ? rest : [triggerAt, ...rest], now);
}

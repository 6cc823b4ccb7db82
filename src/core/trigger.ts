// Triggers: the demand for a run, when it is due, and when a recurring one is due again.

export const triggerKinds = ["immediate", "auto", "at", "every", "overnight"] as const;
export type TriggerKind = (typeof triggerKinds)[number];

export type Trigger = {
  id: string;
  kind: TriggerKind;
  state: "queued" | "completed" | "cancelled";
  ticketId: string | null;
  projectId: string | null;
  eligibleAtMs: number | null;
  intervalMs: number | null;
  createdAtMs: number;
  updatedAtMs: number;
  /** Exact ticket ids; empty: no restriction. */
  only: string[];
};

/** Whether a queued trigger is due at `now` (epoch ms): immediate and automatic ones always are. */
export function due(trigger: Pick<Trigger, "kind" | "eligibleAtMs">, now: number): boolean {
  if (trigger.kind === "immediate" || trigger.kind === "auto") return true;
  return trigger.eligibleAtMs !== null && trigger.eligibleAtMs <= now;
}

/** The next instant of a recurring trigger, strictly after `now`; missed slots collapse. Null: the cadence is invalid. */
export function rearm(dueAtMs: number, intervalMs: number | null, now: number): number | null {
  if (intervalMs === null || intervalMs <= 0 || dueAtMs > now) return null;
  return dueAtMs + intervalMs * (Math.floor((now - dueAtMs) / intervalMs) + 1);
}

/** Whether the trigger could select the ticket, whatever the instant and the ticket's state. */
export function targets(
  trigger: Pick<Trigger, "ticketId" | "projectId" | "only">,
  ticket: { id: string; projectId: string },
): boolean {
  if (trigger.ticketId !== null) return trigger.ticketId === ticket.id;
  if (trigger.projectId !== null && trigger.projectId !== ticket.projectId) return false;
  return trigger.only.length === 0 || trigger.only.includes(ticket.id);
}

// Ticket and run states: the closed lists, and what an operator may move by hand.

export const ticketStates = ["ready", "held", "claimed", "merged", "failed", "needs_review"] as const;
export type TicketState = (typeof ticketStates)[number];

/** `blocked` is only ever shown: a stored `ready` with an unmerged blocker. */
export const displayStates = ["ready", "held", "blocked", "claimed", "merged", "failed", "needs_review"] as const;
export type DisplayState = (typeof displayStates)[number];

export const liveRunStates = ["claimed", "driving", "running"] as const;
export const outcomes = ["merged", "failed", "needs_review", "cancelled", "rate_limited", "orphaned"] as const;
export type Outcome = (typeof outcomes)[number];
export const runStates = [...liveRunStates, ...outcomes, "aborted"] as const;
export type RunState = (typeof runStates)[number];

/** Whether a run of this state is settled. */
export function terminal(state: RunState): boolean {
  return state !== "claimed" && state !== "driving" && state !== "running";
}

/** The ticket's state once a run of it ended so. */
export function ticketAfter(outcome: Outcome): TicketState {
  switch (outcome) {
    case "merged":
    case "failed":
    case "needs_review":
      return outcome;
    case "cancelled":
    case "rate_limited":
    case "orphaned":
      return "ready";
  }
}

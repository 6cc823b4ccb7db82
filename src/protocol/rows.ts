// Objects that several replies share: ticket rows, run summaries, stage rows, the gate (protocol.md 6).

import type { Classification, Stall } from "../core/evidence.ts";
import type { ReviewerRow, StageRow, StageStrip } from "../core/stagerows.ts";
import type { DisplayState, RunState } from "../core/ticket.ts";
import type { HaltCause } from "../core/walk.ts";

/** One ticket as lists show it: `state` may be `blocked`, `reason` says why it is not running (6.2, 6.3). */
export type TicketDisplayRow = {
  id: string;
  name: string;
  project: string;
  state: DisplayState;
  /** Alias of the unsettled run that owns the ticket. */
  run: string | null;
  run_id: string | null;
  reason: string | null;
  classification: Classification | null;
};

export type { ReviewerRow, StageRow, StageStrip };

/** One run in a ticket's `runs` (6.4). */
export type RunSummary = {
  id: string;
  alias: string;
  attempt: number;
  state: RunState;
  terminal: boolean;
  /** The start, or the claim while not started. */
  started_at_ms: number | null;
  finished_at_ms: number | null;
  reason: string | null;
  stall: Stall | null;
  stages: StageStrip[];
};

/** One run in `status.runs`. */
export type ActiveRun = RunSummary & { project: string; ticket: string; ticket_name: string };

/** Run detail: `value` of `show <run>` (7.10). */
export type RunDetail = {
  id: string;
  alias: string;
  attempt: number;
  note: null;
  ticket: string;
  ticket_name: string | null;
  state: RunState;
  terminal: boolean;
  branch: string | null;
  worktree: string | null;
  target_branch: string | null;
  wip: { ref: string; files: number } | null;
  claimed_at_ms: number | null;
  started_at_ms: number | null;
  finished_at_ms: number | null;
  exit_code: number | null;
  agent_exit_code: number | null;
  reason: string | null;
  classification: Classification | null;
  stall: Stall | null;
  halt: HaltCause | null;
  stages: StageRow[];
};

export type Gate = {
  active_agents: number;
  max_agents: number;
  capacity_reconciled: boolean;
  storage: { writable: boolean; reason: "database_full" | null };
  running_hours?: { start: string; end: string; open: boolean };
  cooldowns: { target: string; until_ms: number; reason: string }[];
};

export type DispatchWire =
  | { at: string; cause: "running_hours"; waiting: number }
  | { at: string; cause: "cooldown" }
  | { at: string; cause: "scheduled_trigger"; trigger: string };

export type QueuedTrigger = { id: string; ticket: string | null; project: string | null; state: "queued" };

export type TicketCounts = Record<DisplayState, number>;

// What the fields of shared objects mean, for the protocol's reference. The types keep every field described.

import type { EventKind } from "../core/feed.ts";
import type { RunState, TicketState } from "../core/ticket.ts";
import type { FeedEvent, LogEntry, TicketDetail } from "./replies.ts";
import type { ActiveRun, DispatchWire, Gate, RunDetail, StageRow, TicketDisplayRow } from "./rows.ts";

type AllKeys<T> = T extends unknown ? keyof T : never;
/** One line per field; `?` after a name says that the value may be null, `absent` in the text that the key may be missing. */
export type Fields<T> = { readonly [K in Extract<AllKeys<T>, string>]: string };

export const ticketRow: Fields<TicketDisplayRow> = {
  id: "string",
  name: "string",
  project: "string, the project's id",
  state: "string, as shown: `blocked` for a ready ticket with an unmerged blocker",
  run: "string or null, alias of the unsettled run that owns the ticket",
  run_id: "string or null, that run's internal id",
  reason: "string or null, why the ticket is not running",
  classification: "object or null, a vendor rejection of its latest run: `class`, `vendor`, `rule_id`, `diagnostic`",
};

export const activeRun: Fields<ActiveRun> = {
  id: "string, 32 hexadecimal digits",
  alias: "string, `<ticket>-r<attempt>`",
  attempt: "integer from 1",
  state: "string, a run state",
  terminal: "boolean",
  started_at_ms: "integer or null; the claim while not started",
  finished_at_ms: "integer or null while unsettled",
  reason: "string or null, why it ended as it did, from recorded evidence alone",
  stall: "object or null: `stage`, `last_output_at_ms`, `threshold_ms`, `last_output_sequence`",
  stages: "array of `stage`, `state`, `attempt`, `advisory`, `silent_for_ms`",
  project: "string, only in `status.runs`",
  ticket: "string, only in `status.runs`",
  ticket_name: "string, only in `status.runs`",
};

export const stageRow: Fields<StageRow> = {
  stage: "string, its name in the flow",
  state: "`passed`, `failed`, `running` or `pending`",
  attempt: "integer, the execution's number from 1; 0 on a `pending` row",
  started_at_ms: "integer or null",
  finished_at_ms: "integer or null",
  duration_ms: "integer or null",
  exit_code: "integer or null: a panel, or killed by a signal",
  verdict_source: "`exit_code`, `reported`, `panel`, or null while unresolved",
  reason: "string or null",
  confidence: "`low`, `medium`, `high`, or null without a report",
  advisory: "boolean, a failure does not end the walk",
  silent_for_ms: "integer or null, only on the running row",
  reviewers: "array, one per panel seat: `reviewer`, `target`, `verdict`, `confidence`, `reason`",
};

export const gate: Fields<Gate> = {
  active_agents: "integer, unsettled runs",
  max_agents: "integer, `max_parallel_tasks`",
  capacity_reconciled: "boolean, false after a failed liveness scan",
  storage: "object: `writable`, `reason` (`database_full` or null)",
  running_hours: "object, absent when not configured: `start`, `end`, `open`",
  cooldowns: "array by target: `target`, `until_ms`, `reason`",
};

export const dispatch: Fields<DispatchWire> = {
  at: "string, RFC 3339 in UTC",
  cause: "`running_hours`, `cooldown` or `scheduled_trigger`",
  waiting: "integer, due triggers that wait; only with `running_hours`",
  trigger: "string, a ticket, project or trigger id; only with `scheduled_trigger`",
};

export const ticketDetail: Fields<TicketDetail> = {
  id: "string",
  name: "string",
  project: "string",
  state: "string, as stored: a blocked ticket reads `ready`",
  file: "string or null, relative to the repository",
  blocked_by: "array of ids in the order of the file",
  worktree: "string or null, the ticket's label; not a run's branch",
  target: "string or null",
  model: "string or null",
  effort: "string or null",
  reason: "string or null, the vendor's diagnostic",
  classification: "object or null",
  runs: "array of run summaries, highest attempt first",
  queued_triggers: "array of ids, oldest first",
  body: "string, the file's text now",
};

export const runDetail: Fields<RunDetail> = {
  id: "string",
  alias: "string",
  attempt: "integer from 1",
  note: "null",
  ticket: "string",
  ticket_name: "string or null",
  state: "string, a run state",
  terminal: "boolean",
  branch: "string or null until the workspace is open",
  worktree: "string or null, absolute; kept after cleanup",
  target_branch: "string or null, what it merges into",
  wip: "object or null: `ref`, `files`, uncommitted work that was kept",
  claimed_at_ms: "integer or null",
  started_at_ms: "integer or null",
  finished_at_ms: "integer or null",
  exit_code: "integer or null, the first agent stage's",
  agent_exit_code: "the same value",
  reason: "string or null, the vendor's diagnostic, else why the run ended so",
  classification: "object or null",
  stall: "object or null",
  halt: "`fail_action`, `return_budget_exhausted`, `corrupt_log`, or null",
  stages: "array of stage rows, grouped by stage in the order of the flow",
};

export const logEntry: Fields<LogEntry> = {
  sequence: "integer from 1, per run, over both pipes and all stages",
  timestamp: "string, RFC 3339 in UTC",
  source: "`agent`, or `stage` for every other process",
  stage: "string, may be absent",
  attempt: "integer, may be absent",
  stream: "`stdout` or `stderr`",
  encoding: "`utf8` or `base64`",
  text: "string, with `utf8`: one read of a pipe, not a line",
  data: "string, with `base64`",
};

export const feedEvent: Fields<FeedEvent> = {
  sequence: "integer, strictly increasing, with gaps",
  occurred_at_ms: "integer",
  kind: "string, see below; accept kinds you do not know",
  run: "string or null, the internal id",
  ticket: "string or null",
  data: "object, by kind",
  alias: "string, the run's; absent without a run",
};

export const eventData: Readonly<Record<EventKind, string>> = {
  run_claimed: "`attempt`",
  run_started: "nothing",
  run_finished: "`outcome`, `exit_code` (integer or null), `ticket_state`",
  run_aborted: "nothing",
  external_merge_reconciled: "`branch`, `branch_tip`, `observed_default_tip`",
  run_worktree_cleaned: "`branch`, `worktree`",
  daemon_restart_requested: "`active_runs`",
};

export const ticketMeanings: Readonly<Record<TicketState | "blocked", string>> = {
  ready: "may be dispatched",
  held: "an operator or a failed validation holds it",
  blocked: "shown only: ready, with an unmerged blocker",
  claimed: "an unsettled run owns it",
  merged: "its work has landed",
  failed: "waits for `retry`",
  needs_review: "work kept for a person",
};

export const runMeanings: Readonly<Record<RunState, string>> = {
  claimed: "admitted, workspace not open yet",
  driving: "between stages, or in a stage without an agent process",
  running: "an agent's process is alive",
  merged: "settled: the merge succeeded",
  failed: "settled",
  needs_review: "settled: work kept for a person",
  cancelled: "settled: an operator ended it",
  rate_limited: "settled: its target cools down, the ticket is queued again",
  orphaned: "settled: the agent was found gone without a trace of how it ended",
  aborted: "settled: the launch failed before anything ran",
};

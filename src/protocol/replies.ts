// What each verb answers with: the `data` of its success envelope (protocol.md 7, 8).

import type { Classification, Confidence } from "../core/evidence.ts";
import type { EventKind } from "../core/feed.ts";
import type { TicketSnapshot } from "../core/snapshot.ts";
import type { RunState, TicketState } from "../core/ticket.ts";
import type {
  ActiveRun,
  DispatchWire,
  Gate,
  QueuedTrigger,
  RunDetail,
  RunSummary,
  TicketCounts,
  TicketDisplayRow,
} from "./rows.ts";

export type DaemonInfo = {
  pid: number;
  socket: string;
  state_dir: string;
  log: string;
  version: string;
  /** Always false on the wire; the CLI says whether it started the daemon. */
  started: boolean;
};

export type StopReply = { stopping: true; pid: number; cancelled_runs: string[] };
export type RestartReply = { draining: true; active_runs: number; pid: number };
export type PauseReply = { paused: true };
export type ResumeReply = { paused: false; restart_cancelled: boolean };

export type PostedTicket = {
  id: string;
  project: string;
  file: string;
  state: TicketState;
  name: string;
  blocked_by: string[];
  worktree: string;
  target: string | null;
  model: string | null;
  effort: string | null;
  flow: string;
};

export type PostReply = {
  ticket: PostedTicket;
  created: boolean;
  file_rewritten: boolean;
  trigger: { id: string; kind: "auto" | "at"; state: "queued"; ticket: string; eligible_at_ms?: number } | null;
  trigger_suppressed: { reason: "terminal_ticket"; state: TicketState } | null;
};

/** A trigger as `run` echoes it; keys that do not apply are absent. */
export type TriggerEcho = {
  id: string;
  kind: "now" | "at" | "every" | "overnight";
  state: "queued";
  ticket?: string;
  project?: string;
  eligible_at_ms?: number;
  local_time?: string;
  interval_ms?: number;
};
export type RunReply = { trigger: TriggerEcho };

export type OverrideReply = { ticket: string; previous_state: TicketState; state: TicketState; overridden: boolean };
export type RetryReply = { ticket: string; previous_state: "failed"; state: "ready" };
export type CancelReply = {
  id: string;
  alias: string;
  state: "cancelling";
  worktree: string | null;
  preserved: true;
};

export type ReindexReply = {
  projects_indexed: number;
  tickets_indexed: number;
  /** Length of the next. */
  tickets_state_changed: number;
  /** Of tickets that were known before, by id as text. */
  state_changes: { ticket: string; previous_state: TicketState; state: TicketState }[];
  /** Of every table, removed with tickets and projects that are gone. */
  rows_dropped: number;
};

export type Status = {
  daemon: { pid: number; paused: boolean; draining: boolean };
  gate: Gate;
  /** Unsettled runs, oldest first. */
  runs: ActiveRun[];
  queued_triggers: QueuedTrigger[];
  queued_activations: QueuedTrigger[];
  tickets: TicketCounts;
  next_wake?: string;
  dispatch?: DispatchWire;
};

export type ListReply = { tickets: TicketDisplayRow[] };

export type WaitReply = {
  id: string;
  alias: string;
  note: string | null;
  state: RunState;
  terminal: boolean;
  exit_code: number | null;
  reason: string | null;
  classification: Classification | null;
};

export type Dashboard = { kind: "dashboard" } & Status & {
    attention: TicketDisplayRow[];
    recent: TicketDisplayRow[];
    recent_total: number;
    recent_limit: number;
  };

/** The ticket as a worker sees it (8.2). */
export type WorkerTicketDetail = {
  id: string;
  name: string;
  project: string;
  state: TicketState;
  file: string | null;
  blocked_by: string[];
  worktree: string | null;
  target: string | null;
  model: string | null;
  effort: string | null;
  reason: string | null;
  classification: Classification | null;
};
export type TicketDetail = WorkerTicketDetail & { runs: RunSummary[]; queued_triggers: string[]; body: string };

export type ProjectNote = { id: string; run: string; run_id: string; text: string; recorded_at_ms: number };
export type ProjectCommit = { run: string; run_id: string; hash: string; message: string };
export type ProjectTicket = {
  id: string;
  name: string;
  state: TicketState;
  reason: string | null;
  classification: Classification | null;
  notes: ProjectNote[];
  commits: ProjectCommit[];
};
export type ProjectDetail = { id: string; title: string; file: string | null; tickets: ProjectTicket[] };

export type Matches = { kind: "matches"; ref: string; tickets: TicketDisplayRow[] };
export type ShowTicket = { kind: "ticket"; ref: string; value: TicketDetail };
export type ShowRun = { kind: "run"; ref: string; value: RunDetail };
export type ShowProject = { kind: "project"; ref: string; value: ProjectDetail };
export type ShowReply = Dashboard | Matches | ShowTicket | ShowRun | ShowProject;

/** One read of a pipe (9.1): exactly one of `text` and `data`, by `encoding`. */
export type LogEntry = {
  sequence: number;
  timestamp: string;
  source: "agent" | "stage";
  stage?: string;
  attempt?: number;
  stream: "stdout" | "stderr";
} & ({ encoding: "utf8"; text: string } | { encoding: "base64"; data: string });

export type LogsPage = {
  id: string;
  alias: string;
  note: string | null;
  stage: string | null;
  entries: LogEntry[];
  /** A bigint only where a client sent a cursor beyond 2^53, which is handed back unchanged. */
  next_cursor: number | bigint;
  complete: boolean;
  elided: number;
  terminal: boolean;
};

/** One event of the feed as a client reads it (7.13). */
export type FeedEvent = {
  sequence: number;
  occurred_at_ms: number;
  kind: EventKind;
  /** Internal id. */
  run: string | null;
  ticket: string | null;
  data: Record<string, unknown>;
  /** The run's; absent without a run. */
  alias?: string;
};

export type EventsPage = {
  events: FeedEvent[];
  next_cursor: number | bigint;
  latest: number;
};

export type StageCheck = "none" | "reported" | "panel" | "commits" | "exec" | "agent" | "merge" | "sync";

export type BriefReply = {
  run: string;
  ticket: TicketSnapshot;
  worktree: string;
  branch: string;
  stage: { name: string; attempt: number; result_check: StageCheck };
  definition_of_done: [string];
};

export type NoteReply = { note: { id: string; run: string; text: string } };

export type StageVerdictEcho = {
  run: string;
  stage: string;
  attempt: number;
  verdict: "pass" | "fail";
  confidence: Confidence;
  reason: string | null;
};
export type SeatVerdictEcho = {
  run: string;
  stage: string;
  reviewer: number;
  verdict: "pass" | "fail";
  confidence: Confidence;
  reason: string;
};
export type VerdictReply = { verdict: StageVerdictEcho | SeatVerdictEcho };

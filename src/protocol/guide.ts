// What each verb answers and refuses, for the protocol's reference. The types keep every verb and every field described.

import type { ErrorCode } from "../core/errors.ts";
import type { Fields } from "./guide-objects.ts";
import type { SeatVerdictEcho, ShowReply, StageVerdictEcho } from "./replies.ts";
import type { Results, Verb } from "./verbs.ts";

type Refusal = readonly [code: ErrorCode, when: string];

export type VerbGuide<V extends Verb> = {
  /** What a client should know that neither arguments nor reply say. */
  about: string;
  reply: V extends "show" ? Fields<ShowReply> : V extends "init" ? Record<never, string> : Fields<Results[V]>;
  refusals: readonly Refusal[];
};

const run: readonly Refusal[] = [
  ["not_found", "no run, or a ticket without runs"],
  ["invalid_arguments", "several runs begin with these hexadecimal characters; they are listed"],
];
const ticket: readonly Refusal[] = [["not_found", "no ticket has exactly that id"]];
const worker: Refusal = ["unauthorized", "the token is not the live one of this run"];

const status: Fields<Results["status"]> = {
  daemon: "object: `pid`, `paused`, `draining`",
  gate: "object, see [the gate](#the-gate)",
  runs: "array of [run summaries](#run-summary), unsettled runs, oldest first",
  queued_triggers: "array of `id`, `ticket` or null, `project` or null, `state`; oldest first",
  queued_activations: "the same under a second name",
  tickets: "object, the number of tickets in each state",
  next_wake: "string, absent when there is none: when the daemon acts next by itself",
  dispatch: "object, absent when no timed work is pending, see [dispatch](#dispatch)",
};

const moved: Fields<Results["hold"]> = {
  ticket: "string",
  previous_state: "string",
  state: "string",
  overridden: "boolean, whether the state changed",
};

export const guide: { readonly [V in Verb]: VerbGuide<V> } = {
  daemon: {
    about: "The first thing to ask.",
    reply: {
      pid: "integer",
      socket: "string, absolute path",
      state_dir: "string, absolute path",
      log: "string, absolute path",
      version: "string",
      started: "false; the command line overwrites it",
    },
    refusals: [],
  },
  stop: {
    about:
      "The reply comes first, then the socket is removed and the process exits. Cancelled runs settle at the next start.",
    reply: { stopping: "true", pid: "integer", cancelled_runs: "array of aliases in text order" },
    refusals: [["conflict", "runs are unsettled and `force` is not true"]],
  },
  restart: {
    about:
      "Nothing new is dispatched from here on; once no run is unsettled the daemon replaces itself with the program at its path, same pid. `resume` calls it off.",
    reply: { draining: "true", active_runs: "integer, runs it waits for", pid: "integer" },
    refusals: [],
  },
  pause: {
    about: "It holds over restarts of the daemon, too.",
    reply: { paused: "true" },
    refusals: [],
  },
  resume: {
    about: "Resuming what is not paused is no error.",
    reply: { paused: "false", restart_cancelled: "boolean, whether a restart was pending" },
    refusals: [],
  },
  post: {
    about:
      "`file` is absolute or relative to the repository root. A repost refreshes the content and never changes the stored state. File, ticket and trigger change together or not at all.",
    reply: {
      ticket:
        "object: `id`, `project`, `file`, `state`, `name`, `blocked_by`, `worktree`, `target`, `model`, `effort` (these three may be null), `flow`",
      created: "boolean",
      file_rewritten: "boolean, whether missing keys were added to the file",
      trigger: "object or null: `id`, `kind`, `state`, `ticket`, with `at` also `eligible_at_ms`",
      trigger_suppressed: "object or null: `reason`, `state`, when the ticket is settled",
    },
    refusals: [
      ["conflict", "tickets come from an external source"],
      [
        "invalid_arguments",
        "a bad time; a path outside the repository or the ticket directory; a file that is no ticket",
      ],
      ["not_found", "no such file, project, flow or blocker"],
      ["conflict", "file and index disagree about id, project or flow; a dependency cycle; the file changed meanwhile"],
      ["invalid_arguments", "an agent target that is not configured, or lacks a model or an effort"],
    ],
  },
  run: {
    about: "Acceptance never means a start: `list` says why a ticket does not run. Two runs make two triggers.",
    reply: {
      trigger:
        "object: `id`, `kind`, `state`, and where they apply `ticket`, `project`, `eligible_at_ms`, `local_time`, `interval_ms`",
    },
    refusals: [
      [
        "invalid_arguments",
        "both `ticket` and `project`; a ticket of `only` outside the project; a bad time or interval",
      ],
      ["not_found", "an unknown ticket or project"],
      ["conflict", "the ticket is held, merged or needs review"],
    ],
  },
  retry: {
    about: "Queues nothing: a `run` must follow.",
    reply: { ticket: "string", previous_state: "`failed`", state: "`ready`" },
    refusals: [...ticket, ["conflict", "the ticket is not failed"]],
  },
  hold: {
    about: "Asking for the state it has succeeds.",
    reply: moved,
    refusals: [...ticket, ["conflict", "the ticket is neither ready nor held"]],
  },
  ready: {
    about: "Releases a ticket that validation held, too.",
    reply: moved,
    refusals: [...ticket, ["conflict", "the ticket is neither ready nor held"]],
  },
  cancel: {
    about:
      "The intent is stored, then the run's process group is ended; the run settles a little later. Work and output stay.",
    reply: {
      id: "string",
      alias: "string",
      state: "`cancelling`",
      worktree: "string or null",
      preserved: "true",
    },
    refusals: [...run, ["conflict", "the run is neither running nor driving"]],
  },
  reindex: {
    about: "Makes what is registered agree with the files and with git. Queues nothing.",
    reply: {
      projects_indexed: "integer",
      tickets_indexed: "integer",
      tickets_state_changed: "integer, length of the next",
      state_changes: "array of `ticket`, `previous_state`, `state`, by id as text",
      rows_dropped: "integer, rows removed with tickets and projects that are gone",
    },
    refusals: [
      ["conflict", "runs are unsettled, or became so meanwhile"],
      ["internal", "an id given twice, a dependency cycle, no project, a source or git that fails"],
    ],
  },
  show: {
    about:
      "Without `ref` the dashboard; else a ticket, a run or a project by [its name](#names), or the tickets that match a pattern: an unknown name is a pattern without matches. `limit` counts the rows of the dashboard's `recent` (10) and of matches. On a worker's socket `ref` must be the run's own ticket id, and the reply is a ticket's value without `runs`, `queued_triggers` and `body`.",
    reply: {
      kind: "`dashboard`, `ticket`, `run`, `project` or `matches`",
      ref: "string as sent; absent in the dashboard",
      value: "object, for a [ticket](#ticket-detail), a [run](#run-detail), a [project](#project-detail)",
      ...status,
      tickets: "array of [rows](#ticket-row) for matches; in the dashboard the numbers of `status`",
      attention: "dashboard: rows of everything failed or in need of review",
      recent: "dashboard: rows, newest first",
      recent_total: "dashboard: integer, all tickets",
      recent_limit: "dashboard: integer",
    },
    refusals: [
      ["invalid_arguments", "`limit` 0 where it counts; a bad pattern; an ambiguous prefix"],
      ["unauthorized", "a worker asked for anything but its own ticket"],
    ],
  },
  logs: {
    about:
      "`stage` is `<stage>` or `<stage>#<attempt>`. Without `tail` the first 64 matching entries after the cursor; with it the last ones, 1000 at most. To follow, repeat with `after` = `next_cursor` until `complete` and `terminal`.",
    reply: {
      id: "string",
      alias: "string",
      note: "string or null, which attempt was taken and which were passed over",
      stage: "string or null, as sent",
      entries: "array of [entries](#log-entry), ascending",
      next_cursor: "integer, the last record looked at",
      complete: "boolean, the page reached the end of what is captured now",
      elided: "integer, what `tail` left out in front",
      terminal: "boolean, whether the run had settled before the log was read",
    },
    refusals: [...run, ["invalid_arguments", "a malformed attempt, a stage that the flow does not have, `tail` 0"]],
  },
  events: {
    about:
      "`after` wins over `tail`; `limit` is 64, at most 256, and counts events looked at. A client is caught up when `next_cursor` equals `latest`, never because a page is empty.",
    reply: {
      events: "array of [events](#event), ascending, those that the scope lets through",
      next_cursor: "integer",
      latest: "integer, the newest sequence, 0 when there is none",
    },
    refusals: [["invalid_arguments", "a bad pattern or an ambiguous prefix as `scope`"]],
  },
  status: { about: "The numbers behind the dashboard.", reply: status, refusals: [] },
  list: {
    about: "Newest first. `states` takes the states of [rows](#ticket-row), `[]` for all.",
    reply: { tickets: "array of [rows](#ticket-row)" },
    refusals: [
      ["invalid_arguments", "`limit` 0, or a word that is no state"],
      ["not_found", "no project has exactly that id"],
    ],
  },
  wait: {
    about: "One snapshot; the waiting is the client's.",
    reply: {
      id: "string",
      alias: "string",
      note: "string or null, which attempt was taken and which were passed over",
      state: "string, a run state",
      terminal: "boolean",
      exit_code: "integer or null, the first agent stage's",
      reason: "string or null, the vendor's diagnostic",
      classification: "object or null",
    },
    refusals: run,
  },
  init: {
    about: "A repository is set up by `sloop init`, before there is a daemon.",
    reply: {},
    refusals: [["invalid_request", "always"]],
  },
  brief: {
    about: "The assignment as it was when the run was claimed.",
    reply: {
      run: "string, the internal id",
      ticket:
        "object: `id`, `name`, `blocked_by`, `worktree`, `body`, `target`, `model`, `effort` (null where not set)",
      worktree: "string, absolute path",
      branch: "string",
      stage: "object: `name`, `attempt`, `result_check`",
      definition_of_done: "array of exactly one string",
    },
    refusals: [worker, ["conflict", "the run is not executing"]],
  },
  note: {
    about: "Any text; it moves nothing and shows in the project.",
    reply: { note: "object: `id`, `run`, `text`" },
    refusals: [worker],
  },
  verdict: {
    about:
      "Once per execution of a stage whose check is `reported`, or per panel seat; a seat owes a reason. `confidence` is `medium` unless given.",
    reply: { verdict: "object, see [verdict](#verdict-echo)" },
    refusals: [
      worker,
      ["conflict", "the run is not executing"],
      ["unauthorized", "the stage's check is not `reported`"],
      ["invalid_arguments", "a seat without a reason"],
      ["conflict", "a verdict was already reported"],
    ],
  },
};

export const verdictEcho: Fields<StageVerdictEcho | SeatVerdictEcho> = {
  run: "string, the internal id",
  stage: "string",
  attempt: "integer, absent for a panel seat",
  reviewer: "integer, the seat from 0; only for a panel seat",
  verdict: "`pass` or `fail`",
  confidence: "`low`, `medium` or `high`",
  reason: "string, or null for a stage that gave none",
};

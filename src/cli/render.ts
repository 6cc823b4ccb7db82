// Reply -> text, per verb; pure. A reply in a shape that is not known is printed as JSON: nothing is dropped silently.

import type {
  CancelReply,
  DaemonInfo,
  EventsPage,
  ListReply,
  LogsPage,
  OverrideReply,
  PostReply,
  ReindexReply,
  RestartReply,
  ResumeReply,
  RunReply,
  ShowReply,
  StopReply,
} from "../protocol/replies.ts";
import type { Verb } from "../protocol/verbs.ts";
import {
  renderCancel,
  renderDaemon,
  renderMove,
  renderPost,
  renderReindex,
  renderRestart,
  renderStop,
  renderTrigger,
} from "./confirm.ts";
import { renderDashboard } from "./dashboard.ts";
import { renderProject, renderRun, renderTicket } from "./detail.ts";
import { renderEvents, renderLogs } from "./feed.ts";
import { renderRows } from "./rows.ts";
import { fits, type Shape } from "./shape.ts";
import { type Style, visibleDeep } from "./style.ts";

export type View = {
  style: Style;
  /** Epoch ms: countdowns and open spans are relative to it. */
  now: number;
  /** Control characters in replies are shown, not obeyed. */
  terminal: boolean;
  version: string;
  /** The reference that was asked for, where the text repeats it. */
  ref: string | null;
  /** The request narrowed the list. */
  filtered: boolean;
};

const strip: Shape = {
  each: { fields: { stage: "string", state: "string", attempt: "number", silent_for_ms: "number?" } },
};
const row: Shape = {
  fields: { id: "string", name: "string", project: "string", state: "string", run: "string?", reason: "string?" },
};
const run: Shape = {
  fields: { alias: "string", state: "string", started_at_ms: "number?", finished_at_ms: "number?", stages: strip },
};
const text = (...names: string[]): Record<string, Shape> => Object.fromEntries(names.map((name) => [name, "string"]));
const orNull = (...names: string[]): Record<string, Shape> =>
  Object.fromEntries(names.map((name) => [name, "string?"]));

const shapes = {
  dashboard: {
    fields: {
      daemon: { fields: { pid: "number", paused: "boolean", draining: "boolean" } },
      gate: {
        fields: {
          active_agents: "number",
          max_agents: "number",
          storage: { fields: { writable: "boolean" } },
          running_hours: { maybe: { fields: text("start", "end") } },
        },
      },
      dispatch: { maybe: { fields: text("at", "cause") } },
      runs: { each: run },
      tickets: { fields: {} },
      attention: { each: row },
      recent: { each: row },
      recent_total: "number",
    },
  },
  tickets: { fields: { tickets: { each: row } } },
  ticket: {
    fields: {
      value: {
        fields: {
          ...text("id", "name", "state", "project"),
          ...orNull("worktree", "target", "model", "effort", "reason"),
          blocked_by: { each: "string" },
          runs: { maybe: { each: run } },
          body: { maybe: "string" },
        },
      },
    },
  },
  run: {
    fields: {
      value: {
        fields: {
          ...text("alias", "state", "ticket"),
          ...orNull("note", "ticket_name", "branch", "worktree", "reason"),
          stall: { maybe: { fields: { threshold_ms: "number" } } },
          wip: { maybe: { fields: { ref: "string", files: "number" } } },
          stages: strip,
        },
      },
    },
  },
  project: {
    fields: {
      value: {
        fields: {
          ...text("id", "title"),
          tickets: {
            each: {
              fields: {
                ...text("id", "name", "state"),
                notes: { each: { fields: text("id", "run", "text") } },
                commits: { each: { fields: text("hash", "run", "message") } },
              },
            },
          },
        },
      },
    },
  },
  daemon: { fields: { pid: "number", ...text("socket", "log", "state_dir", "version") } },
  restart: { fields: { active_runs: "number" } },
  stop: { fields: { pid: "number", cancelled_runs: { each: "string" } } },
  resume: { fields: { paused: "boolean" } },
  post: {
    fields: {
      ticket: { fields: text("id", "file", "project", "state") },
      trigger: { maybe: { fields: text("id", "kind", "state") } },
      trigger_suppressed: { maybe: { fields: text("state") } },
    },
  },
  trigger: { fields: { trigger: { fields: text("id", "kind", "state") } } },
  move: { fields: text("ticket", "previous_state", "state") },
  cancel: { fields: { alias: "string", worktree: "string?" } },
  reindex: {
    fields: {
      projects_indexed: "number",
      tickets_indexed: "number",
      tickets_state_changed: "number",
      rows_dropped: "number",
      state_changes: { each: { fields: text("ticket", "previous_state", "state") } },
    },
  },
  logs: {
    fields: {
      alias: "string",
      note: "string?",
      elided: "number",
      entries: { each: { fields: text("timestamp", "source", "encoding") } },
    },
  },
  events: {
    fields: { events: { each: { fields: { kind: "string", occurred_at_ms: "number", data: { fields: {} } } } } },
  },
} as const satisfies Record<string, Shape>;

type Page = { shape: Shape; render(data: never, view: View): string };

const page = <T>(shape: Shape, render: (data: T, view: View) => string): Page => ({ shape, render });

const movePage = page<OverrideReply>(shapes.move, (data) => renderMove(data));

const showPages: Record<ShowReply["kind"], Page> = {
  dashboard: page<ShowReply & { kind: "dashboard" }>(shapes.dashboard, (data, view) =>
    renderDashboard(data, view.style, view.now),
  ),
  matches: page<ShowReply & { kind: "matches" }>(shapes.tickets, (data, view) =>
    data.tickets.length === 0 ? "no tickets" : renderRows(data.tickets, view.style).join("\n"),
  ),
  ticket: page<ShowReply & { kind: "ticket" }>(shapes.ticket, (data, view) =>
    renderTicket(data.value, view.style, view.now),
  ),
  run: page<ShowReply & { kind: "run" }>(shapes.run, (data, view) => renderRun(data.value, view.style, view.now)),
  project: page<ShowReply & { kind: "project" }>(shapes.project, (data, view) => renderProject(data.value, view.style)),
};

function listText(data: ListReply, view: View): string {
  if (data.tickets.length === 0) return view.filtered ? "no tickets match" : "no tickets";
  return renderRows(data.tickets, view.style, { running: (alias) => `running as ${alias}` }).join("\n");
}

const pages: Partial<Record<Verb, Page>> = {
  list: page<ListReply>(shapes.tickets, listText),
  daemon: page<DaemonInfo>(shapes.daemon, (data, view) => renderDaemon(data, view.version)),
  stop: page<StopReply>(shapes.stop, renderStop),
  restart: page<RestartReply>(shapes.restart, renderRestart),
  pause: page({ fields: {} }, () => "scheduler paused"),
  resume: page<ResumeReply>(shapes.resume, (data) =>
    data.restart_cancelled ? "scheduler resumed\npending restart cancelled" : "scheduler resumed",
  ),
  post: page<PostReply>(shapes.post, renderPost),
  run: page<RunReply>(shapes.trigger, (data) => renderTrigger(data.trigger)),
  retry: movePage,
  hold: movePage,
  ready: movePage,
  cancel: page<CancelReply>(shapes.cancel, renderCancel),
  reindex: page<ReindexReply>(shapes.reindex, renderReindex),
  logs: page<LogsPage>(shapes.logs, (data) => renderLogs(data).join("\n")),
  events: page<EventsPage>(shapes.events, (data, view) => renderEvents(data, view.ref).join("\n")),
};

function pageOf(verb: Verb, data: unknown): Page | undefined {
  if (verb !== "show") return pages[verb];
  const kind = typeof data === "object" && data !== null && "kind" in data ? String(data.kind) : "";
  return Object.hasOwn(showPages, kind) ? showPages[kind as ShowReply["kind"]] : undefined;
}

/** The human text of a reply's `data`, without a newline at its end; empty when there is nothing to say. */
export function renderReply(verb: Verb, data: unknown, view: View): string {
  const found = pageOf(verb, data);
  if (found === undefined || !fits(data, found.shape)) return JSON.stringify(data, null, 2);
  const shown = view.terminal ? visibleDeep(data) : data;
  return found.render(shown as never, view);
}

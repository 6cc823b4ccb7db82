// What a command that did something says afterwards (cli.md 13.9).

import { formatSilence } from "../core/duration.ts";
import type {
  CancelReply,
  DaemonInfo,
  OverrideReply,
  PostReply,
  ReindexReply,
  RestartReply,
  RetryReply,
  StopReply,
  TriggerEcho,
} from "../protocol/replies.ts";
import { counted, datedTime } from "./span.ts";

/** `daemon`; `version` is this program's own. */
export function renderDaemon(data: DaemonInfo & { control?: string }, version: string): string {
  const lines = [
    `daemon ${data.started ? "started" : "running"} (pid ${data.pid})`,
    `socket: ${data.socket}`,
    `log: ${data.log}`,
    `state: ${data.state_dir}`,
  ];
  if (data.control !== undefined) lines.push(`control: ${data.control}`);
  if (data.version !== version) {
    lines.push(`version: the daemon is ${data.version}, this sloop is ${version}; \`sloop daemon restart\` reloads it`);
  }
  return lines.join("\n");
}

export function renderRestart(data: RestartReply): string {
  return `daemon draining for restart (${counted(data.active_runs, "run")} active)`;
}

export function renderStop(data: StopReply): string {
  return [`daemon stopping (pid ${data.pid})`, ...data.cancelled_runs.map((alias) => `  cancelled: ${alias}`)].join(
    "\n",
  );
}

type AnyTrigger = Pick<TriggerEcho, "id" | "state"> & Partial<Omit<TriggerEcho, "kind">> & { kind: string };

function interval(ms: number): string {
  return ms % 1000 === 0 ? formatSilence(ms) : `${ms}ms`;
}

/** `trigger TR95 queued (auto, ticket TICK-33)`. */
export function renderTrigger(trigger: AnyTrigger): string {
  const parts: string[] = [trigger.kind];
  if (trigger.ticket !== undefined) parts.push(`ticket ${trigger.ticket}`);
  if (trigger.project !== undefined) parts.push(`project ${trigger.project}`);
  if (trigger.local_time !== undefined) parts.push(`time ${trigger.local_time}`);
  if (trigger.eligible_at_ms !== undefined) parts.push(`due ${datedTime(trigger.eligible_at_ms)}`);
  if (trigger.interval_ms !== undefined) parts.push(`every ${interval(trigger.interval_ms)}`);
  return `trigger ${trigger.id} ${trigger.state} (${parts.join(", ")})`;
}

function suppression(id: string, state: string): string {
  const line = `no trigger queued: ${id} is ${state}`;
  return state === "failed" ? `${line}; \`sloop retry ${id}\` returns it to ready` : line;
}

export function renderPost(data: PostReply): string {
  const { ticket } = data;
  const verb = data.created ? "registered" : "updated";
  const lines = [`ticket ${ticket.id} ${verb} from ${ticket.file} (project ${ticket.project}, ${ticket.state})`];
  if (data.file_rewritten) lines.push("its frontmatter was stamped; commit it, so that other clones have the same ids");
  if (data.trigger !== null) lines.push(renderTrigger(data.trigger));
  if (data.trigger_suppressed !== null) lines.push(suppression(ticket.id, data.trigger_suppressed.state));
  return lines.join("\n");
}

/** `retry`, `hold`, `ready`. */
export function renderMove(data: OverrideReply | RetryReply): string {
  return `ticket ${data.ticket}: ${data.previous_state} -> ${data.state}`;
}

export function renderReindex(data: ReindexReply): string {
  const { projects_indexed: projects, tickets_indexed: tickets, tickets_state_changed: changed } = data;
  const indexed = `reindexed ${counted(projects, "project")} and ${counted(tickets, "ticket")}`;
  return `${indexed}; ${counted(changed, "ticket state")} changed; ${counted(data.rows_dropped, "row")} dropped`;
}

export function renderCancel(data: CancelReply): string {
  const kept = data.worktree === null ? [] : [`worktree preserved at ${data.worktree}`];
  return [`run ${data.alias} cancelling`, ...kept].join("\n");
}

// Event lines and captured output as text (cli.md 13.10, 13.11).

import { shortId } from "../core/ids.ts";
import { formatInstantFull } from "../core/instant.ts";
import type { EventsPage, FeedEvent, LogEntry, LogsPage } from "../protocol/replies.ts";
import { quoteWord } from "./quote.ts";
import { counted } from "./span.ts";

function runName(event: FeedEvent): string {
  return event.alias ?? (event.run === null ? "?" : shortId(event.run));
}

function known(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "?";
}

function eventText(event: FeedEvent): string {
  const run = runName(event);
  const ticket = event.ticket ?? "?";
  const { data } = event;
  switch (event.kind) {
    case "run_claimed":
      return `${ticket} claimed by ${run} (attempt ${known(data["attempt"])})`;
    case "run_started":
      return `${run} started on ${ticket}`;
    case "run_finished":
      return `${run} finished: ${known(data["outcome"])} (${ticket} -> ${known(data["ticket_state"])})`;
    case "run_aborted":
      return `${run} aborted before launch (${ticket} back to ready)`;
    case "run_worktree_cleaned":
      return `${run} worktree and branch removed`;
    case "daemon_restart_requested": {
      const runs = data["active_runs"];
      return `daemon draining for restart (${typeof runs === "number" ? counted(runs, "run") : "? runs"} active)`;
    }
    default:
      // Of the table or of a newer daemon: a kind without words of its own.
      return `${event.kind} run=${run} ticket=${ticket}`;
  }
}

/** One event as one line. */
export function renderEvent(event: FeedEvent): string {
  return `${formatInstantFull(event.occurred_at_ms)}  ${eventText(event)}`;
}

/** One page of events; `ref` is repeated in the line that says how to go on. */
export function renderEvents(page: EventsPage, ref: string | null): string[] {
  const lines = page.events.map(renderEvent);
  if (page.next_cursor >= page.latest) return lines;
  return [...lines, `more: sloop events --after ${page.next_cursor}${ref === null ? "" : ` ${quoteWord(ref)}`}`];
}

function originLabel(entry: LogEntry): string {
  const stage = entry.stage === undefined ? "" : `:${entry.stage}`;
  return `[${entry.source}${stage}${(entry.attempt ?? 1) > 1 ? `#${entry.attempt}` : ""}]`;
}

function stamp(timestamp: string): string {
  const ms = Date.parse(timestamp);
  return Number.isNaN(ms) ? timestamp : formatInstantFull(ms);
}

function entryLines(entry: LogEntry): string[] {
  const prefix = `[${stamp(entry.timestamp)}] ${originLabel(entry)}`;
  if (entry.encoding !== "utf8") return [`${prefix} <binary output>`];
  const text = entry.text.endsWith("\n") ? entry.text.slice(0, -1) : entry.text;
  return text.split("\n").map((line) => (line === "" ? prefix : `${prefix} ${line}`));
}

/** One page of captured output. */
export function renderLogs(page: LogsPage): string[] {
  const lines = page.note === null ? [] : [page.note];
  if (page.entries.length === 0 && page.elided === 0) return [...lines, `no output captured for run ${page.alias}`];
  for (const entry of page.entries) lines.push(...entryLines(entry));
  if (page.elided > 0) {
    const shown = page.entries.length;
    lines.push(`showing the last ${shown} of ${shown + page.elided} entries; --tail N or --follow for more`);
  }
  return lines;
}

// `events`: one page of the activity feed, whole or within a scope (protocol.md 7.13, 10).

import type { EventKind } from "../core/feed.ts";
import { runAlias } from "../core/ids.ts";
import type { Daemon } from "../daemon/context.ts";
import type { EventsPage, FeedEvent } from "../protocol/replies.ts";
import type { Params } from "../protocol/verbs.ts";
import { cursorBefore, latestSequence, listEvents, type RunName } from "../store/feed.ts";
import { readListed } from "../store/report.ts";
import type { EventRow } from "../store/tables.ts";
import type { Handler } from "./handler.ts";
import { resolveShown } from "./reference.ts";

const defaultLimit = 64;
const longestPage = 256;

function dataOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function eventOf(event: EventRow, run: RunName | null): FeedEvent {
  return {
    sequence: event.sequence,
    occurred_at_ms: event.occurredAtMs,
    kind: event.kind as EventKind,
    run: event.runId,
    ticket: event.ticketId,
    data: dataOf(event.dataJson),
    ...(run === null ? {} : { alias: runAlias(run.ticketId, run.attempt) }),
  };
}

/** Which of the scanned events a scope lets through; those without a ticket belong to none. */
function inScope(daemon: Daemon, scope: string, scanned: readonly EventRow[]): (event: EventRow) => boolean {
  const q = daemon.store.db;
  const shown = resolveShown(q, scope);
  if (shown.kind === "ticket") return (event) => event.ticketId === shown.ticket.id;
  if (shown.kind === "run") return (event) => event.runId === shown.run.id;
  // Only the tickets of this page are looked up: the scope may hold thousands.
  const ids = [...new Set(scanned.flatMap((event) => event.ticketId ?? []))];
  const wanted = readListed(q, ids).filter((ticket) =>
    shown.kind === "project"
      ? ticket.projectId === shown.project.id
      : shown.pattern(ticket.id) || shown.pattern(ticket.name),
  );
  const covered = new Set(wanted.map((ticket) => ticket.id));
  return (event) => event.ticketId !== null && covered.has(event.ticketId);
}

/** Where a page starts: behind which sequence. A cursor beyond the end is kept as it came. */
function startOf(daemon: Daemon, args: Params<"events">): number | bigint {
  const { after, tail } = args;
  if (typeof after === "bigint") return after > 0n ? after : 0;
  if (typeof after === "number") return Math.max(after, 0);
  return tail == null ? 0 : cursorBefore(daemon.store.db, tail);
}

export const events: Handler<"events"> = (daemon, args): EventsPage => {
  const q = daemon.store.db;
  const start = startOf(daemon, args);
  const limit = Math.min(args.limit ?? defaultLimit, longestPage);
  const scanned = limit === 0 ? [] : listEvents(q, Number(start), limit);
  const rows = scanned.map(({ event }) => event);
  const passes = args.scope == null ? () => true : inScope(daemon, args.scope, rows);
  return {
    events: scanned.filter(({ event }) => passes(event)).map(({ event, run }) => eventOf(event, run)),
    next_cursor: rows.at(-1)?.sequence ?? start,
    latest: latestSequence(q),
  };
};

// Reading the activity feed: pages of the journal's v1 events, and a run's timeline from them.

import { and, asc, desc, eq, gt, inArray } from "drizzle-orm";
import { type EventKind, eventKinds } from "../core/feed.ts";
import type { Queries } from "./open.ts";
import { inPieces } from "./report.ts";
import { type EventRow, events, runs } from "./tables.ts";

const known = inArray(events.kind, [...eventKinds]);

/** The newest sequence in the feed, 0 when it is empty. */
export function latestSequence(q: Queries): number {
  const newest = q.select({ sequence: events.sequence }).from(events).where(known);
  return newest.orderBy(desc(events.sequence)).limit(1).get()?.sequence ?? 0;
}

/** The cursor behind which the newest `count` events lie, 0 when there are no more than that. */
export function cursorBefore(q: Queries, count: number): number {
  const sequences = q.select({ sequence: events.sequence }).from(events).where(known);
  return sequences.orderBy(desc(events.sequence)).limit(1).offset(count).get()?.sequence ?? 0;
}

/** The first `limit` events with a greater sequence, ascending, each with its run's attempt (null when the row is gone). */
export function listEvents(q: Queries, after: number, limit: number): { event: EventRow; run: RunName | null }[] {
  return q
    .select({ event: events, run: { ticketId: runs.ticketId, attempt: runs.attempt } })
    .from(events)
    .leftJoin(runs, eq(runs.id, events.runId))
    .where(and(known, gt(events.sequence, after)))
    .orderBy(asc(events.sequence))
    .limit(limit)
    .all();
}

export type RunName = { ticketId: string; attempt: number };

/** Epoch ms of a run's claim, start and end as the feed tells them; null where it does not (any more). */
export type Timeline = { claimedAtMs: number | null; startedAtMs: number | null; finishedAtMs: number | null };

const timelineKinds: EventKind[] = ["run_claimed", "run_started", "run_finished", "run_aborted"];

/** The timelines of several runs; runs without any event left are absent. */
export function readTimelines(q: Queries, runIds: readonly string[]): Map<string, Timeline> {
  const rows = inPieces(runIds, (piece) =>
    q
      .select({ runId: events.runId, kind: events.kind, atMs: events.occurredAtMs })
      .from(events)
      .where(and(inArray(events.runId, piece), inArray(events.kind, timelineKinds)))
      .orderBy(asc(events.runId), asc(events.sequence))
      .all(),
  );
  const timelines = new Map<string, Timeline>();
  for (const { runId, kind, atMs } of rows) {
    if (runId === null) continue;
    const timeline = timelines.get(runId) ?? { claimedAtMs: null, startedAtMs: null, finishedAtMs: null };
    if (kind === "run_claimed") timeline.claimedAtMs ??= atMs;
    else if (kind === "run_started") timeline.startedAtMs ??= atMs;
    else timeline.finishedAtMs = atMs;
    timelines.set(runId, timeline);
  }
  return timelines;
}

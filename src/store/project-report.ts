// What project detail reads: its tickets, their runs, and what workers noted. Read only.

import { asc, eq, inArray, sql } from "drizzle-orm";
import type { Queries } from "./open.ts";
import { inPieces, type ListedTicket, readListed } from "./report.ts";
import { notes, type ProjectRow, projects, runEvidence, runs, tickets } from "./tables.ts";

export function readProject(q: Queries, id: string): ProjectRow | null {
  return q.select().from(projects).where(eq(projects.id, id)).get() ?? null;
}

/** A project's tickets by id as text. */
export function listProjectTickets(q: Queries, projectId: string): ListedTicket[] {
  const rows = q
    .select({ id: tickets.id })
    .from(tickets)
    .where(eq(tickets.projectId, projectId))
    .orderBy(asc(tickets.id))
    .all();
  return readListed(
    q,
    rows.map((row) => row.id),
  );
}

export type RunOfTicket = { id: string; ticketId: string; attempt: number };

/** The runs of those tickets, oldest first. */
export function listRunsOfTickets(q: Queries, ticketIds: readonly string[]): RunOfTicket[] {
  return inPieces(ticketIds, (piece) =>
    q
      .select({ id: runs.id, ticketId: runs.ticketId, attempt: runs.attempt })
      .from(runs)
      .where(inArray(runs.ticketId, piece))
      .orderBy(asc(runs.createdAtMs), asc(sql`${runs}.rowid`))
      .all(),
  );
}

export type NoteRow = typeof notes.$inferSelect;

/** The notes of those runs, oldest first, then by id as text. */
export function listNotes(q: Queries, runIds: readonly string[]): NoteRow[] {
  const found = inPieces(runIds, (piece) => q.select().from(notes).where(inArray(notes.runId, piece)).all());
  return found.sort((a, b) => a.recordedAtMs - b.recordedAtMs || (a.id < b.id ? -1 : 1));
}

/** The commits observed on each of those runs' branches, oldest first; runs without an observation are absent. */
export function listObservedCommits(q: Queries, runIds: readonly string[]): Map<string, string[]> {
  const keys = new Map(runIds.map((id) => [`settlement:${id}:commits_observed`, id]));
  const found = inPieces([...keys.keys()], (piece) =>
    q
      .select({ key: runEvidence.dedupeKey, dataJson: runEvidence.dataJson })
      .from(runEvidence)
      .where(inArray(runEvidence.dedupeKey, piece))
      .all(),
  );
  const commits = new Map<string, string[]>();
  for (const { key, dataJson } of found) {
    const runId = keys.get(key ?? "");
    const { oids } = JSON.parse(dataJson) as { oids?: string[] };
    if (runId !== undefined) commits.set(runId, oids ?? []);
  }
  return commits;
}

// Writes a rebuilt index: every ticket and project as its source says, states kept or derived, the rest dropped, in one transaction.

import type { Database } from "bun:sqlite";
import type { TicketState } from "../core/ticket.ts";
import { prepareInsert, prepareUpdate, readColumns } from "./bulk.ts";
import { dropProjects, dropTickets } from "./drop.ts";
import type { Queries, Store } from "./open.ts";
import { indexProject, type ProjectFile } from "./projects.ts";
import { listUnsettled, releaseWorktrees } from "./runs.ts";
import { projects, type RunRow, type TicketRow, ticketBlockers, tickets } from "./tables.ts";
import { retirePinned } from "./triggers.ts";

/** A ticket as its source says, with what its branches prove. */
export type IndexTicket = {
  id: string;
  projectId: string;
  filePath: string | null;
  source: "local" | "exec";
  sourceRef: string;
  name: string;
  worktree: string;
  target: string | null;
  model: string | null;
  effort: string | null;
  flow: string;
  body: string;
  contentHash: string | null;
  blockedBy: readonly string[];
  heldReason: string | null;
  evidence: "merged" | "needs_review" | null;
};

/** What tells a ticket apart from all others. */
export type KnownTicket = Pick<TicketRow, "id" | "filePath" | "source" | "sourceRef">;

/** What a reindex is decided from: every ticket's identity, by id, and which runs there were. */
export type IndexBasis = { known: readonly KnownTicket[]; runs: string };

export type Reindex = {
  projects: readonly ProjectFile[];
  tickets: readonly IndexTicket[];
  basis: IndexBasis;
};

export type StateChange = { ticket: string; previous_state: TicketState; state: TicketState };

export type ReindexEnd =
  | { kind: "written"; stateChanges: StateChange[]; rowsDropped: number }
  /** Runs became active meanwhile; nothing was written. */
  | { kind: "active"; runs: RunRow[] }
  /** Tickets or runs came or went meanwhile, so the decisions are stale; nothing was written. */
  | { kind: "moved" };

const identity = ["id", "filePath", "source", "sourceRef"] as const;
const said = ["projectId", "name", "worktree", "target", "model", "effort", "flow", "body", "contentHash"] as const;
const kept = ["state", "heldReason", "missingAtMs"] as const;
const written = [...identity, ...said, ...kept] as const;

type Stored = Pick<TicketRow, (typeof written)[number]>;

/** Reads what a reindex is decided from. */
export function readBasis({ sqlite }: Pick<Store, "sqlite">): IndexBasis {
  return { known: readColumns(sqlite, tickets, identity), runs: runsSeen(sqlite) };
}

function runsSeen(sqlite: Database): string {
  const seen = sqlite.query<{ n: number; last: number | null }, []>("select count(*) n, max(rowid) last from runs");
  return JSON.stringify(seen.get());
}

function sameTickets(before: readonly KnownTicket[], now: readonly KnownTicket[]): boolean {
  return (
    before.length === now.length &&
    before.every((row, index) => {
      const other = now[index];
      return other !== undefined && identity.every((key) => row[key] === other[key]);
    })
  );
}

function nextState(ticket: IndexTicket, row: Stored | null): TicketState {
  if (ticket.heldReason !== null) return "held";
  if (ticket.evidence !== null) return ticket.evidence;
  if (row === null) return "ready";
  return row.state === "held" && row.heldReason !== null ? "ready" : row.state;
}

type Entry = { ticket: IndexTicket; row: Stored | null; state: TicketState };

function differs({ ticket, row, state }: Entry): boolean {
  if (row === null || row.state !== state || row.missingAtMs !== null) return true;
  if (row.heldReason !== ticket.heldReason) return true;
  for (const key of identity) if (row[key] !== ticket[key]) return true;
  for (const key of said) if (row[key] !== ticket[key]) return true;
  return false;
}

function valuesOf({ ticket, state }: Entry) {
  return [
    ...identity.map((key) => ticket[key]),
    ...said.map((key) => ticket[key]),
    state,
    ticket.heldReason,
    null,
  ] as const;
}

/** Paths and references are unique at every moment, so whoever changes his gives it up before anybody takes one. */
function freeNames(sqlite: Database, changes: readonly Entry[]): void {
  const free = sqlite.query("update tickets set file_path = null, source_ref = 'id:' || id where id = ?");
  for (const { ticket, row } of changes) {
    if (row !== null && !identity.every((key) => row[key] === ticket[key])) free.run(row.id);
  }
}

function writeRows(sqlite: Database, changes: readonly Entry[], now: number): void {
  freeNames(sqlite, changes);
  const update = prepareUpdate(sqlite, tickets, [...written, "updatedAtMs"]);
  const insert = prepareInsert(sqlite, tickets, [...written, "createdAtMs", "updatedAtMs"]);
  for (const entry of changes) {
    if (entry.row === null) insert([...valuesOf(entry), now, now]);
    else update([...valuesOf(entry), now, entry.ticket.id]);
  }
}

function sameList(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((item, index) => item === right[index]);
}

/** Every ticket's blockers in their order, where it has any. */
function readEdges(sqlite: Database): Map<string, string[]> {
  const edges = new Map<string, string[]>();
  const rows = sqlite.query<{ ticket: string; blocker: string }, []>(
    "select ticket_id ticket, blocker_id blocker from ticket_blockers order by ticket_id, position",
  );
  for (const { ticket, blocker } of rows.all()) {
    const own = edges.get(ticket);
    if (own === undefined) edges.set(ticket, [blocker]);
    else own.push(blocker);
  }
  return edges;
}

/** Takes out the edges of every ticket whose list has changed; those tickets. */
function clearEdges(sqlite: Database, all: readonly IndexTicket[]): IndexTicket[] {
  const stored = readEdges(sqlite);
  const clear = sqlite.query("delete from ticket_blockers where ticket_id = ?");
  const stale = all.filter(({ id, blockedBy }) => !sameList(stored.get(id) ?? [], blockedBy));
  for (const { id } of stale) if (stored.has(id)) clear.run(id);
  return stale;
}

function writeEdges(sqlite: Database, stale: readonly IndexTicket[]): void {
  const insert = prepareInsert(sqlite, ticketBlockers, ["ticketId", "blockerId", "position"]);
  for (const { id, blockedBy } of stale) {
    for (const [position, blocker] of blockedBy.entries()) insert([id, blocker, position]);
  }
}

function writeProjects(tx: Queries, files: readonly ProjectFile[], now: number): void {
  const rows = tx.select().from(projects).all();
  const stored = new Map(rows.map((row) => [row.id, row]));
  for (const file of files) {
    const row = stored.get(file.id);
    if (row?.filePath === file.filePath && row.sourceRef === file.filePath && row.title === file.title) continue;
    indexProject(tx, file, now);
  }
}

function stateChanges(changes: readonly Entry[]): StateChange[] {
  const moved = changes.flatMap(({ row, state }) =>
    row === null || row.state === state ? [] : [{ ticket: row.id, previous_state: row.state, state }],
  );
  return moved.sort((a, b) => (a.ticket < b.ticket ? -1 : 1));
}

/** What follows from a ticket's having been found merged: nothing asks for it any more, and its worktrees may go. */
function followMerges(tx: Queries, moved: readonly StateChange[], now: number): void {
  for (const { ticket, previous_state: before, state } of moved) {
    if (state !== "merged") continue;
    retirePinned(tx, ticket, now);
    if (before === "failed" || before === "needs_review") {
      releaseWorktrees(tx, ticket, ["failed", "needs_review"], now);
    }
  }
}

type Writing = { tx: Queries; sqlite: Database; now: number };

function write({ tx, sqlite, now }: Writing, reindex: Reindex, stored: readonly Stored[]): ReindexEnd {
  const rows = new Map(stored.map((row) => [row.id, row]));
  const entries = reindex.tickets.map((ticket) => {
    const row = rows.get(ticket.id) ?? null;
    return { ticket, row, state: nextState(ticket, row) };
  });
  for (const { id } of reindex.tickets) rows.delete(id);
  const changes = entries.filter(differs);
  writeProjects(tx, reindex.projects, now);
  const rowsDropped = dropTickets(sqlite, [...rows.keys()]);
  const stale = clearEdges(sqlite, reindex.tickets);
  writeRows(sqlite, changes, now);
  writeEdges(sqlite, stale);
  const moved = stateChanges(changes);
  followMerges(tx, moved, now);
  const projectIds = reindex.projects.map(({ id }) => id);
  return { kind: "written", stateChanges: moved, rowsDropped: rowsDropped + dropProjects(sqlite, projectIds) };
}

/** Writes the index that was decided, unless a run has become active or what it was decided from has changed. */
export function writeReindex({ sqlite, write: transact }: Store, reindex: Reindex, now: number): ReindexEnd {
  return transact((tx): ReindexEnd => {
    const active = listUnsettled(tx);
    if (active.length > 0) return { kind: "active", runs: active };
    const stored: Stored[] = readColumns(sqlite, tickets, written);
    const { basis } = reindex;
    if (basis.runs !== runsSeen(sqlite) || !sameTickets(basis.known, stored)) return { kind: "moved" };
    return write({ tx, sqlite, now }, reindex, stored);
  });
}

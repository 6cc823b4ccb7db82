// How many tickets there are in each state. Which ready ones are blocked is remembered: after a change only what it touched,
// and what that blocks, is looked at again.

import type { Database } from "bun:sqlite";
import type { DisplayState, TicketState } from "../core/ticket.ts";
import { type Moment, openMoment, touchedSince, type Watched } from "./touched.ts";

type Known = { blocked: Set<string>; asOf: Moment };

const remembered = new WeakMap<Database, Known>();

type Id = { id: string };

/** Ready tickets with an unmerged blocker, looked for from the dependencies: the crosses keep the planner to that order. */
function readBlocked(sqlite: Database): Set<string> {
  const rows = sqlite.query<Id, []>(
    `select distinct edge.ticket_id id from ticket_blockers as edge cross join tickets as ticket on ticket.id = edge.ticket_id
      cross join tickets as blocker on blocker.id = edge.blocker_id where ticket.state = 'ready' and blocker.state <> 'merged'`,
  );
  return new Set(rows.all().map(({ id }) => id));
}

/** Looks again at the touched tickets and at those they block. */
function lookAgain(sqlite: Database, blocked: Set<string>, touched: readonly string[]): void {
  const dependants = sqlite.query<Id, [string]>(
    `select edge.ticket_id id from json_each(?) as asked cross join ticket_blockers as edge on edge.blocker_id = asked.value`,
  );
  const ids = [...touched, ...dependants.all(JSON.stringify(touched)).map(({ id }) => id)];
  for (const id of ids) blocked.delete(id);
  const still = sqlite.query<Id, [string]>(
    `select ticket.id from json_each(?) as asked cross join tickets as ticket on ticket.id = asked.value
      where +ticket.state = 'ready' and exists (select 1 from ticket_blockers as edge
        join tickets as blocker on blocker.id = edge.blocker_id where edge.ticket_id = ticket.id and blocker.state <> 'merged')`,
  );
  for (const { id } of still.all(JSON.stringify(ids))) blocked.add(id);
}

function countBlocked(store: Watched): number {
  const { sqlite } = store;
  const known = remembered.get(sqlite);
  const touched = known === undefined ? null : touchedSince(store, known.asOf);
  if (known !== undefined && touched !== null) {
    if (touched.length > 0) lookAgain(sqlite, known.blocked, touched);
    return known.blocked.size;
  }
  const asOf = openMoment(store);
  const blocked = readBlocked(sqlite);
  if (asOf !== null) remembered.set(sqlite, { blocked, asOf });
  return blocked.size;
}

/** Tickets per display state, every state present; a blocked ticket is not counted as ready. */
export function countTickets(store: Watched): Record<DisplayState, number> {
  const counts = { ready: 0, held: 0, blocked: 0, claimed: 0, merged: 0, failed: 0, needs_review: 0 };
  const stored = store.sqlite.query<{ state: TicketState; n: number }, []>(
    "select state, count(*) n from tickets group by state",
  );
  for (const { state, n } of stored.all()) counts[state] = n;
  if (counts.ready === 0) return counts;
  counts.blocked = countBlocked(store);
  counts.ready -= counts.blocked;
  return counts;
}

// Which tickets have changed since somebody last looked, so that what is known of thousands need not be read anew after every
// change. Temporary triggers of this connection note it, in memory; other programs' changes are told by the file's version.

import type { Database } from "bun:sqlite";
import type { Store } from "./open.ts";

export type Watched = Pick<Store, "sqlite" | "foreignVersion">;

/** A moment: a row of the notes, how often they were begun anew before it, and the version of the file. */
export type Moment = { row: number; round: number; foreign: number };

/** Beyond this many changes, reading everything is cheaper. */
const changeLimit = 500;
/** Notes after which they are begun anew. */
const noteLimit = 50_000;

const on = (name: string, event: string, ids: string) =>
  `create temp trigger if not exists touched_${name} after ${event} begin insert into touched values ${ids}; end`;
const changed = ["id", "state", "name", "created_at_ms"].map((name) => `old.${name} is not new.${name}`).join(" or ");

const notes = [
  "create temp table if not exists touched (id text not null)",
  on("added", "insert on main.tickets", "(new.id)"),
  on("moved", `update on main.tickets when ${changed}`, "(old.id), (new.id)"),
  on("gone", "delete on main.tickets", "(old.id)"),
  on("edge_added", "insert on main.ticket_blockers", "(new.ticket_id)"),
  on("edge_moved", "update on main.ticket_blockers", "(old.ticket_id), (new.ticket_id)"),
  on("edge_gone", "delete on main.ticket_blockers", "(old.ticket_id)"),
];

/** How often the notes of a connection were begun anew; absent before it takes any. */
const rounds = new WeakMap<Database, number>();

/**
 * This moment, to be looked back to later; read what is to be remembered right after it. Null inside a transaction, which may
 * still be rolled back: nothing read there may be remembered.
 */
export function openMoment({ sqlite, foreignVersion }: Watched): Moment | null {
  if (sqlite.inTransaction) return null;
  let round = rounds.get(sqlite);
  if (round === undefined) {
    for (const note of notes) sqlite.run(note);
    round = 0;
  }
  if (lastNote(sqlite) > noteLimit) {
    sqlite.run("delete from temp.touched");
    round += 1;
  }
  rounds.set(sqlite, round);
  return { row: lastNote(sqlite), round, foreign: foreignVersion() };
}

function lastNote(sqlite: Database): number {
  return sqlite.query<{ n: number }, []>("select coalesce(max(rowid), 0) n from temp.touched").get()?.n ?? 0;
}

/**
 * Tickets that came, went, changed their state or name, or got other blockers since `then`, each once; `then` becomes now.
 * Null when that cannot be told, or are too many to be worth it: everything has to be read anew.
 */
export function touchedSince({ sqlite, foreignVersion }: Watched, then: Moment): string[] | null {
  if (sqlite.inTransaction || then.foreign !== foreignVersion() || then.round !== rounds.get(sqlite)) return null;
  const last = lastNote(sqlite);
  if (last - then.row > changeLimit) return null;
  if (last === then.row) return [];
  const rows = sqlite
    .query<{ id: string }, [number]>("select distinct id from temp.touched where rowid > ?")
    .all(then.row);
  then.row = last;
  return rows.map(({ id }) => id);
}

// Every ticket's id and name, remembered for whoever looks for a text in them; after a change only what it touched is read.

import type { Database } from "bun:sqlite";
import type { Registered } from "../core/recency.ts";
import { type Moment, openMoment, touchedSince, type Watched } from "./touched.ts";

type Named = { name: string; createdAtMs: number };
type Known = { names: Map<string, Named>; asOf: Moment };

const remembered = new WeakMap<Database, Known>();

// Thousands of rows as plain arrays cost a third of what objects cost.
type Row = [id: string, name: string, createdAtMs: number];

function put(names: Map<string, Named>, rows: readonly unknown[][]): void {
  for (const [id, name, createdAtMs] of rows as Row[]) names.set(id, { name, createdAtMs });
}

function readNames(sqlite: Database): Map<string, Named> {
  const names = new Map<string, Named>();
  put(names, sqlite.query("select id, name, created_at_ms from tickets").values());
  return names;
}

function lookAgain(sqlite: Database, names: Map<string, Named>, touched: readonly string[]): void {
  for (const id of touched) names.delete(id);
  const rows = sqlite.query<unknown, [string]>(
    `select ticket.id, ticket.name, ticket.created_at_ms from json_each(?) as asked
      cross join tickets as ticket on ticket.id = asked.value`,
  );
  put(names, rows.values(JSON.stringify(touched)));
}

function namesNow(store: Watched): Map<string, Named> {
  const { sqlite } = store;
  const known = remembered.get(sqlite);
  const touched = known === undefined ? null : touchedSince(store, known.asOf);
  if (known !== undefined && touched !== null) {
    if (touched.length > 0) lookAgain(sqlite, known.names, touched);
    return known.names;
  }
  const asOf = openMoment(store);
  const names = readNames(sqlite);
  if (asOf !== null) remembered.set(sqlite, { names, asOf });
  return names;
}

/** The tickets whose id or name `matches`, unordered. */
export function listMatching(store: Watched, matches: (text: string) => boolean): Registered[] {
  const found: Registered[] = [];
  for (const [id, { name, createdAtMs }] of namesNow(store)) {
    if (matches(id) || matches(name)) found.push({ id, createdAtMs });
  }
  return found;
}

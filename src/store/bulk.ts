// Thousands of rows at once: prepared statements over whole columns, where building each query anew would cost more than running it.

import type { Database } from "bun:sqlite";
import { getTableColumns } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { getTableName } from "drizzle-orm/table";

type Value = string | number | null;

function namesOf<T extends SQLiteTable>(table: T, keys: readonly (keyof T["$inferSelect"] & string)[]): string[] {
  const columns = getTableColumns(table);
  return keys.map((key) => `"${columns[key]?.name}"`);
}

/** Reads the given columns of every row, sorted by the first. */
export function readColumns<T extends SQLiteTable, K extends keyof T["$inferSelect"] & string>(
  sqlite: Database,
  table: T,
  keys: readonly K[],
): Pick<T["$inferSelect"], K>[] {
  const names = namesOf(table, keys);
  const columns = keys.map((key, index) => `${names[index]} as "${key}"`);
  const text = `select ${columns.join(", ")} from "${getTableName(table)}" order by ${names[0]}`;
  return sqlite.query<Pick<T["$inferSelect"], K>, []>(text).all();
}

/** A function that inserts one row, its values in the order of `keys`. */
export function prepareInsert<T extends SQLiteTable>(
  sqlite: Database,
  table: T,
  keys: readonly (keyof T["$inferSelect"] & string)[],
): (values: readonly Value[]) => void {
  const names = namesOf(table, keys);
  const marks = keys.map(() => "?").join(", ");
  const insert = sqlite.query(`insert into "${getTableName(table)}" (${names.join(", ")}) values (${marks})`);
  return (values) => void insert.run(...values);
}

/** A function that writes the given columns of the row whose `id` is the last value. */
export function prepareUpdate<T extends SQLiteTable>(
  sqlite: Database,
  table: T,
  keys: readonly (keyof T["$inferSelect"] & string)[],
): (values: readonly Value[]) => void {
  const settings = namesOf(table, keys).map((name) => `${name} = ?`);
  const update = sqlite.query(`update "${getTableName(table)}" set ${settings.join(", ")} where "id" = ?`);
  return (values) => void update.run(...values);
}

// Brings a state database up to date: numbered SQL, `PRAGMA user_version` as the counter, a copy before an upgrade.

import type { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import m0 from "../../migrations/0000_init.sql" with { type: "text" };
import m1 from "../../migrations/0001_recency_by_number.sql" with { type: "text" };
import { SloopError } from "../core/errors.ts";

/** In order of application; a test keeps this list equal to the folder. */
export const migrations: readonly string[] = [m0, m1];

function schemaVersion(sqlite: Database): number {
  return sqlite.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;
}

function apply(sqlite: Database, from: number, now: number, steps: readonly string[]): void {
  sqlite.run("BEGIN IMMEDIATE");
  try {
    // Another process may have been first between the look and the lock.
    if (schemaVersion(sqlite) !== from) {
      sqlite.run("ROLLBACK");
      return;
    }
    for (const sql of steps.slice(from)) {
      for (const statement of sql.split("--> statement-breakpoint")) sqlite.run(statement);
    }
    sqlite
      .query("INSERT OR IGNORE INTO scheduler_state (singleton, paused, draining, updated_at_ms) VALUES (1, 0, 0, ?)")
      .run(now);
    const broken = sqlite.query("PRAGMA foreign_key_check").all();
    if (broken.length > 0) throw new SloopError("internal", `migration left ${broken.length} dangling reference(s)`);
    sqlite.run(`PRAGMA user_version=${steps.length}`);
    sqlite.run("COMMIT");
  } catch (error) {
    if (sqlite.inTransaction) sqlite.run("ROLLBACK");
    throw error;
  }
}

/** Copies the file as it is, so that the program of before can be gone back to; replaces an older copy. */
function backUp(sqlite: Database, path: string, version: number): void {
  const copy = backupPath(path, version);
  rmSync(copy, { force: true });
  sqlite.query("VACUUM INTO ?").run(copy);
}

/**
 * Applies what is missing in one immediate transaction, after a copy of what is there. `now` (epoch ms) stamps the first
 * rows, `steps` are all migrations there are. Throws SloopError when the file is newer than this program.
 */
export function migrate(sqlite: Database, path: string, now: number, steps: readonly string[] = migrations): void {
  const version = schemaVersion(sqlite);
  if (version > steps.length) {
    throw new SloopError("internal", `${path}: unsupported database schema version ${version}`, {
      hint: "a newer sloop wrote this file; install that version or a later one",
    });
  }
  if (version === steps.length) return;
  if (version > 0) backUp(sqlite, path, version);
  // Inside a transaction this pragma does nothing, and a table rebuild would drop the rows that refer to it.
  sqlite.run("PRAGMA foreign_keys=OFF");
  try {
    apply(sqlite, version, now, steps);
  } finally {
    sqlite.run("PRAGMA foreign_keys=ON");
  }
}

/** Where the copy made before an upgrade from `version` lies. */
export function backupPath(path: string, version: number): string {
  return `${path}.bak-${version}`;
}

// The state database as a file: made whole, upgraded with a copy, refused when it is newer (engine.md 3.1).

import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { is } from "drizzle-orm/entity";
import { getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import { backupPath, migrate, migrations } from "../../src/store/migrate.ts";
import { openStore } from "../../src/store/open.ts";
import * as tables from "../../src/store/tables.ts";
import { projectRoot } from "../support/bin.ts";

function scratch(): Disposable & { path: string } {
  const dir = mkdtempSync(join(tmpdir(), "sloop-store-"));
  return { path: join(dir, "sloop.db"), [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}

describe("a fresh database", () => {
  test("the list of migrations is the folder's", () => {
    const folder = join(projectRoot, "migrations");
    const files = readdirSync(folder).filter((name) => name.endsWith(".sql"));
    expect(migrations).toEqual(files.sort().map((name) => readFileSync(join(folder, name), "utf8")));
  });

  test("its schema is that of tables.ts, names and nullability", () => {
    using at = scratch();
    const store = openStore(at.path, 1);
    const found = store.sqlite
      .query<{ name: string }, []>("select name from sqlite_master where type='table' and name not like 'sqlite_%'")
      .all()
      .map((row) => row.name);
    const defined = Object.values(tables).filter((value) => is(value, SQLiteTable));
    expect(found.sort()).toEqual(defined.map((table) => getTableConfig(table).name).sort());
    for (const table of defined) {
      const { name, columns } = getTableConfig(table);
      const actual = store.sqlite
        .query<{ name: string; notnull: number }, [string]>("select name, [notnull] from pragma_table_info(?)")
        .all(name);
      const shape = (rows: { name: string; notNull: boolean }[]) =>
        rows.sort((a, b) => (a.name < b.name ? -1 : 1)).map((row) => `${row.name} ${row.notNull}`);
      expect(shape(actual.map((row) => ({ name: row.name, notNull: row.notnull === 1 })))).toEqual(
        shape(columns.map((column) => ({ name: column.name, notNull: column.notNull || column.primary }))),
      );
    }
    store.close();
  });

  test("pragmas, private mode, the scheduler's row with a journal id of 64 bits", () => {
    using at = scratch();
    const store = openStore(at.path, 7);
    const pragma = (name: string) => Object.values(store.sqlite.query(`PRAGMA ${name}`).get() as object)[0] as unknown;
    expect(pragma("journal_mode")).toBe("wal");
    expect(pragma("foreign_keys")).toBe(1);
    expect(pragma("synchronous")).toBe(1);
    expect(pragma("user_version")).toBe(migrations.length);
    expect(statSync(at.path).mode & 0o777).toBe(0o600);
    const row = store.sqlite.query("select * from scheduler_state").get() as Record<string, unknown>;
    expect(row).toMatchObject({ singleton: 1, paused: 0, draining: 0, updated_at_ms: 7 });
    expect(row["journal_id"]).toMatch(/^[0-9a-f]{16}$/);
    store.close();
  });
});

describe("an upgrade", () => {
  const more = [...migrations, "ALTER TABLE notes ADD COLUMN extra text"];

  test("copies the file first and keeps every row", () => {
    using at = scratch();
    openStore(at.path, 1).close();
    const old = new Database(at.path, { strict: true });
    old.run("insert into events (occurred_at_ms, kind) values (5, 'kept')");
    migrate(old, at.path, 2, more);
    expect(old.query("select kind from events").all()).toEqual([{ kind: "kept" }]);
    expect(old.query("PRAGMA user_version").get()).toEqual({ user_version: migrations.length + 1 });
    const copy = new Database(backupPath(at.path, migrations.length), { readonly: true });
    expect(copy.query("PRAGMA user_version").get()).toEqual({ user_version: migrations.length });
    expect(copy.query("select kind from events").all()).toEqual([{ kind: "kept" }]);
    copy.close();
    old.close();
  });

  test("that fails leaves the file as it was", () => {
    using at = scratch();
    openStore(at.path, 1).close();
    const old = new Database(at.path, { strict: true });
    expect(() => migrate(old, at.path, 2, [...more, "CREATE TABLE broken ("])).toThrow();
    expect(old.query("PRAGMA user_version").get()).toEqual({ user_version: migrations.length });
    expect(old.query("select count(*) as n from pragma_table_info('notes') where name='extra'").get()).toEqual({
      n: 0,
    });
    old.close();
  });

  test("a newer file is refused and not touched", () => {
    using at = scratch();
    openStore(at.path, 1).close();
    const newer = new Database(at.path);
    newer.run("PRAGMA user_version=99");
    newer.close();
    expect(() => openStore(at.path, 1)).toThrow("unsupported database schema version 99");
  });
});

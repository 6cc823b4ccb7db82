// Opens the state database: pragmas on every connection, missing migrations applied, one way to write.

import { Database } from "bun:sqlite";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { migrate } from "./migrate.ts";
import * as tables from "./tables.ts";

export type Db = BunSQLiteDatabase<typeof tables>;
/** A transaction handle, or the database itself: what every query takes. */
export type Queries = Pick<Db, "select" | "selectDistinct" | "insert" | "update" | "delete" | "run" | "all" | "get">;

/** A value that is no promise: a transaction's body must not await (bun-notes (b)). */
type NotPromise<T> = T extends PromiseLike<unknown> ? never : T;

export type Store = {
  readonly db: Db;
  readonly sqlite: Database;
  /** One immediate, synchronous transaction. Throwing rolls all of it back. Effects run after it returned. */
  write<T>(body: (tx: Queries) => NotPromise<T>): T;
  /** Differs whenever anybody may have changed the file; other programs' changes are looked for once per turn. */
  version(): string;
  /** Differs whenever another program has changed the file; looked for once per turn. */
  foreignVersion(): number;
  close(): void;
};

/** Whether an error of a store call says that the disk is full. */
export function storageFull(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "SQLITE_FULL" || code === "SQLITE_IOERR_WRITE";
}

function applyPragmas(sqlite: Database): void {
  sqlite.run("PRAGMA busy_timeout=30000");
  sqlite.run("PRAGMA journal_mode=WAL");
  sqlite.run("PRAGMA synchronous=NORMAL");
  sqlite.run("PRAGMA foreign_keys=ON");
  // What is only noted for ourselves (touched.ts) makes no file.
  sqlite.run("PRAGMA temp_store=MEMORY");
  // KiB of pages at most, taken as they are needed: with SQLite's 2 MiB thousands of tickets are read from the file again and again.
  sqlite.run("PRAGMA cache_size=-8192");
}

function createPrivately(path: string): Database {
  const umask = process.umask(0o077);
  try {
    const sqlite = new Database(path, { create: true, readwrite: true, strict: true });
    applyPragmas(sqlite);
    return sqlite;
  } finally {
    process.umask(umask);
  }
}

/** How many different statements stay compiled; all that the daemon knows are fewer. */
const statementsKept = 512;

/** Drizzle prepares a statement for every call, and SQLite's compiling costs more than most of our queries: kept by their text. */
function compileOnce(sqlite: Database): void {
  Database.MAX_QUERY_CACHE_SIZE = statementsKept;
  sqlite.prepare = (text: string) => sqlite.query(text);
}

/**
 * Opens `path`, creating and upgrading it as needed. `now` (epoch ms) stamps the row a new file starts with.
 * Throws SloopError when the file is newer than this program knows.
 */
export function openStore(path: string, now: number): Store {
  const sqlite = createPrivately(path);
  try {
    migrate(sqlite, path, now);
  } catch (error) {
    sqlite.close();
    throw error;
  }
  compileOnce(sqlite);
  const db = drizzle(sqlite, { schema: tables });
  const dataVersion = sqlite.query<{ data_version: number }, []>("PRAGMA data_version");
  const changes = sqlite.query<{ n: number }, []>("SELECT total_changes() AS n");
  // Asking takes the file's locks, which costs more than everything else about a short request: once per turn is enough,
  // because what was asked for in this turn was sent before it began.
  let seen: number | null = null;
  const foreign = (): number => {
    if (seen === null) {
      seen = dataVersion.get()?.data_version ?? 0;
      queueMicrotask(() => {
        seen = null;
      });
    }
    return seen;
  };
  return {
    db,
    sqlite,
    write: (body) => db.transaction((tx) => body(tx), { behavior: "immediate" }),
    version: () => `${foreign()}.${changes.get()?.n}`,
    foreignVersion: foreign,
    close() {
      sqlite.clearQueryCache();
      sqlite.close();
    },
  };
}

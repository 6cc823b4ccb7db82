// One daemon per state directory: a lock that dies with its process, and a line that says who holds it.

import { Database } from "bun:sqlite";
import { readIfPresent, systemCode, writeAtomic } from "./files.ts";

export type LockOptions = {
  /** How long to wait for a predecessor, and how often to look; milliseconds. */
  graceMs: number;
  pollMs: number;
};

/** Nobody else may open and close the lock's file in this process: that would drop the lock (POSIX record locks). */
function tryLock(databasePath: string): Database | null {
  const database = new Database(databasePath, { create: true, readwrite: true });
  try {
    database.run("PRAGMA busy_timeout = 0");
    database.run("BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    const code = systemCode(error);
    if (code?.startsWith("SQLITE_BUSY") || code?.startsWith("SQLITE_LOCKED")) return null;
    throw error;
  }
}

/** Takes the lock, or null when somebody else held it all through the grace. Throws when the file cannot be a lock at all. */
export async function openLock(databasePath: string, options: LockOptions): Promise<{ close(): void } | null> {
  const until = performance.now() + options.graceMs;
  for (;;) {
    const database = tryLock(databasePath);
    if (database !== null) return { close: () => database.close() };
    if (performance.now() >= until) return null;
    await Bun.sleep(options.pollMs);
  }
}

/** Who holds the lock. `started_at_ms` is a start token as of `processStart`, not a time. */
export type DaemonIdentity = { pid: number; started_at_ms: number | null; socket: string };

/** Writes the identity line in one step. Throws the system's error. */
export function writeIdentity(lockFile: string, identity: DaemonIdentity): void {
  const { pid, started_at_ms, socket } = identity;
  writeAtomic(lockFile, `${JSON.stringify({ pid, started_at_ms, socket })}\n`);
}

function isIdentity(value: unknown): value is DaemonIdentity {
  if (typeof value !== "object" || value === null) return false;
  const { pid, started_at_ms, socket } = value as Record<string, unknown>;
  const startRight = started_at_ms === null || Number.isSafeInteger(started_at_ms);
  return Number.isSafeInteger(pid) && Number(pid) > 0 && startRight && typeof socket === "string";
}

/** The identity line, or null when there is none or it is damaged. */
export function readIdentity(lockFile: string): DaemonIdentity | null {
  const bytes = readIfPresent(lockFile);
  if (bytes === null) return null;
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (!isIdentity(value)) return null;
    return { pid: value.pid, started_at_ms: value.started_at_ms, socket: value.socket };
  } catch {
    return null;
  }
}

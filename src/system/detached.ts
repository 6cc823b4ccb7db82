// Starts the daemon so that it belongs to nobody: own session, no terminal, its errors in a file; and runs short commands.

import { fstatSync, mkdirSync, openSync, readSync } from "node:fs";
import { dirname } from "node:path";
import type { Environment } from "./environment.ts";

export type DetachedOptions = { cwd: string; env: Environment; stderrPath: string };

export type Detached = {
  pid: number;
  /** Null while it lives; 1 when a signal ended it. */
  exitCode(): number | null;
  /** The last line it wrote to its error file since it was started, or null. */
  lastErrorLine(): string | null;
};

const tailBytes = 8192;

function openErrorFile(path: string): number | null {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    return openSync(path, "a+");
  } catch {
    return null;
  }
}

function lastLine(descriptor: number, from: number): string | null {
  const size = fstatSync(descriptor).size;
  const start = Math.max(from, size - tailBytes);
  const bytes = Buffer.alloc(Math.max(0, size - start));
  readSync(descriptor, bytes, 0, bytes.length, start);
  const lines = bytes.toString().split("\n");
  return lines.findLast((line) => line.trim() !== "")?.trim() ?? null;
}

/**
 * Starts `argv` as leader of a session and process group of its own, input and output nowhere, errors appended to
 * `stderrPath` (nowhere when that cannot be opened). Our exit does not wait for it. Throws the system's error when it cannot start.
 */
export function startDetached(argv: readonly string[], options: DetachedOptions): Detached {
  const errors = openErrorFile(options.stderrPath);
  const from = errors === null ? 0 : fstatSync(errors).size;
  const child = Bun.spawn([...argv], {
    cwd: options.cwd,
    env: options.env,
    stdin: "ignore",
    stdout: "ignore",
    stderr: errors ?? "ignore",
    detached: true,
  });
  child.unref();
  return {
    pid: child.pid,
    exitCode: () => (child.signalCode === null ? child.exitCode : 1),
    lastErrorLine: () => (errors === null ? null : lastLine(errors, from)),
  };
}

/** Runs a short command to its end. Throws the system's error when it cannot start. */
export function runCommand(
  argv: readonly string[],
  options: { cwd: string; env: Environment },
): { exitCode: number; stdout: string; stderr: string } {
  const done = Bun.spawnSync([...argv], { ...options, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  return { exitCode: done.exitCode ?? 1, stdout: done.stdout.toString(), stderr: done.stderr.toString() };
}

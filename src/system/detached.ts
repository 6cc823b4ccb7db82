// Starts the daemon so that it belongs to nobody: own session, no terminal, its errors in a file; and runs short commands.

import { fstatSync, mkdirSync, openSync, readSync } from "node:fs";
import { dirname } from "node:path";
import type { Environment } from "./environment.ts";
import { signalGroup } from "./process.ts";

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

/** How long a short command may take, in milliseconds. */
export const answerMs = 10_000;

export type Answer = {
  exitCode: number;
  stdout: string;
  stderr: string;
  /** False when it took too long and was ended. */
  answered: boolean;
};

const noAnswer: Answer = { exitCode: 1, stdout: "", stderr: `no answer within ${answerMs / 1000} s`, answered: false };

/**
 * Runs a short command in a group of its own; after `answerMs` all of the group is killed. Throws the system's error when it
 * cannot start.
 */
export function runCommand(argv: readonly string[], options: { cwd: string; env: Environment }): Answer {
  const done = Bun.spawnSync([...argv], {
    ...options,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
    timeout: answerMs,
    killSignal: "SIGKILL",
  });
  if (done.exitedDueToTimeout !== true) {
    const { exitCode, stdout, stderr } = done;
    return { exitCode: exitCode ?? 1, stdout: stdout.toString(), stderr: stderr.toString(), answered: true };
  }
  // Only the command itself is gone by now: what it started is not.
  signalGroup(done.pid, "SIGKILL");
  return noAnswer;
}

const endings = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Whoever ends us ends the group too, which a terminal's Ctrl-C does not reach. Gives what takes that back. */
function endWithUs(group: { id: number | null }): () => void {
  const end = (signal: NodeJS.Signals) => {
    if (group.id !== null) signalGroup(group.id, "SIGKILL");
    forget();
    process.kill(process.pid, signal);
  };
  const forget = () => {
    for (const signal of endings) process.off(signal, end);
  };
  for (const signal of endings) process.on(signal, end);
  return forget;
}

/** As `runCommand`, while we stay open to signals: one that ends us ends the command's group. Rejects when it cannot start. */
export async function askCommand(argv: readonly string[], options: { cwd: string; env: Environment }): Promise<Answer> {
  const group: { id: number | null } = { id: null };
  const late = Promise.withResolvers<null>();
  const timer = setTimeout(() => late.resolve(null), answerMs);
  // Before it starts: no signal may come in between.
  const forget = endWithUs(group);
  try {
    const child = Bun.spawn([...argv], { ...options, stdin: "ignore", stdout: "pipe", stderr: "pipe", detached: true });
    group.id = child.pid;
    const all = Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
    const done = await Promise.race([all, late.promise]);
    if (done === null) {
      signalGroup(child.pid, "SIGKILL");
      await child.exited;
      return noAnswer;
    }
    const [exitCode, stdout, stderr] = done;
    return { exitCode, stdout, stderr, answered: true };
  } finally {
    clearTimeout(timer);
    forget();
  }
}

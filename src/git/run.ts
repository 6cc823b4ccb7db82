// Running git for ourselves, as engine.md 11.9 wants it: our environment, no questions, nothing of a hook's repository.

import { closeSync, fstatSync, openSync, readSync, rmSync } from "node:fs";
import { join } from "node:path";
import { childEnvironment } from "../system/environment.ts";
import { gateArgv, gateLine } from "../system/gate.ts";
import { processStart, signalGroup, stopGroup } from "../system/process.ts";
import { makeScratch } from "./scratch.ts";

export type GitOptions = {
  cwd: string;
  input?: string | Uint8Array;
  env?: Readonly<Record<string, string>>;
  /** Whether this git may change something; a read takes no optional locks. */
  write?: boolean;
  /** After this long git and all it started are ended. Without it, after 10 minutes if it only reads; a checkout may take longer. */
  timeoutMs?: number;
  /** Whether it is ended with the daemon, because what an agent set up may keep it busy; by default if it only reads. */
  passing?: boolean;
};

/** `code` is null when git was ended by a signal, or could not be started (`stderr` then says why). */
export type GitResult = { code: number | null; stdout: string; stderr: string };

/** Commits that sloop makes are sloop's, whoever runs the daemon. */
export const sloopIdentity: readonly string[] = ["-c", "user.name=sloop", "-c", "user.email=sloop@sloop.invalid"];

/** What the identity options do not cover: variables that would win over them. */
export const sloopIdentityVariables: Readonly<Record<string, string>> = {
  GIT_AUTHOR_NAME: "sloop",
  GIT_AUTHOR_EMAIL: "sloop@sloop.invalid",
  GIT_COMMITTER_NAME: "sloop",
  GIT_COMMITTER_EMAIL: "sloop@sloop.invalid",
};

const graceMs = 2000;

/** What runs hooks or filters of the repository may hang in them: after this long it is ended. */
export const longestGitMs: number = 10 * 60_000;

/** The environment of a git that the daemon runs itself. */
export function gitEnvironment(write: boolean, extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  const add = { LC_ALL: "C", GIT_TERMINAL_PROMPT: "0", ...(write ? {} : { GIT_OPTIONAL_LOCKS: "0" }), ...extra };
  return childEnvironment(process.env, { add });
}

function startFailure(error: unknown): GitResult {
  return { code: null, stdout: "", stderr: `git cannot be started: ${error instanceof Error ? error.message : error}` };
}

const passing = new Set<number>();

/** Ends every git that only looks, with all it started: nobody waits for it any more. A write is let come to its end. */
export function endPassingGit(): void {
  for (const pid of passing) signalGroup(pid, "SIGKILL");
}

/** Runs git to its end. Never rejects: a git that fails or cannot be started is a result. */
export async function git(args: readonly string[], options: GitOptions): Promise<GitResult> {
  const write = options.write ?? false;
  try {
    const child = Bun.spawn(["git", ...args], {
      cwd: options.cwd,
      env: gitEnvironment(write, options.env),
      stdin: options.input === undefined ? "ignore" : Buffer.from(options.input),
      stdout: "pipe",
      stderr: "pipe",
      detached: true,
    });
    if (options.passing ?? !write) passing.add(child.pid);
    const limitMs = options.timeoutMs ?? (write ? undefined : longestGitMs);
    const timer = limitMs === undefined ? undefined : setTimeout(() => void stopGroup(child.pid, graceMs), limitMs);
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    clearTimeout(timer);
    passing.delete(child.pid);
    return { code: child.exitCode, stdout, stderr };
  } catch (error) {
    return startFailure(error);
  }
}

/** The same for a short read, while everything else waits; only for what no file tells. */
export function gitNow(args: readonly string[], cwd: string): GitResult {
  try {
    const child = Bun.spawnSync(["git", ...args], { cwd, env: gitEnvironment(false), stdin: "ignore", stderr: "pipe" });
    return { code: child.exitCode, stdout: child.stdout.toString(), stderr: child.stderr.toString() };
  } catch (error) {
    return startFailure(error);
  }
}

/** The bytes that a short read prints; null when git fails. */
export async function gitBytes(args: readonly string[], cwd: string): Promise<Buffer | null> {
  try {
    const env = gitEnvironment(false);
    const child = Bun.spawn(["git", ...args], { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "ignore" });
    const [bytes, code] = await Promise.all([child.stdout.bytes(), child.exited]);
    return code === 0 ? Buffer.from(bytes) : null;
  } catch {
    return null;
  }
}

/** Git's own last line, for a reason shown to people; `otherwise` when it said nothing. */
export function lastLine(text: string, otherwise: string): string {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.findLast((line) => line !== "") ?? otherwise;
}

/** Splits what `-z` separates. */
export function splitNul(text: string): string[] {
  const parts = text.split("\0");
  if (parts.at(-1) === "") parts.pop();
  return parts;
}

/** A git that waits behind its gate; nothing has happened yet. */
export type GatedGit = {
  pid: number;
  /** Read before anybody could reap it; null when the system does not tell. */
  pidStartTime: number | null;
  /** Lets git run. Without it git never does: a gate that closes, our death included, ends the process with 125. */
  open(): void;
  /** Ends the group as engine.md 14.1 says; false when something is left. */
  stop(graceMs: number): Promise<boolean>;
  exited: Promise<{ code: number | null; signal: string | null; output: string }>;
};

const keptOutputBytes = 65_536;

/** What a process writes goes to a file without a name: it lives on when we die, and nobody is left to clean up. */
function scratchFile(checkout: string): number {
  const directory = makeScratch(checkout, "sloop-git-");
  try {
    return openSync(join(directory, "output"), "w+", 0o600);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function readEnd(descriptor: number): string {
  const { size } = fstatSync(descriptor);
  const bytes = Buffer.alloc(Math.min(size, keptOutputBytes));
  readSync(descriptor, bytes, 0, bytes.length, size - bytes.length);
  return bytes.toString();
}

/** Starts a git command (argv from `git` on) behind a start gate, as leader of its own group. Throws when it cannot be started. */
export function startGatedGit(argv: readonly string[], cwd: string): GatedGit {
  const output = scratchFile(cwd);
  const start = () =>
    Bun.spawn(gateArgv("sloop-merge", argv), {
      cwd,
      env: gitEnvironment(true, sloopIdentityVariables),
      stdin: "pipe",
      stdout: output,
      stderr: output,
      detached: true,
    });
  let child: ReturnType<typeof start>;
  try {
    child = start();
  } catch (error) {
    closeSync(output);
    throw error;
  }
  const exited = child.exited.then(() => {
    const text = readEnd(output);
    closeSync(output);
    return { code: child.exitCode, signal: child.signalCode?.toString() ?? null, output: text };
  });
  return {
    pid: child.pid,
    pidStartTime: processStart(child.pid),
    open() {
      void child.stdin.write(gateLine);
      void child.stdin.end();
    },
    stop: (graceMs) => stopGroup(child.pid, graceMs),
    exited,
  };
}

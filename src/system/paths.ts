// Where things live: a repository's key, its state, its sockets (cli.md 9). Pure.

import { basename, isAbsolute, join } from "node:path";
import { contentHash } from "../core/hash.ts";

/** The operating system leaves no place for something; the message names it. */
export class PathError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "PathError";
  }
}

/** The longest socket path in bytes: 104 on macOS with the final NUL, 108 on Linux; one budget for both. */
export const socketPathLimit = 103;

export type RepositoryPaths = {
  root: string;
  hash: string;
  key: string;
  stateDir: string;
  /** The parent of `runtimeDir`; like it, to be made with mode 0700. */
  runtimeBase: string;
  runtimeDir: string;
  operatorSocket: string;
  database: string;
  lockFile: string;
  lockDatabase: string;
  logDir: string;
  logFile: string;
  stderrLog: string;
  runsDir: string;
  /** The runtime directory for sockets whose path would be too long in `runtimeDir`; often the same. */
  shortRuntimeDir: string;
};

export type PathsInput = {
  /** Canonical, absolute, no trailing slash. */
  root: string;
  env: Readonly<Record<string, string | undefined>>;
  /** The effective user id. */
  uid: number;
  platform: NodeJS.Platform;
};

function absolute(value: string | undefined): string | null {
  return value !== undefined && isAbsolute(value) ? value : null;
}

function safeName(root: string): string {
  const first = Array.from(basename(root)).slice(0, 32).join("");
  const name = first.replace(/[^A-Za-z0-9_]+/g, "-").replace(/^-|-$/g, "");
  return name === "" ? "repository" : name;
}

function homeOf(env: PathsInput["env"]): string {
  const home = absolute(env["HOME"]);
  if (home === null)
    throw new PathError("no place for sloop's state: neither XDG_STATE_HOME nor HOME is an absolute path");
  return home;
}

function stateBase(input: PathsInput): string {
  const stated = absolute(input.env["XDG_STATE_HOME"]);
  if (stated !== null) return join(stated, "sloop/repositories");
  const below = input.platform === "darwin" ? "Library/Application Support" : ".local/state";
  return join(homeOf(input.env), below, "sloop/repositories");
}

function logDirectory(input: PathsInput, stateDir: string, key: string): string {
  const mac = input.platform === "darwin" && absolute(input.env["XDG_STATE_HOME"]) === null;
  return mac ? join(homeOf(input.env), "Library/Logs/sloop", key) : join(stateDir, "logs");
}

function runtimeBaseOf(input: PathsInput): string {
  const runtime = absolute(input.env["XDG_RUNTIME_DIR"]);
  if (runtime !== null) return join(runtime, "sloop");
  const temporary = absolute(input.env["TMPDIR"]) ?? "/tmp";
  return join(temporary, input.platform === "darwin" ? "sloop" : `sloop-${input.uid}`);
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= socketPathLimit;
}

/** Everything that has a fixed place for one repository. Throws PathError when there is no state base or a socket path is too long. */
export function repositoryPaths(input: PathsInput): RepositoryPaths {
  const hash = contentHash(Buffer.from(input.root));
  const key = `${safeName(input.root)}-${hash}`;
  const stateDir = join(stateBase(input), key);
  const logDir = logDirectory(input, stateDir, key);
  const shortRuntimeBase = `/tmp/sloop-${input.uid}`;
  const shortRuntimeDir = join(shortRuntimeBase, hash);
  const usual = runtimeBaseOf(input);
  const runtimeBase = fits(join(usual, hash, "operator.sock")) ? usual : shortRuntimeBase;
  const runtimeDir = join(runtimeBase, hash);
  return {
    root: input.root,
    hash,
    key,
    stateDir,
    runtimeBase,
    runtimeDir,
    operatorSocket: socketIn([runtimeDir], "operator.sock"),
    database: join(stateDir, "sloop.db"),
    lockFile: join(stateDir, "daemon.lock"),
    lockDatabase: join(stateDir, "daemon.lock.db"),
    logDir,
    logFile: join(logDir, "daemon.ndjson"),
    stderrLog: join(logDir, "daemon.stderr.log"),
    runsDir: join(stateDir, "runs"),
    shortRuntimeDir,
  };
}

function socketIn(directories: string[], name: string): string {
  const path = directories.map((at) => join(at, name)).find(fits);
  if (path !== undefined) return path;
  const longest = join(directories.at(-1) ?? "", name);
  throw new PathError(
    `socket path is too long (${Buffer.byteLength(longest)} bytes, ${socketPathLimit} at most): ${longest}`,
  );
}

function shortName(runId: string): string {
  return runId.slice(0, 8);
}

/** The worker socket of a run: `w<short run id>.sock`. Throws PathError when no place is short enough. */
export function workerSocket(paths: RepositoryPaths, runId: string): string {
  return socketIn([paths.runtimeDir, paths.shortRuntimeDir], `w${shortName(runId)}.sock`);
}

/** The channel of one execution's supervisor; `execution` is the stem of its exit record. Throws PathError as `workerSocket` does. */
export function channelSocket(paths: RepositoryPaths, runId: string, execution: string): string {
  const tail = contentHash(Buffer.from(`${runId} ${execution}`)).slice(0, 4);
  return socketIn([paths.runtimeDir, paths.shortRuntimeDir], `c${shortName(runId)}${tail}.sock`);
}

/** The directory of one run's output and records. */
export function runDirectory(paths: RepositoryPaths, runId: string): string {
  return join(paths.runsDir, runId);
}

/** The file of one run's captured output. */
export function outputLog(paths: RepositoryPaths, runId: string): string {
  return join(runDirectory(paths, runId), "output.ndjson");
}

// Finds the repository's daemon: its socket, the one its identity line names, or a daemon started now (cli.md 10.1, 10.2).

import { SloopError } from "../core/errors.ts";
import type { DaemonIdentity } from "../system/lock.ts";
import type { RepositoryPaths } from "../system/paths.ts";
import { type Exchange, exchange, type Timeouts } from "./exchange.ts";

/** How a daemon is started; called only when none answers. */
export type Starter = {
  /** argv of the program to be started. Refuses (throws) what a daemon would refuse; nothing has been created then. */
  prepare(): readonly string[] | Promise<readonly string[]>;
  env: Readonly<Record<string, string | undefined>>;
  /** Told the pid of what was started, before it is known whether it will serve. */
  onStart?(pid: number): void;
};

const pollMs = 20;
const startLimitMs = 5000;
const leavingLimitMs = 5000;

/** What a daemon's own environment must not inherit from a run it may have been started in (cli.md 7.3). */
const runVariables = [
  "SLOOP_SOCKET",
  "SLOOP_TOKEN",
  "SLOOP_RUN_ID",
  "SLOOP_TICKET_ID",
  "SLOOP_STAGE",
  "SLOOP_ATTEMPT",
] as const;

// The identity and the processes it names are looked at only when nobody answers, so their modules are loaded only then.

async function liveIdentity(paths: RepositoryPaths): Promise<DaemonIdentity | null> {
  const [{ readIdentity }, { identify, processAlive }] = await Promise.all([
    import("../system/lock.ts"),
    import("../system/process.ts"),
  ]);
  const identity = readIdentity(paths.lockFile);
  if (identity === null || !processAlive(identity.pid)) return null;
  return identify(identity.pid, identity.started_at_ms) === "matches" ? identity : null;
}

/** Asks whoever answers: the socket where it belongs, else the one a live daemon says it has. Starts nothing. */
export async function ask(
  paths: RepositoryPaths,
  line: string,
  timeouts: Timeouts,
  onSent?: () => void,
): Promise<Exchange> {
  const usual = await exchange(paths.operatorSocket, line, timeouts, onSent);
  if (usual.kind !== "absent") return usual;
  const identity = await liveIdentity(paths);
  if (identity === null || identity.socket === paths.operatorSocket) return usual;
  const named = await exchange(identity.socket, line, timeouts, onSent);
  return named.kind === "absent" ? usual : named;
}

/** Asks again every `pollMs` until somebody answers, `stop` says so, or `limitMs` is over; then the last failure. */
export async function askUntil(
  request: () => Promise<Exchange>,
  limitMs: number,
  stop: () => boolean | Promise<boolean>,
): Promise<Exchange> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const result = await request();
    if (result.kind !== "absent" || performance.now() >= deadline || (await stop())) return result;
    await Bun.sleep(pollMs);
  }
}

/**
 * A live process that names this very socket is about to exit or to replace itself: starting another could take its lock, and
 * to say that none is running would be wrong. Waits for up to 5 s for it to answer; null when it does not.
 */
export async function waitForLeaving(
  paths: RepositoryPaths,
  request: () => Promise<Exchange>,
): Promise<Exchange | null> {
  const leaving = async () => (await liveIdentity(paths))?.socket === paths.operatorSocket;
  if (!(await leaving())) return null;
  const result = await askUntil(request, leavingLimitMs, async () => !(await leaving()));
  return result.kind === "absent" ? null : result;
}

/**
 * Starts a daemon and asks it until it answers, for at most 5 s. Throws SloopError `daemon_unavailable` when the child could
 * not start or ended with an error, and what `prepare` throws.
 */
export async function startAndAsk(
  paths: RepositoryPaths,
  starter: Starter,
  request: () => Promise<Exchange>,
): Promise<Exchange> {
  const back = await waitForLeaving(paths, request);
  if (back !== null) return back;
  const child = await spawnDaemon(paths, starter, await starter.prepare());
  starter.onStart?.(child.pid);
  const failed = () => (child.exitCode() ?? 0) !== 0;
  const result = await askUntil(request, startLimitMs, failed);
  const hint = `see ${paths.stderrLog}`;
  if (result.kind === "absent" && failed()) {
    const why = child.lastErrorLine() ?? `it exited with ${child.exitCode()}`;
    throw new SloopError("daemon_unavailable", `the daemon did not start: ${why}`, { hint });
  }
  if (result.kind === "absent") {
    throw new SloopError("daemon_unavailable", `the daemon did not answer within 5 s: ${result.problem}`, { hint });
  }
  return result;
}

async function spawnDaemon(paths: RepositoryPaths, starter: Starter, argv: readonly string[]) {
  const [{ startDetached }, { childEnvironment }] = await Promise.all([
    import("../system/detached.ts"),
    import("../system/environment.ts"),
  ]);
  try {
    return startDetached([...argv, "daemon", "--foreground"], {
      cwd: paths.root,
      env: childEnvironment(starter.env, { remove: runVariables }),
      stderrPath: paths.stderrLog,
    });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new SloopError("daemon_unavailable", `cannot start ${argv[0]}: ${why}`);
  }
}

// The composition root of `daemon --foreground`: the daemon and its doors, until it is told to stop.

import { SloopError } from "../core/errors.ts";
import type { DaemonEnd } from "../daemon/context.ts";
import { openDaemon, type RunningDaemon } from "../daemon/daemon.ts";
import { type Ground, prepareGround } from "../daemon/startup.ts";
import { openLog } from "../system/log.ts";
import { replaceProcess, startedFrom } from "../system/replace.ts";
import { trimCode } from "../system/trim.ts";
import { openOperatorDoor } from "./operator.ts";
import { openWorkerDoor } from "./worker.ts";

export type ServeOptions = {
  /** Canonical repository root. */
  root: string;
  env: Readonly<Record<string, string | undefined>>;
  version: string;
  /** argv that starts this very program again; its first element is what a supervisor is started from. */
  self: readonly string[];
  /** Absolute path of the executable. */
  executable: string;
};

function open(ground: Ground, options: ServeOptions): RunningDaemon {
  try {
    return openDaemon(ground, { ...options, openOperatorDoor, openWorkerDoor });
  } catch (error) {
    ground.store.close();
    ground.lock.close();
    if (error instanceof SloopError) throw error;
    const text = error instanceof Error ? error.message : String(error);
    throw new SloopError("daemon_unavailable", `cannot serve ${ground.paths.operatorSocket}: ${text}`);
  }
}

function definedEnvironment(env: ServeOptions["env"]): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** Becomes the program now at `path`; returns only when that failed, and then the daemon serves on. */
function restart(ground: Ground, path: string, options: ServeOptions): void {
  const log = openLog(ground.paths.logFile);
  log.info("sloop::daemon", "restart_exec", { path });
  try {
    process.chdir(options.root);
    replaceProcess(path, ["daemon", "--foreground"], definedEnvironment(options.env));
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    log.error("sloop::daemon", "restart_exec_failed", { path, error: text });
  } finally {
    log.close();
  }
}

/** Long enough after the start that most of what only the start needed has run. */
const trimAfterMs = 3000;

/** One life of a daemon in this process; null when another daemon holds the lock. */
async function serveOnce(options: ServeOptions): Promise<{ ground: Ground; end: DaemonEnd } | null> {
  const ground = await prepareGround(options);
  if (ground === null) return null;
  let running: RunningDaemon | null = null;
  let told = false;
  let trimming: ReturnType<typeof setTimeout> | undefined;
  // Before the socket is there: whoever sees it may end us at once.
  const stop = () => {
    told = true;
    running?.daemon.shutDown("stop");
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
  try {
    running = open(ground, options);
    if (told) running.daemon.shutDown("stop");
    trimming = setTimeout(trimCode, trimAfterMs);
    return { ground, end: await running.closed };
  } finally {
    clearTimeout(trimming);
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.off(signal, stop);
  }
}

/**
 * Serves until `stop`, SIGTERM or SIGINT; runs that are going are left to the next daemon. Resolves to the exit code:
 * 0 also when another daemon holds the lock. Throws SloopError when it cannot start.
 */
export async function serve(options: ServeOptions): Promise<number> {
  const path = startedFrom(options.executable, options.env);
  for (;;) {
    const served = await serveOnce({ ...options, executable: path });
    if (served === null || served.end === "stop") return 0;
    restart(served.ground, path, options);
  }
}

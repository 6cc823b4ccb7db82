// The composition root of `daemon --foreground`: the daemon and its doors, until it is told to stop.

import { SloopError } from "../core/errors.ts";
import { openDaemon } from "../daemon/daemon.ts";
import { prepareGround } from "../daemon/startup.ts";
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

/**
 * Serves until `stop`, SIGTERM or SIGINT; runs that are going are left to the next daemon. Resolves to the exit code:
 * 0 also when another daemon holds the lock. Throws SloopError when it cannot start.
 */
export async function serve(options: ServeOptions): Promise<number> {
  const ground = await prepareGround(options);
  if (ground === null) return 0;
  let running: ReturnType<typeof openDaemon>;
  try {
    running = openDaemon(ground, { ...options, openOperatorDoor, openWorkerDoor });
  } catch (error) {
    ground.store.close();
    ground.lock.close();
    if (error instanceof SloopError) throw error;
    const text = error instanceof Error ? error.message : String(error);
    throw new SloopError("daemon_unavailable", `cannot serve ${ground.paths.operatorSocket}: ${text}`);
  }
  process.on("SIGTERM", () => running.daemon.shutDown());
  process.on("SIGINT", () => running.daemon.shutDown());
  await running.closed;
  return 0;
}

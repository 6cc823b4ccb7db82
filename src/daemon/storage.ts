// A disk that is full: noticed by whoever writes, waited out by whoever walks (engine.md 15.4).

import { storageFull } from "../store/open.ts";
import type { Daemon, LiveRun } from "./context.ts";

/** Whether an error says that the disk is full; then the storage gate is shut until a write succeeds, and the log says so once. */
export function noteStorageFull(daemon: Daemon, error: unknown): boolean {
  if (!storageFull(error)) return false;
  if (!daemon.conditions.storageFull) {
    daemon.log.error("sloop::dispatcher", "storage_full", { error: (error as Error).message });
  }
  daemon.conditions.storageFull = true;
  return true;
}

const lookMs = 250;

/** Resolves once a pass has written again, or the run is cancelled. */
export async function awaitStorage(daemon: Daemon, live: LiveRun): Promise<void> {
  while (daemon.conditions.storageFull && !live.cancelling) await Bun.sleep(lookMs);
}

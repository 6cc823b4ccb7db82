// Doors whose socket files were taken away: a logout or a cleaner may wipe the runtime directory under a healthy daemon.

import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { privateDirectory } from "../system/files.ts";
import type { Daemon, Door } from "./context.ts";

export type DoorWatch = {
  /** Listens anew wherever a socket file is gone. Never throws; a failure is told once. */
  look(): void;
};

function reopenDirectory(path: string): void {
  const directory = dirname(path);
  if (existsSync(directory)) return;
  privateDirectory(dirname(directory));
  privateDirectory(directory);
}

/** Watches the operator's door and those of the live runs. */
export function openDoorWatch(daemon: Daemon, operator: Door): DoorWatch {
  const told = new Map<string, string>();

  function lookAt(path: string, door: Door): void {
    try {
      reopenDirectory(path);
      if (door.rebind?.() === true) daemon.log.warn("sloop::socket", "socket_rebound", { path });
      told.delete(path);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      if (told.get(path) === text) return;
      told.set(path, text);
      daemon.log.error("sloop::socket", "socket_rebind_failed", { path, error: text });
    }
  }

  return {
    look() {
      if (daemon.conditions.stopping) return;
      lookAt(daemon.paths.operatorSocket, operator);
      for (const { door, credential } of daemon.live.values()) {
        if (door !== null && credential !== null) lookAt(credential.socketPath, door);
      }
    },
  };
}

// Unix sockets that nobody else can open, not even for a moment, and connections to them.

import { lstatSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SocketHandler } from "bun";
import { systemCode } from "./code.ts";
import { connectUnix } from "./connect.ts";
import { removeIfPresent } from "./files.ts";

export { connectUnix };

export type ListeningSocket = {
  /** Closes every connection and removes the socket file if it is still ours. */
  stop(): void;
  /** Whether the socket file is still there and ours. */
  present(): boolean;
  /** Takes no more connections; those that are open go on until `stop`. */
  retire(): void;
};

/** Something that is no socket stands where a socket should be. */
export class SocketPathError extends Error {
  constructor(path: string) {
    super(`${path} exists and is not a socket`);
    this.name = "SocketPathError";
  }
}

function inodeOf(path: string): { inode: number; socket: boolean } | null {
  try {
    const found = lstatSync(path);
    return { inode: found.ino, socket: found.isSocket() };
  } catch (error) {
    if (systemCode(error) === "ENOENT") return null;
    throw error;
  }
}

function privateName(path: string): string {
  const random = Buffer.from(crypto.getRandomValues(new Uint8Array(4))).toString("hex");
  return join(dirname(path), `.${random}`);
}

/** Runs `open` so that what it makes is for our user alone. `open` must be synchronous: the umask is the whole process's. */
function withPrivateUmask<T>(open: () => T): T {
  const before = process.umask(0o177);
  try {
    return open();
  } finally {
    process.umask(before);
  }
}

/**
 * Listens on `path` with mode 0600 from the first moment: made under a private name, then renamed, which replaces a socket
 * file left behind. The caller holds the lock that says no live daemon answers there (or asked with `answers`). Stopping
 * closes every connection and removes the file if it is still ours. Throws SocketPathError or the system's error.
 * With `halfOpen` a peer that has sent its last byte is still answered, and our side must be ended by us.
 */
export function listenPrivate<Data>(
  path: string,
  handlers: SocketHandler<Data>,
  options: { halfOpen?: boolean } = {},
): ListeningSocket {
  const before = inodeOf(path);
  if (before !== null && !before.socket) throw new SocketPathError(path);
  const temporary = privateName(path);
  const listener = withPrivateUmask(() =>
    Bun.listen<Data>({ unix: temporary, socket: handlers, allowHalfOpen: options.halfOpen ?? false }),
  );
  let inode: number | undefined;
  try {
    inode = inodeOf(temporary)?.inode;
    renameSync(temporary, path);
  } catch (error) {
    listener.stop(true);
    removeIfPresent(temporary);
    throw error;
  }
  const present = () => inode !== undefined && inodeOf(path)?.inode === inode;
  return {
    stop() {
      listener.stop(true);
      if (present()) removeIfPresent(path);
    },
    present,
    retire: () => listener.stop(false),
  };
}

/** Whether somebody listens on `path` now. */
export async function answers(path: string): Promise<boolean> {
  try {
    const socket = await connectUnix(path, { data() {} });
    socket.terminate();
    return true;
  } catch {
    return false;
  }
}

// Connections to Unix sockets. A file of its own, because what the CLI loads for every command must not load `node:fs`.

import type { Socket, SocketHandler } from "bun";

/** Connects to the socket at `path`. Rejects with the system's error (`ENOENT`, `ECONNREFUSED`) when nobody listens. */
export function connectUnix<Data = undefined>(path: string, handlers: SocketHandler<Data>): Promise<Socket<Data>> {
  return Bun.connect<Data>({ unix: path, socket: handlers });
}

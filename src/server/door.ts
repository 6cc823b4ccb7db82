// A v1 door: a private socket whose connections all obey the same rules.

import { type ListeningSocket, listenPrivate } from "../system/socket.ts";
import { Connection, type DoorRules } from "./connection.ts";

/** Open connections at once; beyond that the one idle for longest goes, or the newcomer when all are busy. */
const connectionLimit = 800;

export type Door = { close(): void };

function makeRoom(connections: Set<Connection>): boolean {
  for (const connection of connections) {
    if (!connection.idle) continue;
    connections.delete(connection);
    connection.terminate();
    return true;
  }
  return false;
}

/** Serves `path` under `rules` until closed. Throws SocketPathError or the system's error. */
export function openDoor(path: string, rules: DoorRules): Door {
  const connections = new Set<Connection>();
  const listener: ListeningSocket = listenPrivate<Connection>(
    path,
    {
      open(socket) {
        const connection = new Connection(socket, rules);
        socket.data = connection;
        if (connections.size >= connectionLimit && !makeRoom(connections)) connection.terminate();
        else connections.add(connection);
      },
      data: (socket, chunk) => socket.data.data(chunk),
      end: (socket) => socket.data.end(),
      drain: (socket) => socket.data.drain(),
      close(socket) {
        connections.delete(socket.data);
        socket.data.closed();
      },
      error: (_socket, error) => rules.logFailure(error),
    },
    { halfOpen: true },
  );
  return { close: () => listener.stop() };
}

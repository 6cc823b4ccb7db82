// A v1 door: a private socket whose connections all obey the same rules.

import { type ListeningSocket, listenPrivate } from "../system/socket.ts";
import { Connection, type DoorRules } from "./connection.ts";

/** Open connections at once; beyond that the one idle for longest goes, or the newcomer when all are busy. */
const connectionLimit = 800;

export type Door = {
  close(): void;
  /** Listens anew where the socket file was taken away; open connections go on. True when it was. Throws as opening does. */
  rebind(): boolean;
};

function makeRoom(connections: Set<Connection>): boolean {
  for (const connection of connections) {
    if (!connection.idle) continue;
    connections.delete(connection);
    connection.terminate();
    return true;
  }
  return false;
}

function listen(path: string, rules: DoorRules, connections: Set<Connection>): ListeningSocket {
  return listenPrivate<Connection>(
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
}

/** Serves `path` under `rules` until closed. Throws SocketPathError or the system's error. */
export function openDoor(path: string, rules: DoorRules): Door {
  const connections = new Set<Connection>();
  let listener = listen(path, rules, connections);
  return {
    close() {
      listener.stop();
      // Those that came before a rebind belong to another listener.
      for (const connection of [...connections]) connection.terminate();
    },
    rebind() {
      if (listener.present()) return false;
      const before = listener;
      listener = listen(path, rules, connections);
      before.retire();
      return true;
    },
  };
}

// Clients of a v1 socket that cost as little as possible, so that it is the daemon that is measured.

import type { Socket } from "bun";

export type Json = Record<string, unknown>;

export const statusLine = '{"v":1,"id":"b","verb":"status","args":{},"token":null}\n';

const newline = 0x0a;

/** One request over a connection of its own; resolves to the reply line. */
export function exchange(path: string, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    Bun.connect({
      unix: path,
      socket: {
        open: (socket) => void socket.write(line),
        data(socket, chunk) {
          chunks.push(chunk);
          if (chunk.at(-1) !== newline) return;
          // Ending a socket closes it at once, so the answer comes first.
          resolve(Buffer.concat(chunks).toString("utf8"));
          socket.end();
        },
        close: () => reject(new Error(`${path} closed without a reply`)),
        error: (_socket, error) => reject(error),
      },
    }).catch(reject);
  });
}

/** Asks one verb; the reply's data. Throws when it is refused. */
export async function ask(path: string, verb: string, args: Json = {}): Promise<Json> {
  const reply = JSON.parse(await exchange(path, `${JSON.stringify({ v: 1, id: "b", verb, args })}\n`)) as {
    data?: Json;
    error?: Json;
  };
  if (reply.data === undefined) throw new Error(`${verb}: ${JSON.stringify(reply.error)}`);
  return reply.data;
}

/** Sends `line` over `total` connections, `clients` of them at a time; resolves to replies per second. */
export function freshRate(path: string, line: string, load: { total: number; clients: number }): Promise<number> {
  const { total, clients } = load;
  const start = performance.now();
  return new Promise((resolve, reject) => {
    let begun = 0;
    let answered = 0;
    const next = () => {
      if (begun === total) return;
      begun += 1;
      Bun.connect({ unix: path, socket: handlers }).catch(reject);
    };
    const handlers = {
      open: (socket: Socket) => void socket.write(line),
      data(socket: Socket, chunk: Uint8Array) {
        if (chunk[chunk.length - 1] !== newline) return;
        socket.end();
        answered += 1;
        if (answered === total) resolve((total * 1000) / (performance.now() - start));
        else next();
      },
      error: (_socket: Socket, error: Error) => reject(error),
    };
    for (let client = 0; client < clients; client += 1) next();
  });
}

function countLines(chunk: Uint8Array): number {
  let count = 0;
  for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, at + 1)) count += 1;
  return count;
}

/** Sends `line` `total` times over one connection without waiting for replies; resolves to replies per second. */
export function pipelinedRate(path: string, line: string, total: number): Promise<number> {
  const bytes = Buffer.from(line.repeat(total));
  const start = performance.now();
  return new Promise((resolve, reject) => {
    let sent = 0;
    let answered = 0;
    const send = (socket: Socket) => {
      while (sent < bytes.length) {
        const taken = socket.write(bytes.subarray(sent));
        if (taken <= 0) return;
        sent += taken;
      }
    };
    Bun.connect({
      unix: path,
      socket: {
        open: send,
        drain: send,
        data(socket, chunk) {
          answered += countLines(chunk);
          if (answered < total) return;
          resolve((total * 1000) / (performance.now() - start));
          socket.end();
        },
        close: () => reject(new Error(`closed after ${answered} of ${total} replies`)),
        error: (_socket, error) => reject(error),
      },
    }).catch(reject);
  });
}

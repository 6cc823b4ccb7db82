// A client of a door that knows nothing of it: bytes out, lines in, and when the other side closed.

import { connect, type Socket } from "node:net";
import { until } from "./until.ts";

export type RawClient = Disposable & {
  send(text: string | Uint8Array): void;
  /** Half-closes: nothing more will be sent. */
  finish(): void;
  /** Stops reading until `read()`. */
  stopReading(): void;
  read(): void;
  /** Complete lines received so far. */
  readonly lines: string[];
  /** The n-th line (from 0), as JSON. */
  reply(n: number): Promise<Reply>;
  readonly closed: boolean;
  /** Resolves when the other side has closed. */
  untilClosed(timeoutMs?: number): Promise<void>;
};

export type Reply = {
  id: string | null;
  ok: boolean;
  data?: Record<string, unknown>;
  error?: { code: string; message: string; details: Record<string, unknown> };
};

function opened(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path, allowHalfOpen: true }, () => resolve(socket));
    socket.once("error", reject);
  });
}

export async function rawClient(path: string): Promise<RawClient> {
  const socket = await opened(path);
  const lines: string[] = [];
  let rest = "";
  let closed = false;
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
  });
  const over = () => {
    closed = true;
    socket.end();
  };
  socket.on("end", over).on("close", over).on("error", over);
  return {
    send: (text) => void socket.write(text),
    finish: () => void socket.end(),
    stopReading: () => void socket.pause(),
    read: () => void socket.resume(),
    lines,
    async reply(n) {
      await until(() => lines.length > n, `reply ${n}`);
      return JSON.parse(lines[n] ?? "") as Reply;
    },
    get closed() {
      return closed;
    },
    untilClosed: async (timeoutMs) => void (await until(() => closed, "the other side to close", timeoutMs)),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

let counter = 0;

/** One request line with its newline; `id` counts. */
export function requestLine(verb: string, args: unknown = {}, more: Record<string, unknown> = {}): string {
  counter += 1;
  return `${JSON.stringify({ v: 1, id: `c-${counter}`, verb, args, ...more })}\n`;
}

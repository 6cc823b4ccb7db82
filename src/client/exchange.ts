// One request line out, one reply line back, over a connection of its own (cli.md 10.1 step 3).

import type { Socket } from "bun";
import { systemCode } from "../system/code.ts";
import { connectUnix } from "../system/connect.ts";
import { LineReader, LineWriter } from "../system/lines.ts";

/** Replies outgrow the 1 MiB of a request: a list of all tickets does. */
export const replyLimitBytes = 64 * 1_048_576;

export type Exchange =
  | { kind: "reply"; line: string }
  /** Nobody listens there; nothing was sent. `stale`: the socket file is there, left by somebody who died. */
  | { kind: "absent"; problem: string; stale: boolean }
  /** Connected, and no reply came: whether the request was carried out is unknown. */
  | { kind: "lost"; problem: string };

/** `replyMs` null: however long it takes. */
export type Timeouts = { connectMs: number; replyMs: number | null };

/** cli.md 10.1: connecting and writing 5 s, the reply 30 s. */
export const usualTimeouts: Timeouts = { connectMs: 5000, replyMs: 30_000 };

const busyPauseMs = 5;

type Waiting = { line: string; settle(result: Exchange): void; writer: LineWriter | null; reader: LineReader };

function newWaiting(line: string, settle: (result: Exchange) => void): Waiting {
  const reader = new LineReader({
    limit: replyLimitBytes,
    onLine: (reply) =>
      settle(reply === null ? { kind: "lost", problem: "the reply is not UTF-8" } : { kind: "reply", line: reply }),
    onTooLong: () => settle({ kind: "lost", problem: `the reply is longer than ${replyLimitBytes} bytes` }),
  });
  return { line, settle, writer: null, reader };
}

function connect(path: string, waiting: Waiting): Promise<Socket<undefined>> {
  return connectUnix<undefined>(path, {
    open(socket) {
      waiting.writer = new LineWriter(socket);
      waiting.writer.send(waiting.line);
    },
    data: (_socket, bytes) => waiting.reader.feed(bytes),
    drain: () => waiting.writer?.drain(),
    end: () => waiting.reader.end(),
    close() {
      waiting.writer?.markClosed();
      waiting.reader.end();
      waiting.settle({ kind: "lost", problem: "the connection was closed without a reply" });
    },
    error: (_socket, error) => waiting.settle({ kind: "lost", problem: error.message }),
  });
}

/** A full backlog is a daemon that is busy, not one that is missing. */
async function connectPatiently(path: string, waiting: Waiting, deadline: number): Promise<Socket<undefined>> {
  for (;;) {
    try {
      return await connect(path, waiting);
    } catch (error) {
      if (systemCode(error) !== "EAGAIN" || performance.now() > deadline) throw error;
      await Bun.sleep(busyPauseMs);
    }
  }
}

/** Sends `line` to the socket at `path` and reads the first line back; `onSent` is called once it is out. Never rejects. */
export function exchange(
  path: string,
  line: string,
  timeouts: Timeouts = usualTimeouts,
  onSent: () => void = () => {},
): Promise<Exchange> {
  return new Promise((resolve) => {
    let socket: Socket<undefined> | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let settled = false;
    const settle = (result: Exchange) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      socket?.terminate();
      resolve(result);
    };
    const waiting = newWaiting(line, settle);
    const limitTo = (ms: number | null, what: string) => {
      clearTimeout(timer);
      if (ms === null) return;
      timer = setTimeout(() => settle({ kind: "lost", problem: `${what} took longer than ${ms / 1000} s` }), ms);
    };
    limitTo(timeouts.connectMs, "connecting");
    connectPatiently(path, waiting, performance.now() + timeouts.connectMs).then(
      (opened) => {
        if (settled) {
          opened.terminate();
          return;
        }
        socket = opened;
        limitTo(timeouts.replyMs, "the reply");
        onSent();
      },
      (error: unknown) =>
        settle({ kind: "absent", problem: describe(path, error), stale: systemCode(error) === "ECONNREFUSED" }),
    );
  });
}

function describe(path: string, error: unknown): string {
  const code = systemCode(error);
  const why = code ?? (error instanceof Error ? error.message : String(error));
  return `cannot connect to ${path} (${why})`;
}

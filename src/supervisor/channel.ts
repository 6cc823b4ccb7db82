// The socket a supervisor serves: one daemon at a time, one JSON object per line each way.

import type { Socket } from "bun";
import { LineReader, LineWriter } from "../system/lines.ts";
import { identify, processAlive } from "../system/process.ts";
import { type ListeningSocket, listenPrivate } from "../system/socket.ts";
import { type ChannelCommand, type ChannelEvent, parseFields } from "../system/stage-process.ts";

/** What a daemon wants done to the command. */
export type ChannelOrder = Exclude<ChannelCommand, { type: "daemon" }>;

export type ChannelHandlers = {
  /** A daemon took the channel. */
  onAttach(): void;
  onCommand(order: ChannelOrder): void;
  /** The daemon that had the channel is gone. */
  onDetach(): void;
};

/** The daemon at the other end; its identity once it has said it. */
type Peer = { reader: LineReader; writer: LineWriter; pid: number | null; startTime: number | null };

const lineLimit = 65_536;
const flushMs = 1000;
/** Each turn of the event loop asks the kernel once what is ready. */
const turnsToRead = 3;

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function parseDaemon({ pid, pid_start_time: start }: Record<string, unknown>): ChannelCommand | null {
  if (typeof pid !== "number" || (start !== null && typeof start !== "number")) return null;
  return { type: "daemon", pid, pid_start_time: start };
}

function parseCommand(line: string | null): ChannelCommand | null {
  const fields = line === null ? null : parseFields(line);
  if (fields === null) return null;
  if (fields["type"] === "daemon") return parseDaemon(fields);
  if (fields["type"] === "gate" || fields["type"] === "kill") return { type: fields["type"] };
  const grace = fields["grace_ms"];
  return fields["type"] === "terminate" && typeof grace === "number" && grace >= 0
    ? { type: "terminate", grace_ms: grace }
    : null;
}

export class Channel {
  private readonly listener: ListeningSocket;
  private readonly handlers: ChannelHandlers;
  private peer: Peer | null = null;
  private readonly first = Promise.withResolvers<void>();
  /** Whether a daemon ever said who it is: one that is only accepted may not know yet that it is connected. */
  taken = false;

  /** Listens on `path`. Throws what `listenPrivate` throws. */
  constructor(path: string, handlers: ChannelHandlers) {
    this.handlers = handlers;
    this.listener = listenPrivate<Peer>(path, {
      open: (socket) => this.attach(socket),
      data: (socket, bytes) => socket.data.reader.feed(bytes),
      drain: (socket) => socket.data.writer.drain(),
      // Our side may be open still, but who has said all cannot open a gate any more.
      end: (socket) => this.detach(socket.data),
      close: (socket) => this.detach(socket.data),
      error: (socket) => this.detach(socket.data),
    });
  }

  /** Resolves when the first daemon has said who it is. */
  get firstTaken(): Promise<void> {
    return this.first.promise;
  }

  /** Whether a daemon has the channel, as far as what was read tells. */
  get attached(): boolean {
    return this.peer !== null;
  }

  /** Who has the channel, to be compared with who has it later; null: nobody. */
  get holder(): object | null {
    return this.peer;
  }

  /**
   * Whether `holder` has the channel now: everything the kernel knows already is read first, and a daemon that is dead has
   * it no more, however long the system takes to close what it had open.
   */
  async heldNow(holder: object | null): Promise<boolean> {
    for (let turn = 0; turn < turnsToRead && this.attached; turn += 1) await nextTurn();
    const { peer } = this;
    if (peer === null || peer !== holder) return false;
    return peer.pid === null || (identify(peer.pid, peer.startTime) !== "gone" && processAlive(peer.pid));
  }

  send(event: ChannelEvent): void {
    this.peer?.writer.send(JSON.stringify(event));
  }

  /** Lets what was sent leave, then closes connection and socket. */
  async close(): Promise<void> {
    await Promise.race([this.peer?.writer.flushed(), Bun.sleep(flushMs)]);
    this.listener.stop();
  }

  private attach(socket: Socket<Peer>): void {
    const before = this.peer;
    const writer = new LineWriter(socket);
    const reader = new LineReader({
      limit: lineLimit,
      onLine: (line) => this.take(socket.data, line),
      onTooLong: () => socket.terminate(),
    });
    socket.data = { reader, writer, pid: null, startTime: null };
    if (before !== null) {
      this.detach(before);
      before.writer.endAfterFlush();
    }
    this.peer = socket.data;
    this.handlers.onAttach();
  }

  private take(peer: Peer, line: string | null): void {
    const command = parseCommand(line);
    if (peer !== this.peer || command === null) return;
    if (command.type !== "daemon") {
      this.handlers.onCommand(command);
      return;
    }
    peer.pid = command.pid;
    peer.startTime = command.pid_start_time;
    this.taken = true;
    this.first.resolve();
  }

  private detach(peer: Peer | undefined): void {
    if (peer === undefined || peer !== this.peer) return;
    this.peer = null;
    peer.writer.markClosed();
    this.handlers.onDetach();
  }
}

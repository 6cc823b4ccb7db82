// One connection of a v1 door: lines in, one reply line each, in order, and closed by the rules of protocol.md 2.

import type { Socket } from "bun";
import type { Daemon } from "../daemon/context.ts";
import { type CheckedRequest, notUtf8Reply, readRequest, tooLargeReply } from "../protocol/check.ts";
import { type Failure, lineLimitBytes } from "../protocol/envelope.ts";
import { verbs } from "../protocol/verbs.ts";
import { LineReader, LineWriter } from "../system/lines.ts";
import { refusal, renderFailure, renderSuccess } from "./reply.ts";

/** Nothing arrived for this long after the last reply: the connection is closed. */
const restMs = 250;
/** No full line for this long: closed without a reply. Also how long a peer may leave a closing connection unread. */
const lineMs = 30_000;
/** Replies that wait for the peer to read; above this its further requests wait too. */
const unreadLimit = 1_048_576;
/** Lines that wait to be served; above this nothing more is read from the peer. */
const pendingLimit = 256;

/** What a door decides about a request that passed rungs 1-9. */
export type DoorRules = {
  readonly daemon: Daemon;
  /** Rungs 10 and 11: the reply's data, perhaps later. Throws SloopError for a refusal. */
  answer(request: CheckedRequest): unknown;
  /** What the log calls a connection that broke. */
  logFailure(error: unknown): void;
};

type Pending = string | Failure;

export class Connection {
  private readonly socket: Socket<Connection>;
  private readonly door: DoorRules;
  private readonly reader: LineReader;
  private readonly writer: LineWriter;
  private pending: Pending[] = [];
  /** How many of `pending` are served or being served. */
  private taken = 0;
  private serving = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private busy = false;
  private paused = false;
  /** The peer has sent its last byte. */
  private ended = false;
  /** No further line is served. */
  private closing = false;
  private replied = false;
  private lastArrivalMs = 0;
  private lastLineMs: number;

  constructor(socket: Socket<Connection>, door: DoorRules) {
    this.socket = socket;
    this.door = door;
    this.lastLineMs = performance.now();
    this.writer = new LineWriter(socket);
    this.reader = new LineReader({
      limit: lineLimitBytes,
      onLine: (line) => this.pending.push(line ?? notUtf8Reply()),
      onTooLong: () => this.pending.push(tooLargeReply()),
    });
    this.arm(lineMs);
  }

  /** Nothing is being served and nothing waits: the first to go when there are too many connections. */
  get idle(): boolean {
    return !this.busy && this.pending.length === 0;
  }

  data(chunk: Uint8Array): void {
    if (this.closing) return;
    this.lastArrivalMs = performance.now();
    this.reader.feed(chunk);
    this.serveNext();
    if (this.pending.length - this.taken > pendingLimit) this.pause();
  }

  /** The peer has half-closed: what it sent is still answered, a last line without its newline too. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.reader.end();
    this.serveNext();
  }

  drain(): void {
    this.writer.drain();
    this.serveNext();
  }

  /** The connection is gone: requests that arrived whole and change something are carried out all the same. */
  closed(): void {
    clearTimeout(this.timer);
    this.reader.stop();
    this.writer.markClosed();
    this.serveNext();
  }

  terminate(): void {
    this.socket.terminate();
  }

  /** Serves what waits, in a loop and not by recursion: one read may bring tens of thousands of lines. */
  private serveNext(): void {
    if (this.serving) return;
    this.serving = true;
    for (let next = this.take(); next !== undefined; next = this.take()) {
      this.busy = true;
      if (typeof next === "string") this.serve(next);
      else this.reply(renderFailure(next));
    }
    this.serving = false;
    this.closeIfDone();
  }

  private take(): Pending | undefined {
    if (this.busy || this.closing || !this.hasRoom()) return undefined;
    const next = this.pending[this.taken];
    if (next === undefined) return undefined;
    this.taken += 1;
    this.lastLineMs = performance.now();
    if (this.taken === this.pending.length) this.allTaken();
    return next;
  }

  private allTaken(): void {
    this.pending = [];
    this.taken = 0;
    if (this.paused) this.resume();
  }

  /** Whether the peer reads what it is answered. */
  private hasRoom(): boolean {
    if (this.writer.queuedBytes <= unreadLimit) return true;
    // Replies still held back for a common write may yet go; only what the kernel refuses is the peer's doing.
    this.writer.drain();
    return this.writer.queuedBytes <= unreadLimit;
  }

  private serve(line: string): void {
    const read = readRequest(line);
    if (!read.ok) {
      this.reply(renderFailure(read.reply));
      return;
    }
    if (this.unheard(read.request)) {
      this.busy = false;
      return;
    }
    // The reply is written inside the job, so that the pass behind it comes after.
    void this.door.daemon.enqueue(() => this.perform(read.request));
  }

  /** Whether an answer is all the request asks for, and nobody is there to read it. */
  private unheard(request: CheckedRequest): boolean {
    return this.writer.gone && verbs[request.verb].read;
  }

  private perform(request: CheckedRequest): void {
    if (this.unheard(request)) {
      this.busy = false;
      this.serveNext();
      return;
    }
    let data: unknown;
    try {
      data = this.door.answer(request);
    } catch (error) {
      this.refuse(request, error);
      return;
    }
    if (!(data instanceof Promise)) {
      this.succeed(request, data);
      return;
    }
    // Others are served meanwhile; what this reply says was true when its request had its turn.
    data.then(
      (later) => this.succeed(request, later),
      (error) => this.refuse(request, error),
    );
  }

  private succeed(request: CheckedRequest, data: unknown): void {
    this.door.daemon.log.info("sloop::dispatcher", "request_handled", { verb: request.verb });
    if (request.verb === "stop" || request.verb === "restart") this.closeAfterReply(request.verb);
    this.reply(renderSuccess(request.id, data));
  }

  private refuse(request: CheckedRequest, error: unknown): void {
    const reply = refusal(this.door.daemon, request.id, error);
    this.door.daemon.log.info("sloop::dispatcher", "request_handled", {
      verb: request.verb,
      code: reply.error.code,
    });
    this.reply(renderFailure(reply));
  }

  /** The daemon goes, at once or when its runs have ended: this connection is of no further use. */
  private closeAfterReply(verb: "stop" | "restart"): void {
    this.closing = true;
    // The reply itself is queued in this turn; only then is there something to wait for.
    queueMicrotask(() => {
      this.finish();
      if (verb === "stop") void this.writer.flushed().then(() => this.door.daemon.shutDown());
    });
  }

  private reply(line: string): void {
    this.writer.send(line);
    // At once, unless more replies are about to leave in the same write.
    if (this.pending.length === 0) this.writer.drain();
    this.busy = false;
    this.lastArrivalMs = Math.max(this.lastArrivalMs, performance.now());
    if (!this.replied) {
      this.replied = true;
      this.arm(restMs);
    }
    this.serveNext();
  }

  private pause(): void {
    if (this.paused) return;
    this.paused = true;
    this.socket.pause();
  }

  private resume(): void {
    this.paused = false;
    this.socket.resume();
  }

  private closeIfDone(): void {
    if (this.ended && this.idle) this.finish();
  }

  /** Closes once everything queued has been read; a peer that never reads does not keep us. */
  private finish(): void {
    this.closing = true;
    this.arm(lineMs);
    this.writer.endAfterFlush();
  }

  private arm(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.expire(), ms);
  }

  /** Looks how long it has been quiet; rearming once in a while is cheaper than at every byte. */
  private expire(): void {
    if (this.closing) {
      this.terminate();
      return;
    }
    const now = performance.now();
    if (!this.idle) {
      this.arm(restMs);
      return;
    }
    const restLeft = this.replied ? this.lastArrivalMs + restMs - now : lineMs;
    const left = Math.min(restLeft, this.lastLineMs + lineMs - now);
    if (left <= 0) this.finish();
    else this.arm(Math.max(1, left));
  }
}

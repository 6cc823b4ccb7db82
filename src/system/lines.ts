// Lines over a stream socket: bytes in become checked lines, lines out wait until the peer takes them.

const newline = 0x0a;

export type LineReaderOptions = {
  /** Longest line in bytes, its newline counted. */
  limit: number;
  /** One line without its newline, or null when its bytes are not valid UTF-8. */
  onLine(line: string | null): void;
  /** Called once when a line is too long, as soon as that is known; nothing is delivered after it. */
  onTooLong(): void;
};

/**
 * Splits a byte stream at newlines. Only new bytes are searched, and a line is decoded once, so the cost is linear however the
 * bytes arrive. A byte-order mark is kept: it is for the parser to refuse.
 */
export class LineReader {
  private readonly options: LineReaderOptions;
  private readonly decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  private parts: Uint8Array[] = [];
  private partsLength = 0;
  private stopped = false;

  constructor(options: LineReaderOptions) {
    this.options = options;
  }

  /** Bytes of a line that has begun and not ended. */
  get pendingBytes(): number {
    return this.partsLength;
  }

  /** Takes the next bytes; they may be kept, so the caller must not write into them again. */
  feed(chunk: Uint8Array): void {
    if (this.stopped) return;
    const last = chunk.lastIndexOf(newline);
    const complete = last < 0 ? 0 : this.completeLines(chunk, last);
    if (!this.stopped && complete < chunk.length) this.keep(chunk.subarray(complete));
  }

  /** The end of input: bytes without a newline are one last line. */
  end(): void {
    if (this.stopped || this.partsLength === 0) return;
    const line = this.takeParts(new Uint8Array(0));
    this.stop();
    this.options.onLine(this.decode(line));
  }

  /** Delivers nothing more and forgets what it holds. */
  stop(): void {
    this.stopped = true;
    this.parts = [];
    this.partsLength = 0;
  }

  private keep(rest: Uint8Array): void {
    this.parts.push(rest);
    this.partsLength += rest.length;
    if (this.partsLength > this.options.limit) this.refuse();
  }

  private refuse(): void {
    this.stop();
    this.options.onTooLong();
  }

  /** Delivers every line that ends in `chunk`, the last one at `last`; returns where the rest begins. */
  private completeLines(chunk: Uint8Array, last: number): number {
    let start = 0;
    if (this.partsLength > 0) {
      const first = chunk.indexOf(newline);
      this.deliverBytes(this.takeParts(chunk.subarray(0, first)));
      start = first + 1;
    }
    if (start <= last && !this.stopped) this.deliverBlock(chunk.subarray(start, last));
    return last + 1;
  }

  private takeParts(tail: Uint8Array): Uint8Array {
    const whole = Buffer.concat([...this.parts, tail], this.partsLength + tail.length);
    this.parts = [];
    this.partsLength = 0;
    return whole;
  }

  private decode(bytes: Uint8Array): string | null {
    try {
      return this.decoder.decode(bytes);
    } catch {
      return null;
    }
  }

  private deliverBytes(line: Uint8Array): void {
    if (line.length >= this.options.limit) this.refuse();
    else this.options.onLine(this.decode(line));
  }

  /** Whole lines decoded in one go; only a block that is too big or not valid UTF-8 is looked at line by line. */
  private deliverBlock(block: Uint8Array): void {
    const text = block.length < this.options.limit ? this.decode(block) : null;
    if (text === null) this.deliverEach(block);
    else this.deliverText(text);
  }

  private deliverText(text: string): void {
    let start = 0;
    while (!this.stopped) {
      const end = text.indexOf("\n", start);
      this.options.onLine(end < 0 ? text.slice(start) : text.slice(start, end));
      if (end < 0) return;
      start = end + 1;
    }
  }

  private deliverEach(block: Uint8Array): void {
    let start = 0;
    while (!this.stopped) {
      const end = block.indexOf(newline, start);
      this.deliverBytes(end < 0 ? block.subarray(start) : block.subarray(start, end));
      if (end < 0) return;
      start = end + 1;
    }
  }
}

/** What a LineWriter needs of a Bun socket. */
export type WritableSocket = {
  write(data: Uint8Array, byteOffset?: number, byteLength?: number): number;
  end(): void;
  terminate(): void;
};

export type LineWriterOptions = {
  /** How many bytes may wait when another line is added; one line alone may be longer. Default: no limit. */
  limit?: number;
  /** Called once when `limit` is passed; the connection is cut right after. */
  onOverflow?(): void;
};

/**
 * The only writer of a socket. What the kernel does not take waits here and goes on when the socket drains; lines sent in one
 * turn leave in one write.
 */
export class LineWriter {
  private readonly socket: WritableSocket;
  private readonly limit: number;
  private readonly onOverflow: (() => void) | undefined;
  private lines: string[] = [];
  private linesLength = 0;
  private blocked: Uint8Array | null = null;
  private scheduled = false;
  private ending = false;
  private closed = false;
  private waiters: (() => void)[] = [];

  constructor(socket: WritableSocket, options: LineWriterOptions = {}) {
    this.socket = socket;
    this.limit = options.limit ?? Number.POSITIVE_INFINITY;
    this.onOverflow = options.onOverflow;
  }

  /** Bytes not yet taken by the kernel. */
  get queuedBytes(): number {
    return (this.blocked?.length ?? 0) + this.linesLength;
  }

  /** Whether nobody can read a line any more. */
  get gone(): boolean {
    return this.closed;
  }

  /** Queues one line, given without its newline; false when the connection is closed, ending, or was just cut for being too slow. */
  send(line: string): boolean {
    if (this.closed || this.ending) return false;
    if (this.queuedBytes > this.limit) {
      this.onOverflow?.();
      this.cut();
      return false;
    }
    this.lines.push(line);
    this.linesLength += Buffer.byteLength(line) + 1;
    this.schedule();
    return true;
  }

  /** To be called from the socket's `drain` handler. */
  drain(): void {
    this.flush();
  }

  /** To be called from the socket's `close` handler. */
  markClosed(): void {
    this.closed = true;
    this.lines = [];
    this.linesLength = 0;
    this.blocked = null;
    this.wake();
  }

  /** Closes our side once everything queued has been taken. */
  endAfterFlush(): void {
    this.ending = true;
    if (!this.closed) this.flush();
  }

  /** Resolves once nothing is queued any more, or the connection is gone. */
  flushed(): Promise<void> {
    if (this.queuedBytes === 0) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  private schedule(): void {
    if (this.scheduled || this.blocked !== null) return;
    this.scheduled = true;
    queueMicrotask(() => {
      this.scheduled = false;
      this.flush();
    });
  }

  private flush(): void {
    while (!this.closed) {
      const next = this.blocked ?? this.takeLines();
      if (next === null) break;
      const taken = this.socket.write(next);
      if (taken < 0) {
        this.markClosed();
        return;
      }
      this.blocked = taken < next.length ? next.subarray(taken) : null;
      if (this.blocked !== null) return;
    }
    this.wake();
    if (this.ending && !this.closed) {
      this.closed = true;
      this.socket.end();
    }
  }

  private takeLines(): Uint8Array | null {
    if (this.lines.length === 0) return null;
    this.lines.push("");
    const bytes = Buffer.from(this.lines.join("\n"));
    this.lines = [];
    this.linesLength = 0;
    return bytes;
  }

  private cut(): void {
    this.markClosed();
    this.socket.terminate();
  }

  private wake(): void {
    const waiting = this.waiters;
    this.waiters = [];
    for (const resolve of waiting) resolve();
  }
}

// Lines over a stream: any cut of the bytes gives the same lines; a slow reader loses nothing until it is cut.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { LineReader, LineWriter, type WritableSocket } from "../../src/system/lines.ts";

type Seen = { lines: (string | null)[]; tooLong: number };

function read(chunks: Uint8Array[], limit = 1_048_576, end = false): Seen {
  const seen: Seen = { lines: [], tooLong: 0 };
  const reader = new LineReader({
    limit,
    onLine: (line) => seen.lines.push(line),
    onTooLong: () => {
      seen.tooLong += 1;
    },
  });
  for (const chunk of chunks) reader.feed(chunk);
  if (end) reader.end();
  return seen;
}

const bytes = (text: string) => new Uint8Array(Buffer.from(text));

function cut(whole: Uint8Array, points: number[]): Uint8Array[] {
  const at = [...new Set([0, ...points.map((point) => point % (whole.length + 1)), whole.length])].sort(
    (a, b) => a - b,
  );
  return at.slice(1).map((to, index) => whole.slice(at[index], to));
}

test("however the bytes are cut, the lines are the same", () => {
  const text = fc.string({ unit: "grapheme" }).map((one) => one.replaceAll("\n", " "));
  fc.assert(
    fc.property(fc.array(text), fc.array(fc.nat()), (lines, points) => {
      const whole = bytes(lines.map((line) => `${line}\n`).join(""));
      expect(read(cut(whole, points)).lines).toEqual(lines);
    }),
  );
});

test("a line that is not UTF-8 is null and its neighbours are whole, however cut", () => {
  const whole = Buffer.concat([bytes("ä\n"), Buffer.from([0xc3, 0x28, 0x0a]), bytes("b\n"), Buffer.from([0xff, 0x0a])]);
  fc.assert(
    fc.property(fc.array(fc.nat()), (points) => {
      expect(read(cut(whole, points)).lines).toEqual(["ä", null, "b", null]);
    }),
  );
});

test("a byte-order mark, a carriage return and an empty line are kept as they are", () => {
  expect(read([bytes("\ufeffa\r\n\n")]).lines).toEqual(["\ufeffa\r", ""]);
});

test("the limit counts the newline: the last byte allowed passes, one more is refused, whole or in pieces", () => {
  const fits = bytes(`${"x".repeat(9)}\n`);
  const over = bytes(`${"x".repeat(10)}\n`);
  for (const points of [[], [1], [9], [10], [3, 6, 10]]) {
    expect(read(cut(fits, points), 10)).toEqual({ lines: ["xxxxxxxxx"], tooLong: 0 });
    expect(read(cut(over, points), 10)).toEqual({ lines: [], tooLong: 1 });
  }
  expect(read([bytes("é".repeat(5))], 10, true).lines).toEqual(["é".repeat(5)]);
  expect(read([bytes("x".repeat(11))], 10, true)).toEqual({ lines: [], tooLong: 1 });
});

test("lines before a long one are delivered, nothing after it", () => {
  const seen = read([bytes(`a\n${"x".repeat(20)}\nb\n`), bytes("c\n")], 10);
  expect(seen).toEqual({ lines: ["a"], tooLong: 1 });
});

test("the end of input makes the rest one last line, and nothing of nothing", () => {
  expect(read([bytes("a\nb")], 10, true).lines).toEqual(["a", "b"]);
  expect(read([bytes("a\n")], 10, true).lines).toEqual(["a"]);
});

test("stopping inside a handler delivers nothing more of the same chunk", () => {
  const lines: (string | null)[] = [];
  const reader: LineReader = new LineReader({
    limit: 100,
    onLine: (line) => {
      lines.push(line);
      reader.stop();
    },
    onTooLong: () => undefined,
  });
  reader.feed(bytes("a\nb\nc"));
  reader.feed(bytes("\n"));
  reader.end();
  expect(lines).toEqual(["a"]);
});

test("a long line in small pieces costs no more than its bytes", () => {
  const piece = bytes("x".repeat(4096));
  const lines: (string | null)[] = [];
  const reader = new LineReader({ limit: 64 << 20, onLine: (line) => lines.push(line), onTooLong: () => undefined });
  const began = performance.now();
  for (let sent = 0; sent < 32 << 20; sent += piece.length) reader.feed(piece);
  reader.feed(bytes("\n"));
  expect(lines[0]?.length).toBe(32 << 20);
  // Copying what is there at each piece would take minutes.
  expect(performance.now() - began).toBeLessThan(20_000);
});

type Fake = WritableSocket & { got: string; room: number; ended: boolean; terminated: boolean; writes: number };

function fakeSocket(room: number): Fake {
  const fake: Fake = {
    got: "",
    room,
    ended: false,
    terminated: false,
    writes: 0,
    write(data) {
      const taken = Math.min(this.room, data.length);
      this.writes += 1;
      this.room -= taken;
      this.got += Buffer.from(data.subarray(0, taken)).toString("latin1");
      return taken;
    },
    end() {
      this.ended = true;
    },
    terminate() {
      this.terminated = true;
    },
  };
  return fake;
}

test("lines sent in one turn leave in one write", async () => {
  const socket = fakeSocket(1000);
  const writer = new LineWriter(socket);
  writer.send("a");
  writer.send("b");
  await writer.flushed();
  expect(socket.got).toBe("a\nb\n");
  expect(socket.writes).toBe(1);
});

test("what the kernel does not take goes on at the drain, in order, and the end waits for it", async () => {
  const socket = fakeSocket(3);
  const writer = new LineWriter(socket);
  writer.send("hello");
  await Promise.resolve();
  writer.send("world");
  writer.endAfterFlush();
  expect(socket.ended).toBe(false);
  expect(writer.queuedBytes).toBe(9);
  while (writer.queuedBytes > 0) {
    socket.room += 2;
    writer.drain();
  }
  expect(socket.got).toBe("hello\nworld\n");
  expect(socket.ended).toBe(true);
  expect(writer.send("late")).toBe(false);
});

test("past the limit the connection is cut, but one long line alone is not too much", () => {
  const socket = fakeSocket(0);
  let overflows = 0;
  const writer = new LineWriter(socket, {
    limit: 10,
    onOverflow: () => {
      overflows += 1;
    },
  });
  expect(writer.send("x".repeat(50))).toBe(true);
  expect(writer.send("y")).toBe(false);
  expect(writer.send("z")).toBe(false);
  expect(overflows).toBe(1);
  expect(socket.terminated).toBe(true);
});

test("a socket that turns out closed ends the writer and lets waiters go", async () => {
  const socket = fakeSocket(0);
  const writer = new LineWriter(socket);
  writer.send("a");
  const waiting = writer.flushed();
  socket.write = () => -1;
  writer.drain();
  await waiting;
  expect(writer.send("b")).toBe(false);
});

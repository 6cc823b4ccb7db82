// The run log: what is appended is read back byte for byte, however it is paged, torn or long.

import { expect, test } from "bun:test";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { OutputLog, type OutputRecord, parseRecord, recordBytes, recordContent } from "../../src/system/output.ts";
import { lastLines, latestRecord, readForward, readTail } from "../../src/system/output-read.ts";

const at = "2026-07-13T20:00:01.250Z";
const roomy = { after: 0, limit: 1_000_000, maxBytes: Number.POSITIVE_INFINITY };

function scratch(): { dir: string; path: string } & Disposable {
  const dir = mkdtempSync(join(tmpdir(), "sloop-output-"));
  return {
    dir,
    path: join(dir, "output.ndjson"),
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  };
}

function append(path: string, stage: string, attempt: number, chunks: [OutputRecord["stream"], string | Uint8Array][]) {
  const log = OutputLog.open(path, { source: stage === "build" ? "agent" : "stage", stage, attempt });
  for (const [stream, chunk] of chunks) log.append(stream, typeof chunk === "string" ? Buffer.from(chunk) : chunk, at);
  log.close();
  return log;
}

function records(path: string): OutputRecord[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line) => parseRecord(line) ?? []);
}

test("a record is spelt as the page says", () => {
  using place = scratch();
  append(place.path, "test", 2, [["stderr", "x"]]);
  expect(readFileSync(place.path, "utf8")).toBe(
    `{"sequence":1,"timestamp":"${at}","source":"stage","stage":"test","attempt":2,"stream":"stderr","encoding":"utf8","text":"x"}\n`,
  );
});

test("any bytes on both streams come back in order, in records of at most 8192 bytes numbered without a gap", () => {
  using place = scratch();
  const mixed = new Uint8Array(Buffer.from("aé€😀".repeat(1700)));
  const chunk = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.tuple(fc.nat(500), fc.nat(40)).map(([from, length]) => mixed.subarray(from, from + length)),
    fc.integer({ min: 8000, max: 17_000 }).map((length) => mixed.subarray(0, length)),
  );
  const stream = fc.constantFrom("stdout" as const, "stderr" as const);
  fc.assert(
    fc.property(fc.array(fc.tuple(stream, chunk), { minLength: 1, maxLength: 8 }), (chunks) => {
      rmSync(place.path, { force: true });
      append(place.path, "test", 1, chunks);
      const read = records(place.path);
      expect(read.map((record) => record.sequence)).toEqual(read.map((_, index) => index + 1));
      for (const name of ["stdout", "stderr"] as const) {
        const got = Buffer.concat(read.filter((record) => record.stream === name).map(recordContent));
        expect(got.equals(Buffer.concat(chunks.filter(([to]) => to === name).map(([, bytes]) => bytes)))).toBe(true);
      }
      for (const record of read) {
        const content = recordContent(record);
        expect(content.length).toBeLessThanOrEqual(recordBytes);
        const valid = Buffer.from(new TextDecoder().decode(content)).equals(Buffer.from(content));
        if (record.encoding === "base64" && content[0] !== 0xef) expect(valid).toBe(false);
      }
    }),
    { numRuns: 25 },
  );
});

test("every character is written as JSON.stringify writes it", () => {
  using place = scratch();
  const text = Array.from({ length: 0x500 }, (_, code) => String.fromCodePoint(code)).join("");
  append(place.path, "test", 1, [["stdout", text]]);
  expect(readFileSync(place.path, "utf8")).toEndWith(`"text":${JSON.stringify(text)}}\n`);
});

test("a long valid text is never cut inside a character", () => {
  using place = scratch();
  const text = `x${"€".repeat(10_000)}`;
  append(place.path, "test", 1, [["stdout", text]]);
  const read = records(place.path);
  expect(read.every((record) => record.encoding === "utf8")).toBe(true);
  expect(read.map((record) => record.text).join("")).toBe(text);
});

test("sequences go on after the last complete record, and a torn line is ended first", async () => {
  using place = scratch();
  append(place.path, "build", 1, [
    ["stdout", "one"],
    ["stdout", "two"],
  ]);
  appendFileSync(place.path, `{"sequence":3,"timestamp":"${at}","source":"agent","str`);
  append(place.path, "test", 1, [["stdout", "three"]]);
  expect(records(place.path).map((record) => record.sequence)).toEqual([1, 2, 3]);
  expect(readFileSync(place.path, "utf8").split("\n")).toHaveLength(5);
  const page = await readForward(place.path, roomy);
  expect(page.records.map((record) => record.text)).toEqual(["one", "two", "three"]);
});

test("a tail longer than one block without a complete record is searched through", () => {
  using place = scratch();
  append(place.path, "build", 1, [["stdout", "one"]]);
  appendFileSync(place.path, `${"junk ".repeat(50_000)}\n${"x".repeat(100_000)}`);
  expect(append(place.path, "test", 1, [["stdout", "two"]]).lastSequence).toBe(2);
});

test("what cannot be written makes the capture incomplete and costs no number", () => {
  if (!existsSync("/dev/full")) return;
  const log = OutputLog.open("/dev/full", { source: "stage", stage: "test", attempt: 1 });
  log.append("stdout", Buffer.from("x".repeat(20_000)), at);
  expect(log.complete).toBe(false);
  expect(log.lastSequence).toBe(0);
  log.sync();
  log.close();
});

function many(path: string, count: number, size = 10): void {
  const lines: string[] = [];
  for (let sequence = 1; sequence <= count; sequence += 1) {
    const stage = sequence % 3 === 0 ? "build" : "test";
    const source = stage === "build" ? "agent" : "stage";
    const text = `${sequence} ${"y".repeat(size)}\n`;
    lines.push(
      `${JSON.stringify({ sequence, timestamp: at, source, stage, attempt: 1, stream: "stdout", encoding: "utf8", text })}\n`,
    );
  }
  writeFileSync(path, lines.join(""));
}

test("paging forward sees every record once, wherever the cursor stands", async () => {
  using place = scratch();
  many(place.path, 3000, 700);
  let after = 0;
  const seen: number[] = [];
  for (;;) {
    const page = await readForward(place.path, { after, limit: 640, maxBytes: 1e9 });
    seen.push(...page.records.map((record) => record.sequence));
    after = page.nextCursor;
    if (page.complete) break;
  }
  expect(seen).toEqual(Array.from({ length: 3000 }, (_, index) => index + 1));
  for (const start of [1, 1499, 2998, 2999, 3000, 9999]) {
    const page = await readForward(place.path, { after: start, limit: 2, maxBytes: 1e9 });
    expect(page.records.map((record) => record.sequence)).toEqual([start + 1, start + 2].filter((n) => n <= 3000));
    expect(page.complete).toBe(start >= 2998);
  }
});

/** The bytes this process read from files while `work` went on. */
async function bytesRead(work: () => Promise<unknown>): Promise<number> {
  const count = () => Number(/rchar: ([0-9]+)/.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
  const before = count();
  await work();
  return count() - before;
}

test("a page far into a large log, or at its end, reads little of it", async () => {
  if (process.platform !== "linux") return;
  using place = scratch();
  many(place.path, 30_000, 1000);
  const little = 8_000_000;
  expect(statSync(place.path).size).toBeGreaterThan(4 * little);
  const forward = (after: number) => readForward(place.path, { after, limit: 64, maxBytes: 1e9 });
  for (const after of [0, 15_000, 29_000]) expect(await bytesRead(() => forward(after))).toBeLessThan(little);
  const tail = () => readTail(place.path, { after: 0, count: 64, maxBytes: 1e9 });
  expect(await bytesRead(tail)).toBeLessThan(little);
  expect(await tail()).toMatchObject({ elided: 29_936, nextCursor: 30_000 });
});

test("a filter skips records but moves the cursor; a full page with more behind it is not complete", async () => {
  using place = scratch();
  many(place.path, 10);
  const filter = (labels: { stage?: string }) => labels.stage === "build";
  const all = await readForward(place.path, { ...roomy, filter });
  expect(all.records.map((record) => record.sequence)).toEqual([3, 6, 9]);
  expect(all).toMatchObject({ nextCursor: 10, complete: true });
  const full = await readForward(place.path, { ...roomy, limit: 3, filter });
  expect(full).toMatchObject({ nextCursor: 9, complete: false });
  const none = await readForward(place.path, { ...roomy, after: 10 });
  expect(none).toEqual({ records: [], nextCursor: 10, complete: true });
});

test("a page ends before it is too big, with at least one record", async () => {
  using place = scratch();
  many(place.path, 10);
  const one = Buffer.byteLength(readFileSync(place.path, "utf8").split("\n")[0] ?? "") + 1;
  const two = await readForward(place.path, { ...roomy, maxBytes: one * 2 + 3 });
  expect(two.records).toHaveLength(2);
  expect(two.complete).toBe(false);
  expect((await readForward(place.path, { ...roomy, maxBytes: 1 })).records).toHaveLength(1);
  const tail = await readTail(place.path, { after: 0, count: 5, maxBytes: one * 3 });
  expect(tail.records.at(-1)?.sequence).toBe(10);
  expect(tail.records.length + tail.elided).toBe(10);
  expect(tail.records.length).toBeLessThan(5);
});

test("a tail keeps the newest matching records and counts what it dropped", async () => {
  using place = scratch();
  many(place.path, 30);
  const filter = (labels: { stage?: string }) => labels.stage === "build";
  const tail = await readTail(place.path, { after: 0, count: 4, maxBytes: 1e9, filter });
  expect(tail.records.map((record) => record.sequence)).toEqual([21, 24, 27, 30]);
  expect(tail).toMatchObject({ nextCursor: 30, elided: 6 });
  const after = await readTail(place.path, { after: 12, count: 4, maxBytes: 1e9, filter });
  expect(after).toMatchObject({ elided: 2 });
  const none = await readTail(place.path, { after: 30, count: 4, maxBytes: 1e9 });
  expect(none).toEqual({ records: [], nextCursor: 30, elided: 0 });
});

test("no file, an empty one, and lines that are no records", async () => {
  using place = scratch();
  const empty = { records: [], nextCursor: 7, complete: true };
  expect(await readForward(place.path, { ...roomy, after: 7 })).toEqual(empty);
  expect(await readTail(place.path, { after: 0, count: 3, maxBytes: 1e9 })).toEqual({
    records: [],
    nextCursor: 0,
    elided: 0,
  });
  expect(await lastLines(place.path, () => true, 100)).toBe("");
  writeFileSync(place.path, "");
  expect(await readForward(place.path, { ...roomy, after: 7 })).toEqual(empty);
  const foreign = `{"sequence":2,"source":"agent","timestamp":"2026-01-01T00:00:00Z","encoding":"base64","data":"/w==","stream":"stdout"}`;
  const junk = [
    '{"sequence":1',
    "[]",
    "null",
    '{"sequence":"1"}',
    "",
    `${foreign.replace("/w==", "")}x`,
    foreign,
    "torn",
  ];
  writeFileSync(place.path, junk.join("\n"));
  const read = await readForward(place.path, roomy);
  expect(read.records).toEqual([
    {
      sequence: 2,
      source: "agent",
      timestamp: "2026-01-01T00:00:00Z",
      encoding: "base64",
      data: "/w==",
      stream: "stdout",
    },
  ]);
  const tail = await readTail(place.path, { after: 0, count: 3, maxBytes: 1e9 });
  expect(tail.records).toEqual(read.records);
});

test("stage names that need escapes in JSON are still told apart", async () => {
  using place = scratch();
  for (const stage of ['a"b', "ünï", "a\\b"]) append(place.path, stage, 1, [["stdout", stage]]);
  for (const stage of ['a"b', "ünï", "a\\b"]) {
    const page = await readForward(place.path, { ...roomy, filter: (labels) => labels.stage === stage });
    expect(page.records.map((record) => record.text)).toEqual([stage]);
  }
});

test("the last lines of one execution are whole, in capture order, decoded lossily", async () => {
  using place = scratch();
  append(place.path, "build", 1, [["stdout", "other\n"]]);
  const euro = Buffer.from("€");
  append(place.path, "test", 1, [
    ["stdout", Array.from({ length: 150 }, (_, index) => `line ${index}\n`).join("")],
    ["stdout", euro.subarray(0, 1)],
    ["stderr", "warn\n"],
    ["stdout", Buffer.concat([euro.subarray(1), Buffer.from(" \xff", "latin1"), Buffer.from("\n")])],
  ]);
  append(place.path, "test", 2, [["stdout", "later\n"]]);
  const mine = (labels: { stage?: string; attempt?: number }) => labels.stage === "test" && labels.attempt === 1;
  const text = await lastLines(place.path, mine, 100);
  const lines = text.split("\n");
  expect(lines).toHaveLength(100);
  expect(lines[0]).toBe("line 52");
  expect(lines.slice(-2)).toEqual(["warn", "€ \ufffd"]);
  expect((await latestRecord(place.path, mine))?.sequence).toBe(5);
  expect(await latestRecord(place.path, (labels) => labels.stage === "no")).toBeNull();
});

// Reading a run log: pages forward from a cursor and backward from the end, at a cost that grows with the page.

import { Buffer } from "node:buffer";
import { type FileHandle, open } from "node:fs/promises";
import { systemCode } from "./files.ts";
import { type OutputLabels, type OutputRecord, parseRecord, recordContent } from "./output.ts";

export type OutputFilter = (labels: OutputLabels) => boolean;
type Head = OutputLabels & { sequence: number };
type Line = { bytes: Buffer; offset: number };

const blockBytes = 262_144;
const newline = 0x0a;
const closing = Buffer.from('"}');
const headPattern =
  /^\{"sequence":([1-9][0-9]*),"timestamp":"[^"\\]*","source":"(agent|stage)"(?:,"stage":"([^"\\]*)")?(?:,"attempt":([1-9][0-9]*))?,"stream":"std(?:out|err)",/;
const headBytes = 512;

/** Opens the log, runs `read`, closes it; null when there is no file. */
async function withLog<T>(path: string, read: (log: FileHandle, size: number) => Promise<T>): Promise<T | null> {
  let log: FileHandle;
  try {
    log = await open(path, "r");
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") return null;
    throw error;
  }
  try {
    return await read(log, (await log.stat()).size);
  } finally {
    await log.close();
  }
}

async function readBlock(log: FileHandle, start: number, end: number): Promise<Buffer> {
  const block = Buffer.allocUnsafe(end - start);
  const { bytesRead } = await log.read(block, 0, block.length, start);
  return block.subarray(0, bytesRead);
}

/** What a line says about itself, its text not looked at: lines that sloop wrote are recognised by their beginning and end. */
function parseHead(line: Buffer): Head | null {
  const found = headPattern.exec(line.toString("utf8", 0, Math.min(line.length, headBytes)));
  if (found === null || !line.subarray(-2).equals(closing)) return parseRecord(line.toString("utf8"));
  const [, sequence, source, stage, attempt] = found;
  return {
    sequence: Number(sequence),
    source: source === "agent" ? "agent" : "stage",
    ...(stage === undefined ? {} : { stage }),
    ...(attempt === undefined ? {} : { attempt: Number(attempt) }),
  };
}

/** The lines that begin at or after `start` (a line's beginning) and before `end`. */
async function* linesForward(log: FileHandle, start: number, end: number): AsyncGenerator<Line> {
  let parts: Buffer[] = [];
  let offset = start;
  for (let at = start; at < end; ) {
    const block = await readBlock(log, at, Math.min(end, at + blockBytes));
    if (block.length === 0) break;
    at += block.length;
    let from = 0;
    for (let to = block.indexOf(newline); to >= 0; to = block.indexOf(newline, from)) {
      const bytes = parts.length === 0 ? block.subarray(from, to) : Buffer.concat([...parts, block.subarray(from, to)]);
      parts = [];
      yield { bytes, offset };
      offset += bytes.length + 1;
      from = to + 1;
    }
    if (from < block.length) parts.push(block.subarray(from));
  }
  if (parts.length > 0) yield { bytes: Buffer.concat(parts), offset };
}

/** The lines before `end`, the last one first. */
async function* linesBackward(log: FileHandle, end: number): AsyncGenerator<Line> {
  let parts: Buffer[] = [];
  for (let at = end; at > 0; ) {
    const start = Math.max(0, at - blockBytes);
    const block = await readBlock(log, start, at);
    at = start;
    let to = block.length;
    for (let from = block.lastIndexOf(newline); from >= 0; ) {
      const bytes = Buffer.concat([block.subarray(from + 1, to), ...parts]);
      parts = [];
      if (bytes.length > 0) yield { bytes, offset: start + from + 1 };
      to = from;
      from = from === 0 ? -1 : block.lastIndexOf(newline, from - 1);
    }
    parts.unshift(block.subarray(0, to));
  }
  const first = Buffer.concat(parts);
  if (first.length > 0) yield { bytes: first, offset: 0 };
}

/** The first record that begins in a line after `from`. */
async function recordAfter(log: FileHandle, from: number, end: number): Promise<{ head: Head; offset: number } | null> {
  let first = true;
  for await (const { bytes, offset } of linesForward(log, from, end)) {
    const head = first ? null : parseHead(bytes);
    first = false;
    if (head !== null) return { head, offset };
  }
  return null;
}

/** A line's beginning at or before the first record with a sequence above `after`. Sequences ascend, so bytes can be halved. */
async function seek(log: FileHandle, size: number, after: number): Promise<number> {
  let low = 0;
  let high = size;
  while (after > 0 && high - low > blockBytes) {
    const middle = low + Math.floor((high - low) / 2);
    const found = await recordAfter(log, middle, high);
    if (found !== null && found.head.sequence <= after) low = found.offset;
    else high = middle;
  }
  return low;
}

export type ForwardRequest = {
  /** Only records with a greater sequence. */
  after: number;
  limit: number;
  /** The page ends before its records would take more JSON bytes than this, with at least one record. */
  maxBytes: number;
  filter?: OutputFilter;
};
export type ForwardPage = {
  records: OutputRecord[];
  /** The sequence of the last record looked at, kept or not; `after` when there was none. */
  nextCursor: number;
  /** False when the page is full and there is more. */
  complete: boolean;
};

function jsonBytes(record: OutputRecord): number {
  return Buffer.byteLength(JSON.stringify(record)) + 1;
}

class Page {
  readonly records: OutputRecord[] = [];
  private bytes = 0;
  private readonly limit: number;
  private readonly maxBytes: number;

  constructor(limit: number, maxBytes: number) {
    this.limit = limit;
    this.maxBytes = maxBytes;
  }

  get full(): boolean {
    return this.records.length >= this.limit;
  }

  /** Whether the page can go past a line, which is added when it matched. */
  takes(record: OutputRecord | null): boolean {
    return !this.full && (record === null || this.add(record));
  }

  /** Adds a record unless the page has no room for it. */
  add(record: OutputRecord): boolean {
    const bytes = jsonBytes(record);
    if (this.records.length > 0 && this.bytes + bytes > this.maxBytes) return false;
    this.bytes += bytes;
    this.records.push(record);
    return true;
  }
}

type Seen = { sequence: number; record: OutputRecord | null };

/** What a line is: null when no record, without the record itself when it does not match. */
function see(line: Buffer, filter: OutputFilter | undefined): Seen | null {
  const head = parseHead(line);
  if (head === null) return null;
  if (filter !== undefined && !filter(head)) return { sequence: head.sequence, record: null };
  const record = parseRecord(line.toString("utf8"));
  return record === null ? null : { sequence: record.sequence, record };
}

/** One page from a cursor on; a missing file is an empty, complete page. Throws the system's error. */
export async function readForward(path: string, request: ForwardRequest): Promise<ForwardPage> {
  const { after, limit, maxBytes, filter } = request;
  const page = new Page(limit, maxBytes);
  let nextCursor = after;
  const complete = await withLog(path, async (log, size) => {
    for await (const { bytes } of linesForward(log, await seek(log, size, after), size)) {
      const seen = see(bytes, filter);
      if (seen === null || seen.sequence <= after) continue;
      if (!page.takes(seen.record)) return false;
      nextCursor = seen.sequence;
    }
    return true;
  });
  return { records: page.records, nextCursor, complete: complete ?? true };
}

export type TailRequest = Omit<ForwardRequest, "limit"> & { count: number };
export type TailPage = {
  records: OutputRecord[];
  nextCursor: number;
  /** Matching records that were dropped in front. */
  elided: number;
};

/** Up to here the records in front of a tail are counted one by one; past it the sequences of an unfiltered tail tell. */
const countedBytes = 4 * 1024 * 1024;

async function countMatching(log: FileHandle, request: TailRequest, end: number): Promise<number> {
  let count = 0;
  for await (const { bytes } of linesForward(log, await seek(log, end, request.after), end)) {
    const head = parseHead(bytes);
    if (head !== null && head.sequence > request.after && (request.filter?.(head) ?? true)) count += 1;
  }
  return count;
}

type Gathered = { page: Page; nextCursor: number; firstOffset: number };

/** The newest matching records, newest first, and where the oldest of them begins. */
async function gatherTail(log: FileHandle, size: number, request: TailRequest): Promise<Gathered> {
  const page = new Page(request.count, request.maxBytes);
  let nextCursor = request.after;
  let firstOffset = 0;
  for await (const { bytes, offset } of linesBackward(log, size)) {
    const seen = see(bytes, request.filter);
    if (seen === null) continue;
    if (seen.sequence <= request.after || page.full) break;
    nextCursor = Math.max(nextCursor, seen.sequence);
    if (seen.record === null) continue;
    if (!page.add(seen.record)) break;
    firstOffset = offset;
  }
  return { page, nextCursor, firstOffset };
}

/** The newest `count` matching records in ascending order; a missing file is an empty page. Throws the system's error. */
export async function readTail(path: string, request: TailRequest): Promise<TailPage> {
  const found = await withLog(path, async (log, size) => {
    const { page, nextCursor, firstOffset } = await gatherTail(log, size, request);
    const first = page.records.at(-1);
    if (first === undefined) return { records: [], nextCursor, elided: 0 };
    const bySequence = request.filter === undefined && firstOffset > countedBytes;
    const elided = bySequence ? first.sequence - 1 - request.after : await countMatching(log, request, firstOffset);
    return { records: page.records.reverse(), nextCursor, elided };
  });
  return found ?? { records: [], nextCursor: request.after, elided: 0 };
}

/** The newest matching record, or null. Throws the system's error. */
export async function latestRecord(path: string, filter: OutputFilter): Promise<OutputRecord | null> {
  return withLog(path, async (log, size) => {
    for await (const { bytes } of linesBackward(log, size)) {
      const record = see(bytes, filter)?.record ?? null;
      if (record !== null) return record;
    }
    return null;
  });
}

/** What records show when printed one after another; bytes that are not UTF-8 become U+FFFD, a character split between reads is whole again. */
export function decodeRecords(records: readonly OutputRecord[]): string {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  const texts = records.map((record) => decoders[record.stream].decode(recordContent(record), { stream: true }));
  return texts.join("") + decoders.stdout.decode() + decoders.stderr.decode();
}

/** The last `lines` lines of the matching records, without the final newline; empty when there are none. Throws the system's error. */
export async function lastLines(path: string, filter: OutputFilter, lines: number): Promise<string> {
  const gathered: OutputRecord[] = [];
  await withLog(path, async (log, size) => {
    let newlines = 0;
    for await (const { bytes } of linesBackward(log, size)) {
      if (newlines > lines) return;
      const record = see(bytes, filter)?.record ?? null;
      if (record === null) continue;
      gathered.push(record);
      newlines += recordContent(record).filter((byte) => byte === newline).length;
    }
  });
  const text = decodeRecords(gathered.reverse());
  const trimmed = text.endsWith("\n") ? text.slice(0, -1) : text;
  return trimmed.split("\n").slice(-lines).join("\n");
}

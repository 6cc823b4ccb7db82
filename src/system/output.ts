// The captured output of a run: one JSON record per line, appended in capture order (engine.md 10.3).

import { Buffer, isUtf8 } from "node:buffer";
import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";

export type OutputStream = "stdout" | "stderr";

/** What a record says about where it came from; a stored record may lack the last two. */
export type OutputLabels = { source: "agent" | "stage"; stage?: string; attempt?: number };

export type OutputRecord = OutputLabels & {
  sequence: number;
  timestamp: string;
  stream: OutputStream;
  encoding: "utf8" | "base64";
  text?: string;
  data?: string;
};

/** The most bytes one record holds. */
export const recordBytes = 8192;

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1;
}

function bodyOf(value: Record<string, unknown>): Pick<OutputRecord, "encoding" | "text" | "data"> | null {
  const { encoding, text, data } = value;
  if (encoding === "utf8" && typeof text === "string") return { encoding, text };
  if (encoding === "base64" && typeof data === "string") return { encoding, data };
  return null;
}

function labelsOf(value: Record<string, unknown>): OutputLabels | null {
  const { source, stage, attempt } = value;
  if (source !== "agent" && source !== "stage") return null;
  if (stage !== undefined && typeof stage !== "string") return null;
  if (attempt !== undefined && !isCount(attempt)) return null;
  return { source, ...(stage === undefined ? {} : { stage }), ...(attempt === undefined ? {} : { attempt }) };
}

/** One line of a run log, or null when it is no record: readers skip such lines. */
export function parseRecord(line: string): OutputRecord | null {
  let value: Record<string, unknown> | null;
  try {
    value = JSON.parse(line) as Record<string, unknown> | null;
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { sequence, timestamp, stream } = value;
  if (!isCount(sequence) || typeof timestamp !== "string") return null;
  if (stream !== "stdout" && stream !== "stderr") return null;
  const labels = labelsOf(value);
  const body = bodyOf(value);
  return labels === null || body === null ? null : { sequence, timestamp, ...labels, stream, ...body };
}

/** The bytes a record stands for. */
export function recordContent(record: OutputRecord): Uint8Array {
  return record.encoding === "utf8" ? Buffer.from(record.text ?? "") : Buffer.from(record.data ?? "", "base64");
}

/** Where to cut so that no character is split if that can be helped. */
function pieceEnd(bytes: Uint8Array, start: number): number {
  const end = start + recordBytes;
  if (end >= bytes.length) return bytes.length;
  let cut = end;
  while (cut > end - 4 && ((bytes[cut] ?? 0) & 0xc0) === 0x80) cut -= 1;
  return cut > end - 4 ? cut : end;
}

const tailBlock = 65_536;

/** The sequence of the last complete record in the first `size` bytes, 0 without one. */
function lastSequence(descriptor: number, size: number): number {
  let tail = Buffer.alloc(0);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - tailBlock);
    const block = Buffer.alloc(end - start);
    readSync(descriptor, block, 0, block.length, start);
    tail = Buffer.concat([block, tail]);
    const lines = tail.toString("utf8").split("\n");
    // The first piece may be the end of a line whose beginning is not read yet.
    const whole = start === 0 ? lines : lines.slice(1);
    const found = whole.findLast((line) => parseRecord(line) !== null);
    if (found !== undefined) return parseRecord(found)?.sequence ?? 0;
    end = start;
  }
  return 0;
}

/** Room for what one write puts into the file; a record is at most its bytes as six-character escapes and its head. */
const batchBytes = 524_288;

/** How each byte of a JSON string is written: as it is (0), or behind a backslash as this character; `u` needs four digits more. */
const escapes: Uint8Array = new Uint8Array(256);
escapes.fill(0x75, 0, 0x20);
for (const [code, letter] of Object.entries({ 8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\" })) {
  escapes[Number(code)] = letter.charCodeAt(0);
}
const hexDigits = Buffer.from("0123456789abcdef");

/** Writes valid UTF-8 as the inside of a JSON string at `at`; returns where it ends. No strings are made: this is the hot path. */
function writeEscaped(bytes: Uint8Array, to: Uint8Array, at: number): number {
  let end = at;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index] ?? 0;
    const letter = escapes[byte] ?? 0;
    if (letter === 0) {
      to[end++] = byte;
      continue;
    }
    to[end++] = 0x5c;
    to[end++] = letter;
    if (letter !== 0x75) continue;
    to[end++] = 0x30;
    to[end++] = 0x30;
    to[end++] = hexDigits[byte >> 4] ?? 0;
    to[end++] = hexDigits[byte & 15] ?? 0;
  }
  return end;
}

/**
 * The one writer of a run log while a stage process runs. Appending never throws: what cannot be written is cut off again,
 * and `complete` turns false.
 */
export class OutputLog {
  private readonly descriptor: number;
  private readonly labels: string;
  private readonly batch = Buffer.alloc(batchBytes);
  private batched = 0;
  /** The newest sequence in the file, and the newest given out. */
  private stored: number;
  private sequence: number;
  private size: number;
  private whole = true;
  private dirty = false;

  private constructor(descriptor: number, labels: OutputLabels) {
    this.descriptor = descriptor;
    this.labels = JSON.stringify(labels).slice(1, -1);
    this.size = fstatSync(descriptor).size;
    this.stored = lastSequence(descriptor, this.size);
    this.sequence = this.stored;
    this.endTornLine();
  }

  /** Opens (or makes) the log for appending records with these labels. Throws the system's error. */
  static open(path: string, labels: OutputLabels): OutputLog {
    return new OutputLog(openSync(path, "a+"), labels);
  }

  /** The sequence of the newest record in the file, 0 when there is none. */
  get lastSequence(): number {
    return this.stored;
  }

  /** Whether everything given so far is in the file. */
  get complete(): boolean {
    return this.whole;
  }

  /** Appends what one read of a pipe gave, in records of at most 8192 bytes. `timestamp` is RFC 3339. */
  append(stream: OutputStream, bytes: Uint8Array, timestamp: string): void {
    const head = `,"timestamp":"${timestamp}",${this.labels},"stream":"${stream}","encoding":`;
    const longest = recordBytes * 6 + Buffer.byteLength(head) + 64;
    for (let start = 0; start < bytes.length; ) {
      const end = pieceEnd(bytes, start);
      if (this.batched + longest > batchBytes) this.flush();
      this.addRecord(head, bytes.subarray(start, end));
      start = end;
    }
    this.flush();
  }

  /** Waits until the data is on the disk; on failure the capture counts as incomplete. */
  sync(): void {
    if (!this.dirty) return;
    try {
      fdatasyncSync(this.descriptor);
      this.dirty = false;
    } catch {
      this.whole = false;
    }
  }

  close(): void {
    closeSync(this.descriptor);
  }

  private addRecord(head: string, bytes: Uint8Array): void {
    this.sequence += 1;
    if (isUtf8(bytes)) {
      this.addText(`{"sequence":${this.sequence}${head}"utf8","text":"`);
      this.batched = writeEscaped(bytes, this.batch, this.batched);
      this.addText('"}\n');
      return;
    }
    const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
    this.addText(`{"sequence":${this.sequence}${head}"base64","data":"${data}"}\n`);
  }

  private addText(text: string): void {
    this.batched += this.batch.write(text, this.batched);
  }

  private flush(): void {
    const written = this.batched === 0 || this.write(this.batch.subarray(0, this.batched));
    this.batched = 0;
    if (written) this.stored = this.sequence;
    else this.sequence = this.stored;
  }

  private write(bytes: Uint8Array): boolean {
    this.dirty = true;
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.descriptor, bytes, at);
      this.size += bytes.length;
      return true;
    } catch {
      this.whole = false;
      this.cutBack();
      return false;
    }
  }

  private cutBack(): void {
    try {
      ftruncateSync(this.descriptor, this.size);
    } catch {
      // A torn line stays; readers skip it, and the next opening ends it.
    }
  }

  private endTornLine(): void {
    if (this.size === 0) return;
    const last = Buffer.alloc(1);
    readSync(this.descriptor, last, 0, 1, this.size - 1);
    if (last[0] !== 0x0a) this.write(Buffer.from("\n"));
  }
}

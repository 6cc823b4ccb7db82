// The operational log: one JSON line per event, in the file before the call returns (engine.md 18).

import { appendFileSync, closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";

export type LogLevel = "info" | "warn" | "error";
export type LogTarget = `sloop::${string}`;
export type LogFields = Readonly<Record<string, unknown>>;

/** Never hand it prompts, tokens or output. No method throws: a line that cannot be written is dropped whole. */
export type Log = {
  info(target: LogTarget, event: string, fields?: LogFields): void;
  warn(target: LogTarget, event: string, fields?: LogFields): void;
  error(target: LogTarget, event: string, fields?: LogFields): void;
  close(): void;
};

function renderLine(level: LogLevel, target: LogTarget, event: string, fields: LogFields | undefined): Buffer {
  const timestamp = new Date().toISOString();
  const shown = fields === undefined || Object.keys(fields).length === 0 ? {} : { fields };
  return Buffer.from(`${JSON.stringify({ timestamp, level, target, event, ...shown })}\n`);
}

/** Appends `line`, or cuts the file back to what it was. */
function appendWhole(descriptor: number, line: Buffer): void {
  let taken = 0;
  try {
    while (taken < line.length) taken += writeSync(descriptor, line, taken);
  } catch {
    if (taken > 0) cutBack(descriptor, taken);
  }
}

function cutBack(descriptor: number, bytes: number): void {
  try {
    ftruncateSync(descriptor, fstatSync(descriptor).size - bytes);
  } catch {
    // Nothing better can be done for a log, and a log must not stop the daemon.
  }
}

/** Whether a crash in the middle of a write left a line without its end. */
function endsTorn(path: string): boolean {
  const descriptor = openSync(path, "r");
  try {
    const { size } = fstatSync(descriptor);
    if (size === 0) return false;
    const last = Buffer.alloc(1);
    readSync(descriptor, last, 0, 1, size - 1);
    return last[0] !== 0x0a;
  } finally {
    closeSync(descriptor);
  }
}

/** Opens (or makes) the log at `path` for appending. Throws the system's error when that is impossible. */
export function openLog(path: string): Log {
  const descriptor = openSync(path, "a");
  if (endsTorn(path)) appendFileSync(descriptor, "\n");
  let open = true;
  const write = (level: LogLevel) => (target: LogTarget, event: string, fields?: LogFields) => {
    if (open) appendWhole(descriptor, renderLine(level, target, event, fields));
  };
  return {
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    close() {
      if (open) closeSync(descriptor);
      open = false;
    },
  };
}

const nothing = () => undefined;

/** A log that keeps nothing. */
export const silentLog: Log = { info: nothing, warn: nothing, error: nothing, close: nothing };

// Files read if present, replaced whole, and kept in directories nobody else may enter.

import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { systemCode } from "./code.ts";

export { systemCode };

/** Something stands at a path that is not read whole: no regular file, or far more of one than anybody writes. */
export class NotAFileError extends Error {
  readonly tooLarge: boolean;

  constructor(path: string, what: string, tooLarge = false) {
    super(`${path} ${what}`);
    this.name = "NotAFileError";
    this.tooLarge = tooLarge;
  }
}

/** The most that is read whole of any file. */
export const wholeFileLimit = 16 * 1_048_576;

function tooLarge(path: string): NotAFileError {
  return new NotAFileError(path, `is larger than ${wholeFileLimit / 1_048_576} MiB`, true);
}

function absent(error: unknown): boolean {
  const code = systemCode(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** What stands at a path, links followed, in words for a message; null for a regular file. Throws the system's error. */
function strangeKind(path: string): string | null {
  const found = statSync(path);
  if (found.isFile()) return null;
  if (found.isDirectory()) return "is a directory";
  if (found.isFIFO()) return "is a named pipe";
  return found.isSocket() ? "is a socket" : "is a device";
}

/** Whether a regular file is there, links followed; false also for what cannot be looked at. */
export function isRegularFile(path: string): boolean {
  try {
    return strangeKind(path) === null;
  } catch {
    return false;
  }
}

/** Opens for reading without ever waiting for a writer, whatever was put there since it was looked at. */
function openAtOnce(path: string): number {
  return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
}

/**
 * The whole of a regular file, or null when nothing is there. Throws NotAFileError for anything else that stands there and
 * for a file above `wholeFileLimit`: a pipe or a device could keep the reader for ever. Throws the system's error on any other failure.
 */
export function readIfPresent(path: string): Uint8Array | null {
  try {
    const kind = strangeKind(path);
    if (kind !== null) throw new NotAFileError(path, `${kind}, not a file`);
    const descriptor = openAtOnce(path);
    try {
      if (fstatSync(descriptor).size > wholeFileLimit) throw tooLarge(path);
      return readFileSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if (absent(error)) return null;
    throw error;
  }
}

export type FileReader = (path: string) => Uint8Array | null;

const usualFileBytes = 65_536;

/**
 * A reader for many regular files one after another: what it gives is overwritten by its next call. Null when there is no such
 * file. Throws NotAFileError for a file above `wholeFileLimit`, the system's error on any other failure. It never waits for a writer.
 */
export function openFileReader(): FileReader {
  let buffer = Buffer.allocUnsafe(usualFileBytes);
  const readWhole = (descriptor: number, path: string): number => {
    for (let length = 0; ; ) {
      const read = readSync(descriptor, buffer, length, buffer.length - length, length);
      length += read;
      // A regular file gives less than asked for only at its end.
      if (length < buffer.length) return length;
      if (length > wholeFileLimit) throw tooLarge(path);
      buffer = Buffer.concat([buffer], buffer.length * 4);
    }
  };
  return (path) => {
    let descriptor: number;
    try {
      descriptor = openAtOnce(path);
    } catch (error) {
      if (absent(error)) return null;
      throw error;
    }
    try {
      return buffer.subarray(0, readWhole(descriptor, path));
    } finally {
      closeSync(descriptor);
    }
  };
}

export type WriteOptions = {
  /** Permission bits of the new file, the umask left out; default 0666 less the umask. */
  mode?: number;
  /** Whether to wait until the data, or with `true` its name too, is on the disk. */
  sync?: boolean | "data";
};

let written = 0;

/** Replaces `path` in one step: readers see the old bytes or the new ones. Throws the system's error, leaving the old file. */
export function writeAtomic(path: string, data: string | Uint8Array, options: WriteOptions = {}): void {
  written += 1;
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.${written}.tmp`);
  try {
    const descriptor = openSync(temporary, "w", options.mode ?? 0o666);
    try {
      if (options.mode !== undefined) fchmodSync(descriptor, options.mode);
      writeFileSync(descriptor, data);
      if (options.sync !== undefined && options.sync !== false) fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, path);
  } catch (error) {
    removeIfPresent(temporary);
    throw error;
  }
  if (options.sync === true) syncDirectory(dirname(path));
}

/** Removes a file; quiet when there is none. Throws the system's error on any other failure. */
export function removeIfPresent(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
  }
}

/** Waits until the names in `path` are on the disk; quiet where the file system cannot do that. */
export function syncDirectory(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } catch (error) {
    const code = systemCode(error);
    if (code !== "EINVAL" && code !== "ENOTSUP" && code !== "EPERM") throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** A directory that should be ours alone is somebody else's, or no directory. */
export class PrivateDirectoryError extends Error {
  constructor(path: string, why: string) {
    super(`${path} ${why}`);
    this.name = "PrivateDirectoryError";
  }
}

/** Makes `path` (and what is missing above it) with mode 0700 and sets that mode; throws PrivateDirectoryError when it is not ours. */
export function privateDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const own = process.geteuid?.();
  if (own !== undefined && lstatSync(path).uid !== own)
    throw new PrivateDirectoryError(path, "belongs to another user");
  const found = statSync(path);
  if (!found.isDirectory()) throw new PrivateDirectoryError(path, "is not a directory");
  if ((found.mode & 0o777) !== 0o700) chmodSync(path, 0o700);
}

function listIfPresent(path: string): string[] | null {
  try {
    return readdirSync(path).sort();
  } catch (error) {
    if (absent(error)) return null;
    throw error;
  }
}

/** A regular file's bytes; whatever else stands there is as good as nothing, a link that leads to itself included. */
function readRegular(path: string): Uint8Array | null {
  try {
    return readIfPresent(path);
  } catch (error) {
    if ((error instanceof NotAFileError && !error.tooLarge) || systemCode(error) === "ELOOP") return null;
    throw error;
  }
}

/** How code without file access of its own is given files: a regular file's bytes or a directory's sorted names, null when missing. */
export const fileSource: {
  read(path: string): Uint8Array | null;
  list(path: string): string[] | null;
} = { read: readRegular, list: listIfPresent };

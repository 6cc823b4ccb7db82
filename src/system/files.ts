// Files read if present, replaced whole, and kept in directories nobody else may enter.

import {
  chmodSync,
  closeSync,
  fchmodSync,
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

/** The `code` of a failed system call (`ENOENT`, ...), or null when `error` is something else. */
export function systemCode(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error)) return null;
  return typeof error.code === "string" ? error.code : null;
}

/** The whole file, or null when there is none. Throws the system's error on any other failure. */
export function readIfPresent(path: string): Uint8Array | null {
  try {
    return readFileSync(path);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw error;
  }
}

const usualFileBytes = 65_536;

/**
 * A reader for many files one after another: what it gives is overwritten by its next call. Null when there is no such file.
 * Throws the system's error on any other failure.
 */
export function openFileReader(): (path: string) => Uint8Array | null {
  let buffer = Buffer.allocUnsafe(usualFileBytes);
  const readWhole = (descriptor: number): number => {
    for (let length = 0; ; ) {
      const read = readSync(descriptor, buffer, length, buffer.length - length, length);
      length += read;
      // A regular file gives less than asked for only at its end.
      if (length < buffer.length) return length;
      buffer = Buffer.concat([buffer], buffer.length * 4);
    }
  };
  return (path) => {
    let descriptor: number;
    try {
      descriptor = openSync(path, "r");
    } catch (error) {
      const code = systemCode(error);
      if (code === "ENOENT" || code === "ENOTDIR") return null;
      throw error;
    }
    try {
      return buffer.subarray(0, readWhole(descriptor));
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
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw error;
  }
}

/** How code without file access of its own is given files: a file's bytes or a directory's sorted names, null when missing. */
export const fileSource: {
  read(path: string): Uint8Array | null;
  list(path: string): string[] | null;
} = { read: readIfPresent, list: listIfPresent };

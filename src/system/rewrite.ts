// Replacing a file that somebody else may be editing: the new text is prepared beside it, and an edit is never overwritten.

import { chmodSync, chownSync, closeSync, fsyncSync, openSync, renameSync, statSync, writeSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { readIfPresent, removeIfPresent } from "./files.ts";
import { exchangeNames } from "./libc.ts";
import { syncFiles } from "./sync.ts";

/** A file's next text, complete and beside it under a name of its own. */
export type Prepared = { path: string; temporary: string; text: Uint8Array };

let prepared = 0;
/** Room for the rest of a temporary's name below the 255 bytes of a file name. */
const nameBytes = 180;

function temporaryName(path: string): string {
  prepared += 1;
  let name = basename(path);
  while (Buffer.byteLength(name) > nameBytes) name = name.slice(0, -1);
  return join(dirname(path), `.${name}.sloop-post-${process.pid}-${prepared}.tmp`);
}

/** Whose prepared text a file is, by its name: a process id; null for any other file. */
export function leftBy(path: string): number | null {
  const pid = /\/\.[^/]*\.sloop-post-([0-9]+)-[0-9]+\.tmp$/.exec(path)?.[1];
  return pid === undefined ? null : Number(pid);
}

function keepOwner(temporary: string, owner: { uid: number; gid: number }): void {
  try {
    chownSync(temporary, owner.uid, owner.gid);
  } catch {
    // Only the superuser may give files away; the permission bits are kept all the same.
  }
}

function writeWhole(temporary: string, bytes: Uint8Array, sync: boolean): void {
  const descriptor = openSync(temporary, "wx", 0o600);
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    if (sync) fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Writes `text` beside `path`, with its permission bits; on the disk when it returns, unless `sync` is false. Throws the
 * system's error and leaves nothing.
 */
export function prepareReplacement(path: string, text: string, sync = true): Prepared {
  const before = statSync(path);
  const temporary = temporaryName(path);
  const bytes = Buffer.from(text);
  try {
    writeWhole(temporary, bytes, sync);
    keepOwner(temporary, before);
    chmodSync(temporary, before.mode & 0o7777);
  } catch (error) {
    removeIfPresent(temporary);
    throw error;
  }
  return { path, temporary, text: bytes };
}

/** Waits until texts that were prepared without it are on the disk. Rejects with the system's error. */
export async function syncPrepared(all: readonly Prepared[]): Promise<void> {
  await syncFiles(all.map(({ temporary }) => temporary));
}

/** Drops a replacement that is not wanted any more. */
export function dropReplacement({ temporary }: Prepared): void {
  removeIfPresent(temporary);
}

function bytesAt(path: string): Uint8Array | null {
  try {
    return readIfPresent(path);
  } catch {
    // A directory, or nothing we may read: in no case what we put there.
    return null;
  }
}

function same(left: Uint8Array | null, right: Uint8Array | null): boolean {
  return left === null || right === null ? left === right : Buffer.compare(left, right) === 0;
}

/** Gives a path back to whoever edited it, however often they do so meanwhile. `temporary` names their text, `path` ours. */
function giveBack({ path, temporary, text }: Prepared): void {
  for (let placed: Uint8Array | null = text; ; ) {
    const edit = bytesAt(temporary);
    if (!exchangeNames(temporary, path))
      throw new Error(`an edit of ${path} was made meanwhile and is in ${temporary}`);
    // What was there is what we put there, or an edit that is newer still and belongs back.
    if (same(bytesAt(temporary), placed)) return;
    placed = edit;
  }
}

function place({ path, temporary }: Prepared): "exchanged" | "renamed" {
  if (exchangeNames(temporary, path)) return "exchanged";
  try {
    // No exchange on this file system, or the name cannot be replaced at all: then this says why.
    renameSync(temporary, path);
    return "renamed";
  } catch (error) {
    removeIfPresent(temporary);
    throw error;
  }
}

/**
 * Puts a prepared text in the place of a file that is still as `expected`. "changed": somebody edited the file, before or in
 * this very moment; their text stands and ours is gone. The new name is for the caller to sync. Throws the system's error when the name cannot be replaced; the file
 * is as it was and the prepared text is gone.
 */
export function replaceUnchanged(next: Prepared, expected: (bytes: Uint8Array) => boolean): "replaced" | "changed" {
  const { path, temporary } = next;
  const holds = (name: string) => {
    const bytes = bytesAt(name);
    return bytes !== null && expected(bytes);
  };
  let result: "replaced" | "changed" = "changed";
  if (holds(path)) {
    result = "replaced";
    if (place(next) === "exchanged" && !holds(temporary)) {
      giveBack(next);
      result = "changed";
    }
  }
  removeIfPresent(temporary);
  return result;
}

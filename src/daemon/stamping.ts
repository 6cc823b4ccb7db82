// Stamps many authored files: every new text is prepared before the first name is touched, and no edit is overwritten.

import { dirname } from "node:path";
import { contentHash } from "../core/hash.ts";
import { syncDirectory } from "../system/files.ts";
import {
  dropReplacement,
  type Prepared,
  prepareReplacement,
  replaceUnchanged,
  syncPrepared,
} from "../system/rewrite.ts";
import { openSlices } from "../system/slices.ts";

/** A file's text with its keys added. `path` is repository-relative; `hash` is that of the file as it was read. */
export type Stamp = { path: string; absolute: string; hash: string; text: string };

export type ReadyStamp = Stamp & { prepared: Prepared };

const sliceMs = 10;

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Writes every new text beside its file. Rejects with an Error that names the file; nothing is left then. */
export async function prepareStamps(stamps: readonly Stamp[]): Promise<ReadyStamp[]> {
  const breathe = openSlices(sliceMs);
  const ready: ReadyStamp[] = [];
  let path = "";
  try {
    for (const stamp of stamps) {
      path = stamp.path;
      ready.push({ ...stamp, prepared: prepareReplacement(stamp.absolute, stamp.text, false) });
      await breathe();
    }
    await syncPrepared(ready.map(({ prepared }) => prepared));
    return ready;
  } catch (error) {
    dropStamps(ready);
    throw new Error(`${path}: cannot be stamped: ${reasonOf(error)}`);
  }
}

/** Drops stamps that are not wanted any more. */
export function dropStamps(ready: readonly ReadyStamp[]): void {
  for (const { prepared } of ready) dropReplacement(prepared);
}

export type Placed = {
  /** Files that were edited meanwhile and keep their edit, one line each. */
  edited: string[];
  /** Files whose name could not be replaced, one line each. */
  failed: string[];
};

function placeOne(stamp: ReadyStamp, placed: Placed): void {
  try {
    const result = replaceUnchanged(stamp.prepared, (bytes) => contentHash(bytes) === stamp.hash);
    if (result === "changed") placed.edited.push(`${stamp.path}: not stamped: it was edited meanwhile`);
  } catch (error) {
    placed.failed.push(`${stamp.path}: cannot be stamped: ${reasonOf(error)}`);
  }
}

/** Puts prepared stamps in place; files that are named in the result are untouched. */
export async function placeStamps(ready: readonly ReadyStamp[]): Promise<Placed> {
  const breathe = openSlices(sliceMs);
  const placed: Placed = { edited: [], failed: [] };
  for (const stamp of ready) {
    placeOne(stamp, placed);
    await breathe();
  }
  for (const directory of new Set(ready.map(({ absolute }) => dirname(absolute)))) syncDirectory(directory);
  return placed;
}

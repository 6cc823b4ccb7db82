// Reads the configuration of the current directory while the program is still loading; one after the other would take longer.

import { configFile } from "../system/config-file.ts";

type Ahead = { path: string; bytes: Promise<Uint8Array | null> };

/** A larger file is for the reader that knows what to say about it. */
const usualBytes = 1_048_576;
let ahead: Ahead | null = null;

async function read(path: string): Promise<Uint8Array | null> {
  try {
    const file = Bun.file(path);
    // Asked first, because reading a pipe would wait for whoever writes to it.
    return (await file.exists()) && file.size <= usualBytes ? await file.bytes() : null;
  } catch {
    return null;
  }
}

/** Begins to read, once per process; never throws. Most commands are typed at the repository's top level. */
export function readAhead(): void {
  try {
    const path = `${process.cwd()}/${configFile}`;
    ahead = { path, bytes: read(path) };
  } catch {
    // The directory is gone; whoever needs it will say so.
  }
}

/** The bytes of `path`, read just now; null when they are to be read in the careful way. */
export async function quickBytes(path: string): Promise<Uint8Array | null> {
  return await (ahead?.path === path ? ahead.bytes : read(path));
}

// Giving back the pages of program code that only the start needed: daemons and supervisors wait for hours, and there may be many.

import { dlopen } from "bun:ffi";
import { readFileSync } from "node:fs";

const dontNeed = 4;
/** Executable, not writable, and from a file: read again from there when it runs once more. */
const codePattern = /^([0-9a-f]+)-([0-9a-f]+) r-xp \S+ \S+ [0-9]+\s+\//gm;

/** Drops resident code pages (Linux; elsewhere nothing happens). They come back from the page cache as they are needed. */
export function trimCode(): void {
  if (process.platform !== "linux") return;
  try {
    const { symbols, close } = dlopen("libc.so.6", { madvise: { args: ["u64", "u64", "i32"], returns: "i32" } });
    for (const [, from, to] of readFileSync("/proc/self/maps", "latin1").matchAll(codePattern)) {
      const start = BigInt(`0x${from}`);
      symbols.madvise(start, BigInt(`0x${to}`) - start, dontNeed);
    }
    close();
  } catch {
    // Another C library, or no /proc: then the pages stay.
  }
}

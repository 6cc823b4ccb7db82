// A copy of a checkout's index, for a look that must not touch the real one.

import { copyFileSync, statSync, utimesSync } from "node:fs";

/**
 * Copies an index with its time. Git reads a file anew, though size and time are those it knows, only if it may have changed
 * after the index was written: a copy that looks younger would hide an edit made in the moment of a commit. Throws the
 * system's error.
 */
export function copyIndex(from: string, to: string): void {
  const { atimeMs, mtimeMs } = statSync(from);
  copyFileSync(from, to);
  // Rounded down: older only makes git look more often.
  utimesSync(to, atimeMs / 1000, Math.floor(mtimeMs) / 1000 - 0.001);
}

// A directory for what git needs for a moment, where there is room for one.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readLayout } from "./layout.ts";

/**
 * Makes a directory of our own in the system's place for such things; in the git directory of `checkout` where that is gone.
 * Whoever asks removes it. Throws the system's error when neither takes one.
 */
export function makeScratch(checkout: string, prefix: string): string {
  try {
    return mkdtempSync(join(tmpdir(), prefix));
  } catch (error) {
    const gitDir = readLayout(checkout)?.gitDir;
    if (gitDir === undefined) throw error;
    return mkdtempSync(join(gitDir, prefix));
  }
}

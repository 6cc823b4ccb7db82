// How a started command says that it has come to its first instruction: one line into a named pipe that we read.

import { closeSync, constants, openSync } from "node:fs";
import type { BenchContext } from "./bench.ts";

export type Signal = {
  path: string;
  /** Resolves when the next line arrives, to `performance.now()`. */
  next(): Promise<number>;
};

/** Makes the pipe at `path`. */
export function openSignal(context: BenchContext, path: string): Signal {
  const made = Bun.spawnSync(["mkfifo", path]);
  if (made.exitCode !== 0) throw new Error(`mkfifo ${path}: ${made.stderr}`);
  // Open for writing too: the pipe never ends when a writer leaves.
  const descriptor = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const reader = Bun.file(descriptor).stream().getReader();
  context.later(async () => {
    await reader.cancel().catch(() => undefined);
    try {
      closeSync(descriptor);
    } catch {
      // The reader has closed it.
    }
  });
  return {
    path,
    async next() {
      const { done } = await reader.read();
      if (done) throw new Error(`${path} ended`);
      return performance.now();
    },
  };
}

// From the command's pipes into the run log, as fast as they fill and without holding more than one read.

import { closeSync, fstatSync } from "node:fs";
import { formatInstant } from "../core/instant.ts";
import type { Clock } from "../system/clock.ts";
import type { OutputLog, OutputStream } from "../system/output.ts";
import { pipeHolders } from "../system/proc.ts";

export type CaptureOptions = {
  log: OutputLog;
  clock: Clock;
  stdout: number;
  stderr: number;
  /** Called after records were appended. */
  onOutput(): void;
};

/** Both pipes of one command being read. */
export type Capture = {
  /** Waits for the end of both pipes, at most `limitMs`; resolves to the processes that still hold one (Linux). */
  drain(limitMs: number): Promise<number[]>;
};

async function readPipe(options: CaptureOptions, stream: OutputStream): Promise<void> {
  const reader = Bun.file(options[stream]).stream().getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    options.log.append(stream, value, formatInstant(options.clock.now()));
    options.onOutput();
  }
}

/** Reads both pipes from now on. */
export function startCapture(options: CaptureOptions): Capture {
  const open = new Set<OutputStream>(["stdout", "stderr"]);
  // A pipe that cannot be read any more has nothing more to say.
  const readOne = (stream: OutputStream) =>
    readPipe(options, stream)
      .catch(() => undefined)
      .then(() => void open.delete(stream));
  const ended = Promise.all([readOne("stdout"), readOne("stderr")]);
  return {
    async drain(limitMs) {
      await Promise.race([ended, Bun.sleep(limitMs)]);
      return [...new Set([...open].flatMap((stream) => pipeHolders(fstatSync(options[stream]).ino)))];
    },
  };
}

/** Closes a descriptor that may be closed already. */
export function closeQuietly(descriptor: number): void {
  try {
    closeSync(descriptor);
  } catch {
    // Already closed.
  }
}

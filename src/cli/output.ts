// The only writer of the CLI's two streams: a text is out before its promise resolves, and a closed pipe ends the command quietly.

/** A stream that nobody reads any more, or that cannot take more: exit 1, no message. */
export class ClosedStream extends Error {
  constructor(cause: unknown) {
    super("output could not be written", { cause });
    this.name = "ClosedStream";
  }
}

/** Writes `text` as it is to standard output. Rejects with ClosedStream. */
export async function writeOut(text: string): Promise<void> {
  try {
    // Waits for a full pipe and costs nothing at start; `process.stdout` and `node:fs` each cost milliseconds.
    await Bun.write(Bun.stdout, text);
  } catch (error) {
    throw new ClosedStream(error);
  }
}

/** Writes `text` as it is to standard error; when that is closed there is nobody left to tell. */
export async function writeError(text: string): Promise<void> {
  try {
    await Bun.write(Bun.stderr, text);
  } catch {
    // Nothing can be said about it.
  }
}

// Runs a command that takes one request and gives one answer: input written and closed, output read to its end.

import type { Environment } from "./environment.ts";
import { signalGroup } from "./process.ts";

export type OneShot = {
  argv: readonly string[];
  cwd: string;
  env: Environment;
  input: string;
  /** More output than this ends the command. */
  limitBytes: number;
};

export type OneShotEnd =
  | { kind: "ended"; exitCode: number | null; signal: string | null; stdout: Uint8Array; stderr: string }
  | { kind: "too-much" }
  /** It could not be started; why. */
  | { kind: "absent"; cause: string };

const stderrKept = 65_536;

type Output = ReadableStream<Uint8Array>;

/** Everything that comes, or null once it is more than `limitBytes`. */
async function readAll(output: Output, limitBytes: number): Promise<Uint8Array | null> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of output) {
    length += part.length;
    if (length > limitBytes) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** The end of everything that comes. */
async function readTail(output: Output): Promise<string> {
  let tail = Buffer.alloc(0);
  for await (const part of output) tail = Buffer.concat([tail, part]).subarray(-stderrKept);
  return tail.toString();
}

/** Runs it without a shell, in a group of its own, however long it takes. Never rejects. */
export async function runOneShot(command: OneShot): Promise<OneShotEnd> {
  const { argv, cwd, env, input, limitBytes } = command;
  let child: Bun.Subprocess<Uint8Array, "pipe", "pipe">;
  try {
    // A child that ends without reading is nothing special: what it did not take is dropped.
    child = Bun.spawn([...argv], {
      cwd,
      env,
      stdin: Buffer.from(input),
      stdout: "pipe",
      stderr: "pipe",
      detached: true,
    });
  } catch (error) {
    return { kind: "absent", cause: error instanceof Error ? error.message : String(error) };
  }
  const [stdout, stderr] = await Promise.all([
    readAll(child.stdout, limitBytes).then((bytes) => {
      if (bytes === null) signalGroup(child.pid, "SIGKILL");
      return bytes;
    }),
    readTail(child.stderr),
    child.exited,
  ]);
  if (stdout === null) return { kind: "too-much" };
  const signal = child.signalCode === null ? null : String(child.signalCode);
  return { kind: "ended", exitCode: child.exitCode, signal, stdout, stderr };
}

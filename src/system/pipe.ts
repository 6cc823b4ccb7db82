// A real pipe. Bun gives children socket pairs, and a command that opens /dev/stdout or /dev/stderr anew cannot open a socket.

import { dlopen, ptr } from "bun:ffi";
import { constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromC } from "./libc.ts";

export type Pipe = {
  /** Descriptors of our own, closed in children unless handed to them; each is to be closed by its user. */
  readEnd: number;
  writeEnd: number;
};

/** O_CLOEXEC of pipe2(2) on Linux; macOS has no pipe2, and Bun closes there what a child is not handed. */
const closeOnExec = 0o2000000;

type PipeCall = (ends: Int32Array) => number;

function loadPipeCall(library: string): PipeCall | null {
  try {
    if (process.platform === "darwin") {
      const { symbols } = dlopen(library, { pipe: { args: ["ptr"], returns: "i32" } });
      return (ends) => symbols.pipe(ptr(ends));
    }
    const { symbols } = dlopen(library, { pipe2: { args: ["ptr", "i32"], returns: "i32" } });
    return (ends) => symbols.pipe2(ptr(ends), closeOnExec);
  } catch {
    return null;
  }
}

let pipeCall: PipeCall | null | undefined;

function systemPipe(): Pipe | null {
  if (pipeCall === undefined) pipeCall = fromC(loadPipeCall);
  if (pipeCall === null) return null;
  const ends = new Int32Array(2);
  if (pipeCall(ends) !== 0) return null;
  const [readEnd, writeEnd] = ends;
  return readEnd === undefined || writeEnd === undefined ? null : { readEnd, writeEnd };
}

/** Where the C library has another name: a named pipe whose name is gone before anybody could see it. */
function namedPipe(): Pipe {
  const directory = mkdtempSync(join(tmpdir(), "sloop-pipe-"));
  try {
    const path = join(directory, "pipe");
    const made = Bun.spawnSync(["mkfifo", "-m", "600", path], { stderr: "pipe" });
    if (made.exitCode !== 0) throw new Error(`mkfifo failed: ${made.stderr.toString().trim()}`);
    const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return { readEnd, writeEnd: openSync(path, constants.O_WRONLY) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Makes a pipe. Throws when the system gives none. */
export function openPipe(): Pipe {
  return systemPipe() ?? namedPipe();
}

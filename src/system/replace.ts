// Becoming another program in place: same pid, same session, the file that stands at our path by now.

import { readFileSync, realpathSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";

function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

/** How this process was named when it was started; null where the system does not tell. */
function invokedAs(): string | null {
  try {
    return readFileSync("/proc/self/cmdline", "utf8").split("\0")[0] ?? null;
  } catch {
    return null;
  }
}

/**
 * The path this program was started from, symlinks kept, so that an upgrade that turns a link is followed. Call it at
 * start: the working directory and the file may change later.
 */
export function startedFrom(executable: string, env: Readonly<Record<string, string | undefined>>): string {
  const name = invokedAs();
  if (name === null || name === "") return executable;
  const found = name.includes("/") ? resolve(name) : Bun.which(name, { PATH: env["PATH"] ?? "" });
  return found !== null && isAbsolute(found) && realPath(found) === realPath(executable) ? found : executable;
}

/** Replaces this process; returns only by throwing the system's error. Every descriptor but 0-2 is closed. */
export function replaceProcess(path: string, args: readonly string[], env: Record<string, string>): never {
  const { execve } = process as unknown as {
    execve(file: string, argv: string[], env: Record<string, string>): never;
  };
  return execve(path, [path, ...args], env);
}

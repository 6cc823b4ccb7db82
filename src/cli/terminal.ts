// Whether somebody watches: standard output or error is a terminal.

import { fstatSync, statSync } from "node:fs";

function isTerminal(descriptor: number): boolean {
  try {
    const stream = fstatSync(descriptor);
    // Loading the terminal module costs as much as half a command; pipes, files and /dev/null need no such question.
    if (!stream.isCharacterDevice() || stream.rdev === statSync("/dev/null").rdev) return false;
    return process.getBuiltinModule("node:tty").isatty(descriptor);
  } catch {
    return false;
  }
}

/** Whether standard output is a terminal. */
export function outIsTerminal(): boolean {
  return isTerminal(1);
}

/** Whether standard error is a terminal. */
export function errorIsTerminal(): boolean {
  return isTerminal(2);
}

// Whether somebody watches: standard output or error is a terminal.

import { fstatSync } from "node:fs";

function isTerminal(descriptor: number): boolean {
  try {
    // Loading the terminal module costs as much as a whole command; pipes and files need no such question.
    return fstatSync(descriptor).isCharacterDevice() && process.getBuiltinModule("node:tty").isatty(descriptor);
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

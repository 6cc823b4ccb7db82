// Whether somebody watches: standard output or error is a terminal.

function isTerminal(descriptor: number): boolean {
  try {
    // Not imported: a command that prints JSON never asks, and is a tenth faster without it.
    const { fstatSync, statSync } = process.getBuiltinModule("node:fs");
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

/** Columns of the terminal behind standard output (1) or error (2); 80 where it does not tell. Only for a terminal. */
export function terminalColumns(descriptor: 1 | 2): number {
  const { columns } = descriptor === 1 ? process.stdout : process.stderr;
  return columns > 0 ? columns : 80;
}

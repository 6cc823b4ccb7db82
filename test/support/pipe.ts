// A named pipe that nobody writes to: whoever reads it as if it were a file waits for ever.

/** Makes one at `path`. */
export function makePipe(path: string): void {
  const made = Bun.spawnSync(["mkfifo", path], { stderr: "pipe" });
  if (made.exitCode !== 0) throw new Error(`mkfifo ${path}: ${made.stderr.toString()}`);
}

// Waiting until many files are on the disk: one file after another, or all that a file system holds back at once.

import { statSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";

const syncsAtOnce = 32;
/** From here on, writing out everything that waits costs a fraction of what the files cost one after another. */
const manyFiles = 64;

async function syncEach(paths: readonly string[]): Promise<void> {
  const left = paths[Symbol.iterator]();
  const worker = async () => {
    for (const path of left) {
      const file = await open(path, "r");
      try {
        await file.sync();
      } finally {
        await file.close();
      }
    }
  };
  await Promise.all(Array.from({ length: syncsAtOnce }, worker));
}

/** One directory for each file system that holds any of the files. */
function fileSystems(paths: readonly string[]): string[] {
  const byDevice = new Map<number, string>();
  for (const directory of new Set(paths.map(dirname))) byDevice.set(statSync(directory).dev, directory);
  return [...byDevice.values()];
}

/** Has Linux's `sync` write out whole file systems; false where it cannot. */
async function syncWhole(paths: readonly string[]): Promise<boolean> {
  if (process.platform !== "linux") return false;
  try {
    const argv = ["sync", "-f", "--", ...fileSystems(paths)];
    const env = { PATH: process.env["PATH"] };
    const child = Bun.spawn(argv, { env, stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    return (await child.exited) === 0;
  } catch {
    // No such program here.
    return false;
  }
}

/** Waits until the contents of all those files are on the disk. Rejects with the system's error. */
export async function syncFiles(paths: readonly string[]): Promise<void> {
  if (paths.length >= manyFiles && (await syncWhole(paths))) return;
  await syncEach(paths);
}

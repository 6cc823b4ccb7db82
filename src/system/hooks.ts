// Pause points for tests, present in the shipped program (engine.md 19.2, cli.md 7.4).

import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const pollMs = 10;

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

async function pauseAt(directory: string, name: string): Promise<void> {
  if (!isFile(join(directory, `${name}.armed`))) return;
  try {
    writeFileSync(join(directory, `${name}.reached`), "");
  } catch {
    return;
  }
  const release = join(directory, `${name}.release`);
  while (!isFile(release)) await Bun.sleep(pollMs);
}

/** The function to call at every pause point; without `SLOOP_TEST_HOOK_DIR` it does nothing. Never rejects. */
export function openHooks(env: Readonly<Record<string, string | undefined>>): (name: string) => Promise<void> {
  const directory = env["SLOOP_TEST_HOOK_DIR"];
  if (directory === undefined || directory === "") {
    const done = Promise.resolve();
    return () => done;
  }
  return (name) => pauseAt(directory, name);
}

// What the binary says when it refuses a command under --json.

import { expect } from "bun:test";
import type { RunOptions } from "../support/bin.ts";
import type { World } from "../support/repo.ts";

export type Refusal = { code: string; message: string };

/** Runs a command that must be refused with exit 1 and nothing on standard output; the error of its envelope. */
export async function refusal(world: World, args: string[], options: RunOptions = {}): Promise<Refusal> {
  const ran = await world.sloop(["--json", ...args], options);
  expect([ran.code, ran.stdout]).toEqual([1, ""]);
  return (JSON.parse(ran.stderr) as { error: Refusal }).error;
}

/** Every fragment must be in `message`. */
export function expectGist(message: string, gist: readonly string[]): void {
  for (const fragment of gist) expect(message).toContain(fragment);
}

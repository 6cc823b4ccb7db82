// How an action reads that ran no supervised process: its instants are the daemon's own.

import type { Daemon } from "./context.ts";
import type { Reading } from "./stage.ts";

/** Times `body`; what it returns is the reading, without the instants. */
export async function timed(
  daemon: Daemon,
  body: () => Promise<{ passed: boolean; exitCode: number | null; reason: string | null }>,
): Promise<Reading> {
  const startedAtMs = daemon.clock.now();
  const result = await body();
  return { ...result, startedAtMs, finishedAtMs: daemon.clock.now() };
}

export const pass = { passed: true, exitCode: 0, reason: null } as const;

/** A builtin that found a reason not to go on. */
export function fail(reason: string | null, exitCode: number | null = 1) {
  return { passed: false, exitCode, reason };
}

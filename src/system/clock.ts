// What time it is: the system's clock, or the integer in a file when a test steers it (engine.md 19.1).

import { readFileSync } from "node:fs";

/** `now` is epoch milliseconds. `pollMs` is how often a waiter looks again; absent on a clock nobody steers. */
export type Clock = { now(): number; readonly pollMs?: number };

const steeredPollMs = 10;
/** A laptop may sleep and a person may set the clock, so no wait trusts one timer for longer than this. */
const longestTimerMs = 30_000;

/** The clock that `SLOOP_TEST_CLOCK_PATH` names, else the system's. Never throws. */
export function openClock(env: Readonly<Record<string, string | undefined>>): Clock {
  const path = env["SLOOP_TEST_CLOCK_PATH"];
  if (path === undefined || path === "") return { now: () => Date.now() };
  let lastGood = 0;
  return {
    pollMs: steeredPollMs,
    now() {
      lastGood = readSteered(path) ?? lastGood;
      return lastGood;
    },
  };
}

function readSteered(path: string): number | null {
  try {
    const text = readFileSync(path, "utf8").trim();
    if (!/^-?[0-9]+$/.test(text)) return null;
    const value = Number(text);
    return Number.isSafeInteger(value) ? value : null;
  } catch {
    return null;
  }
}

/** Resolves once `clock` has reached `atMs` (epoch ms) or `signal` is aborted; look at the signal to tell which. */
export function waitUntil(clock: Clock, atMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const finish = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const look = () => {
      const left = atMs - clock.now();
      if (left <= 0) finish();
      else timer = setTimeout(look, clock.pollMs ?? Math.min(left, longestTimerMs));
    };
    if (signal.aborted) {
      resolve();
      return;
    }
    signal.addEventListener("abort", finish);
    look();
  });
}

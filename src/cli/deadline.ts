// When a follower gives up, and sleeping no longer than that.

import { timedOut } from "./refusal.ts";
import type { Session } from "./session.ts";

/** When to give up, on a clock that only goes forward (ms); null: never. */
export type Deadline = number | null;

/** From `--timeout`, else `usualMs`. */
export function deadlineOf(session: Session, usualMs: number | null): Deadline {
  const timeoutMs = session.values.numbers.get("timeout") ?? usualMs;
  return timeoutMs === null ? null : performance.now() + timeoutMs;
}

/** Throws the time-out (exit 2) once the deadline is over by more than `graceMs`; `ref` null: the dashboard. */
export function checkDeadline(deadline: Deadline, ref: string | null, graceMs = 0): void {
  if (deadline !== null && performance.now() > deadline + graceMs) throw timedOut(ref);
}

/** Sleeps `ms`, but not beyond the deadline; throws the time-out (exit 2) when that is already reached. */
export async function pauseWithin(deadline: Deadline, ms: number, ref: string | null): Promise<void> {
  const left = deadline === null ? ms : deadline - performance.now();
  if (left <= 0) throw timedOut(ref);
  await Bun.sleep(Math.min(ms, left));
}

// How long a ticket whose launch failed is left alone: a permanent fault must not spin (engine.md 8.4).

const firstMs = 1000;
const longestMs = 60_000;

export type BackoffLimits = { firstMs: number; longestMs: number };

/** What is left alone, why, and for how many milliseconds still. */
export type Waiting = { id: string; problem: string; forMs: number };

/** In memory only, on a clock that nobody sets: 1 s after the first failure, doubling to 60 s, cleared by a success. */
export type Backoff = {
  /** Whether it must still be left alone. */
  holds(id: string): boolean;
  /** Counts one more failure; how long until the next try, in ms. */
  fail(id: string, problem: string): number;
  clear(id: string): void;
  waiting(): Waiting[];
};

/** `now` gives milliseconds of any steady clock; the limits are the first and the longest delay in ms. */
export function openBackoff(now: () => number, limits: BackoffLimits = { firstMs, longestMs }): Backoff {
  const entries = new Map<string, { until: number; delayMs: number; problem: string }>();
  return {
    holds: (id) => (entries.get(id)?.until ?? 0) > now(),
    fail(id, problem) {
      const before = entries.get(id)?.delayMs;
      const delayMs = before === undefined ? limits.firstMs : Math.min(before * 2, limits.longestMs);
      entries.set(id, { until: now() + delayMs, delayMs, problem });
      return delayMs;
    },
    clear: (id) => {
      entries.delete(id);
    },
    waiting: () =>
      [...entries].flatMap(([id, { until, problem }]) => {
        const forMs = until - now();
        return forMs > 0 ? [{ id, problem, forMs }] : [];
      }),
  };
}

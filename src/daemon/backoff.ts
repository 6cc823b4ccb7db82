// How long a ticket whose launch failed is left alone: a permanent fault must not spin (engine.md 8.4).

const firstMs = 1000;
const longestMs = 60_000;

export type BackoffLimits = { firstMs: number; longestMs: number };

/** In memory only, on the wall clock: 1 s after the first aborted launch, doubling to 60 s, cleared by a start. */
export type Backoff = {
  /** Whether the ticket must still be left alone. */
  holds(ticketId: string): boolean;
  /** Counts one more failed launch; how long until the next try, in ms. */
  fail(ticketId: string): number;
  clear(ticketId: string): void;
};

/** `now` gives wall-clock milliseconds; the limits are the first and the longest delay in ms. */
export function openBackoff(now: () => number, limits: BackoffLimits = { firstMs, longestMs }): Backoff {
  const entries = new Map<string, { until: number; delayMs: number }>();
  return {
    holds: (ticketId) => (entries.get(ticketId)?.until ?? 0) > now(),
    fail(ticketId) {
      const before = entries.get(ticketId)?.delayMs;
      const delayMs = before === undefined ? limits.firstMs : Math.min(before * 2, limits.longestMs);
      entries.set(ticketId, { until: now() + delayMs, delayMs });
      return delayMs;
    },
    clear: (ticketId) => {
      entries.delete(ticketId);
    },
  };
}

// How long a ticket whose launch failed is left alone: a permanent fault must not spin (engine.md 8.4).

const firstMs = 1000;
const longestMs = 60_000;

/** In memory only, on the wall clock: 1 s after the first aborted launch, doubling to 60 s, cleared by a start. */
export type Backoff = {
  /** Whether the ticket must still be left alone. */
  holds(ticketId: string): boolean;
  /** Counts one more failed launch; how long until the next try, in ms. */
  fail(ticketId: string): number;
  clear(ticketId: string): void;
};

/** `now` gives wall-clock milliseconds. */
export function openBackoff(now: () => number): Backoff {
  const entries = new Map<string, { until: number; delayMs: number }>();
  return {
    holds: (ticketId) => (entries.get(ticketId)?.until ?? 0) > now(),
    fail(ticketId) {
      const before = entries.get(ticketId)?.delayMs;
      const delayMs = before === undefined ? firstMs : Math.min(before * 2, longestMs);
      entries.set(ticketId, { until: now() + delayMs, delayMs });
      return delayMs;
    },
    clear: (ticketId) => {
      entries.delete(ticketId);
    },
  };
}

// How instants are written: epoch milliseconds in, RFC 3339 UTC text out.

/** RFC 3339 in UTC, the fraction's trailing zeros dropped, no fraction on a whole second (protocol.md, top). */
export function formatInstant(ms: number): string {
  return new Date(ms).toISOString().replace(/\.?0*Z$/, "Z");
}

/** RFC 3339 in UTC with exactly three fraction digits: event, log and operational lines. */
export function formatInstantFull(ms: number): string {
  return new Date(ms).toISOString();
}

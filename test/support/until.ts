// Waiting for a condition instead of for a time.

/**
 * Asks `condition` every few milliseconds until it gives something truthy, and returns that.
 * Throws with `what` after `timeoutMs` (default 20 000): a condition that never comes is a failure, not a pass.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  what = "condition",
  timeoutMs = 20_000,
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value) return value as NonNullable<Exclude<T, false>>;
    if (performance.now() > deadline) throw new Error(`timed out after ${timeoutMs} ms waiting for ${what}`);
    await Bun.sleep(5);
  }
}

// When each run that the database no longer knows was first missed: its hidden references outlive that by their retention.

import { readIfPresent, writeAtomic } from "../system/files.ts";

/** Epoch ms by run id. */
export type DroppedRuns = Map<string, number>;

/** Reads the record. One that cannot be understood is as good as none: the references then only stay longer. */
export function readDropped(path: string): DroppedRuns {
  const dropped: DroppedRuns = new Map();
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(readIfPresent(path) ?? new Uint8Array()));
    if (typeof value !== "object" || value === null) return dropped;
    for (const [runId, atMs] of Object.entries(value)) if (Number.isSafeInteger(atMs)) dropped.set(runId, atMs);
  } catch {
    // Not written yet, or damaged.
  }
  return dropped;
}

/**
 * Brings the record in line with the runs that are missed now, each new one from `now` on (epoch ms), and returns it. One
 * that would lie in the future begins anew. Throws the system's error when it cannot be written.
 */
export function recordDropped(path: string, missed: readonly string[], now: number): DroppedRuns {
  const before = readDropped(path);
  const after: DroppedRuns = new Map(missed.map((runId) => [runId, Math.min(before.get(runId) ?? now, now)]));
  const changed = after.size !== before.size || [...after].some(([runId, atMs]) => before.get(runId) !== atMs);
  if (changed) writeAtomic(path, `${JSON.stringify(Object.fromEntries(after))}\n`, { mode: 0o600, sync: true });
  return after;
}

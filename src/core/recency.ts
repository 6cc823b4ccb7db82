// The order of every ticket list: newest registration first, then the number in the id, then the id (protocol.md 6.2).

import { ordinal } from "./ids.ts";

export type Registered = { id: string; createdAtMs: number };

type Keyed<T> = { row: T; number: number | bigint };

/** Digits a double holds exactly, whatever they are. */
const exactDigits = 15;

// Numbers where they are exact, since there may be thousands of ids; a bigint only beyond that.
function numberIn(id: string): number | bigint {
  const digits = id.slice(id.lastIndexOf("-") + 1);
  if (digits.length <= exactDigits) return digits.length < id.length && /^[0-9]+$/.test(digits) ? Number(digits) : 0;
  const exact = ordinal(id);
  return exact <= Number.MAX_SAFE_INTEGER ? Number(exact) : exact;
}

function compare<T extends Registered>(a: Keyed<T>, b: Keyed<T>): number {
  if (a.row.createdAtMs !== b.row.createdAtMs) return b.row.createdAtMs - a.row.createdAtMs;
  if (a.number !== b.number) return a.number < b.number ? 1 : -1;
  return a.row.id < b.row.id ? 1 : -1;
}

function keep<T extends Registered>(best: Keyed<T>[], candidate: Keyed<T>): void {
  let at = best.length - 1;
  while (at > 0 && compare(candidate, best[at - 1] as Keyed<T>) < 0) {
    best[at] = best[at - 1] as Keyed<T>;
    at -= 1;
  }
  best[at] = candidate;
}

/** The first `limit` of the rows in that order; all of them for null. */
export function newestFirst<T extends Registered>(rows: readonly T[], limit: number | null): T[] {
  const keyed = rows.map((row) => ({ row, number: numberIn(row.id) }));
  if (limit === 0) return [];
  if (limit === null || keyed.length <= 4 * limit || limit > 256) {
    const sorted = keyed.sort(compare).map(({ row }) => row);
    return limit === null ? sorted : sorted.slice(0, limit);
  }
  // Few out of many: sorting the rest would be in vain.
  const best = keyed.slice(0, limit).sort(compare);
  for (const candidate of keyed.slice(limit)) {
    if (compare(candidate, best[limit - 1] as Keyed<T>) < 0) keep(best, candidate);
  }
  return best.map(({ row }) => row);
}

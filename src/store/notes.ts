// Notes that workers leave on their runs.

import { reserveId } from "./counters.ts";
import type { Queries } from "./open.ts";
import { notes } from "./tables.ts";

/** Stores the text as sent; returns the note's id. */
export function recordNote(tx: Queries, runId: string, text: string, now: number): string {
  const id = reserveId(tx, "note");
  tx.insert(notes).values({ id, runId, text, recordedAtMs: now }).run();
  return id;
}

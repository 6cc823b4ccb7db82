// The one journal behind the activity feed: an event is written in the transaction of the change it reports.

import type { Queries } from "./open.ts";
import { events } from "./tables.ts";

type NewEvent = {
  kind: string;
  runId?: string;
  ticketId?: string;
  data?: Record<string, unknown>;
};

/** Appends one event at `now` (epoch ms). */
export function appendEvent(tx: Queries, event: NewEvent, now: number): void {
  tx.insert(events)
    .values({
      occurredAtMs: now,
      kind: event.kind,
      runId: event.runId ?? null,
      ticketId: event.ticketId ?? null,
      dataJson: JSON.stringify(event.data ?? {}),
    })
    .run();
}

// Ticket files that are gone: marked when the daemon starts, and dropped when nothing refers to them any more (engine.md 15.5).

import { join } from "node:path";
import type { Config } from "../core/config.ts";
import { deleteUnreferenced, listFiledTickets, setMissing } from "../store/missing.ts";
import type { Store } from "../store/open.ts";
import { isRegularFile } from "../system/files.ts";

type Change = { id: string; missingAtMs: number | null };

/** Compares every ticket with its file: present clears the mark, absent sets it, absent for long enough drops the ticket. */
export function reconcileFiles(source: { root: string; config: Config }, store: Store, now: number): void {
  const { root, config } = source;
  const changes: Change[] = [];
  const expired: string[] = [];
  for (const ticket of listFiledTickets(store.db)) {
    const present = isRegularFile(join(root, ticket.filePath));
    if (present && ticket.missingAtMs !== null) changes.push({ id: ticket.id, missingAtMs: null });
    if (present) continue;
    if (ticket.missingAtMs === null) changes.push({ id: ticket.id, missingAtMs: now });
    else if (now - ticket.missingAtMs >= config.deleteMissingAfterMs) expired.push(ticket.id);
  }
  if (changes.length === 0 && expired.length === 0) return;
  store.write((tx) => {
    for (const change of changes) setMissing(tx, change.id, change.missingAtMs, now);
    for (const id of expired) deleteUnreferenced(tx, id);
  });
}

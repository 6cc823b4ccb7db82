// Numbers that are never given out twice: `TR<n>` and `N<n>`.

import { eq, sql } from "drizzle-orm";
import type { Queries } from "./open.ts";
import { idCounters, notes, triggers } from "./tables.ts";

const numbered = { trigger: { table: triggers, prefix: "TR" }, note: { table: notes, prefix: "N" } } as const;

/** Reserves the next id of that kind; call it in the transaction of the insert, so a failed insert gives it back. */
export function reserveId(tx: Queries, kind: keyof typeof numbered): string {
  const { table, prefix } = numbered[kind];
  const suffix = sql<number>`max(cast(substr(${table.id}, ${prefix.length + 1}) as integer))`;
  const greatest = tx.select({ n: suffix }).from(table).get()?.n ?? 0;
  const stored = tx.select().from(idCounters).where(eq(idCounters.kind, kind)).get()?.nextOrdinal ?? 1;
  const ordinal = Math.max(stored, greatest + 1);
  tx.insert(idCounters)
    .values({ kind, nextOrdinal: ordinal + 1 })
    .onConflictDoUpdate({ target: idCounters.kind, set: { nextOrdinal: ordinal + 1 } })
    .run();
  return `${prefix}${ordinal}`;
}

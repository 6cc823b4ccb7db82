// The scheduler's one row, and what holds targets back.

import { gt } from "drizzle-orm";
import type { Cooldown } from "../core/gate.ts";
import type { Queries } from "./open.ts";
import { cooldowns, schedulerState } from "./tables.ts";

export type SchedulerFlags = { paused: boolean; draining: boolean };

export function readFlags(q: Queries): SchedulerFlags {
  const row = q.select().from(schedulerState).get();
  return { paused: row?.paused ?? false, draining: row?.draining ?? false };
}

/** Changes the flags given; the row is made when another program removed it. */
export function setFlags(tx: Queries, flags: Partial<SchedulerFlags>, now: number): void {
  tx.insert(schedulerState)
    .values({ singleton: 1, ...flags, updatedAtMs: now })
    .onConflictDoUpdate({ target: schedulerState.singleton, set: { ...flags, updatedAtMs: now } })
    .run();
}

/** One small committed write: whether the disk takes anything again. */
export function probeWrite(tx: Queries, now: number): void {
  setFlags(tx, {}, now);
}

const targetKey = "agent_target:";

/** Cooldowns still running at `now`, by target name. */
export function listCooldowns(q: Queries, now: number): Map<string, Cooldown> {
  const rows = q.select().from(cooldowns).where(gt(cooldowns.untilMs, now)).orderBy(cooldowns.key).all();
  const running = new Map<string, Cooldown>();
  for (const row of rows) {
    if (!row.key.startsWith(targetKey)) continue;
    const target = row.key.slice(targetKey.length);
    running.set(target, { target, untilMs: row.untilMs, reason: row.reason });
  }
  return running;
}

/** Cools a target down; a cooldown is only ever extended, reason and source follow the later deadline. */
export function coolDown(tx: Queries, cooldown: Cooldown & { sourceRunId: string }, now: number): void {
  const key = targetKey + cooldown.target;
  const values = {
    untilMs: cooldown.untilMs,
    reason: cooldown.reason,
    sourceRunId: cooldown.sourceRunId,
    updatedAtMs: now,
  };
  const where = gt(cooldowns.untilMs, cooldown.untilMs);
  const later = tx.select({ key: cooldowns.key, untilMs: cooldowns.untilMs }).from(cooldowns).where(where).all();
  if (later.some((row) => row.key === key)) return;
  tx.insert(cooldowns)
    .values({ key, ...values })
    .onConflictDoUpdate({ target: cooldowns.key, set: values })
    .run();
}

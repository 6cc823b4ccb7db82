// Removes tickets and projects that are gone, with every row that belongs to them (files.md 13.5).

import { type SQL, sql } from "drizzle-orm";
import type { Queries } from "./open.ts";
import {
  budgetReservations,
  cooldowns,
  leases,
  notes,
  projects,
  requestKeys,
  runEvidence,
  runs,
  stageRuns,
  ticketBlockers,
  tickets,
  triggerFilters,
  triggers,
} from "./tables.ts";

/** Runs a statement; how many rows it changed. */
function changed(tx: Queries, statement: SQL): number {
  tx.run(statement);
  return tx.get<{ n: number }>(sql`select changes() as n`).n;
}

/** The values of a list as a table: one parameter however many there are. */
function oneOf(ids: readonly string[]): SQL {
  return sql`(select value from json_each(${JSON.stringify(ids)}))`;
}

function idsOf(tx: Queries, query: SQL): string[] {
  return tx.all<{ id: string }>(query).map((row) => row.id);
}

function dropRuns(tx: Queries, ids: readonly string[]): number {
  const these = oneOf(ids);
  tx.run(sql`update ${cooldowns} set source_run_id = null where source_run_id in ${these}`);
  let dropped = 0;
  for (const table of [budgetReservations, notes, runEvidence, stageRuns, leases]) {
    dropped += changed(tx, sql`delete from ${table} where run_id in ${these}`);
  }
  return dropped + changed(tx, sql`delete from ${runs} where id in ${these}`);
}

/** Deletes triggers; one that a run which stays was claimed by is cancelled instead, its scope forgotten. */
function dropTriggers(tx: Queries, ids: readonly string[], now: number): number {
  const these = oneOf(ids);
  const used = sql`(select trigger_id from ${runs})`;
  const gone = sql`id in ${these} and id not in ${used}`;
  let dropped = changed(tx, sql`delete from ${triggerFilters} where trigger_id in ${these}`);
  dropped += changed(
    tx,
    sql`delete from ${requestKeys} where trigger_id in (select id from ${triggers} where ${gone})`,
  );
  dropped += changed(tx, sql`delete from ${triggers} where ${gone}`);
  tx.run(sql`update ${triggers} set ticket_id = null, project_id = null,
    state = case state when 'queued' then 'cancelled' else state end, updated_at_ms = ${now} where id in ${these}`);
  return dropped;
}

/** Takes tickets out of triggers' filters. A trigger that is left without any would select everything, so it goes. */
function dropFilters(tx: Queries, these: SQL, now: number): number {
  const touched = idsOf(tx, sql`select distinct trigger_id as id from ${triggerFilters} where ticket_id in ${these}`);
  const dropped = changed(tx, sql`delete from ${triggerFilters} where ticket_id in ${these}`);
  const emptied = idsOf(
    tx,
    sql`select id from ${triggers} where id in ${oneOf(touched)} and state = 'queued'
      and id not in (select trigger_id from ${triggerFilters})`,
  );
  return dropped + dropTriggers(tx, emptied, now);
}

/** Deletes tickets with their runs and all that is said about those; returns how many rows of all tables that were. */
export function dropTickets(tx: Queries, ids: readonly string[], now: number): number {
  if (ids.length === 0) return 0;
  const these = oneOf(ids);
  let dropped = changed(tx, sql`delete from ${leases} where ticket_id in ${these}`);
  dropped += dropRuns(tx, idsOf(tx, sql`select id from ${runs} where ticket_id in ${these}`));
  dropped += dropFilters(tx, these, now);
  dropped += dropTriggers(tx, idsOf(tx, sql`select id from ${triggers} where ticket_id in ${these}`), now);
  dropped += changed(tx, sql`delete from ${ticketBlockers} where ticket_id in ${these} or blocker_id in ${these}`);
  return dropped + changed(tx, sql`delete from ${tickets} where id in ${these}`);
}

/** Deletes local projects but `kept`, whose tickets have been given another. A settled trigger of one loses its scope only. */
export function dropProjects(tx: Queries, kept: readonly string[], now: number): number {
  const gone = idsOf(tx, sql`select id from ${projects} where source = 'local' and id not in ${oneOf(kept)}`);
  if (gone.length === 0) return 0;
  const these = oneOf(gone);
  const queued = idsOf(tx, sql`select id from ${triggers} where project_id in ${these} and state = 'queued'`);
  const dropped = dropTriggers(tx, queued, now);
  tx.run(sql`update ${triggers} set project_id = null, updated_at_ms = ${now} where project_id in ${these}`);
  return dropped + changed(tx, sql`delete from ${projects} where id in ${these}`);
}

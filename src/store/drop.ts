// Removes tickets and projects that are gone, with every row that belongs to them (files.md 13.5).

import type { Database } from "bun:sqlite";

/** Runs a statement over a list of ids, which it reads as `json_each(?1)`; how many rows it changed itself. */
function change(sqlite: Database, text: string, ids: readonly string[]): number {
  return sqlite.query<unknown, [string]>(text).run(JSON.stringify(ids)).changes;
}

/** The ids that a query over a list of ids finds. */
function find(sqlite: Database, text: string, ids: readonly string[]): string[] {
  const rows = sqlite.query<{ id: string }, [string]>(text).all(JSON.stringify(ids));
  return rows.map((row) => row.id);
}

const these = "(select value from json_each(?1))";

const ofRuns = ["budget_reservations", "notes", "run_evidence", "stage_runs", "leases"];

function dropRuns(sqlite: Database, ids: readonly string[]): number {
  change(sqlite, `update cooldowns set source_run_id = null where source_run_id in ${these}`, ids);
  let dropped = 0;
  for (const table of ofRuns) dropped += change(sqlite, `delete from ${table} where run_id in ${these}`, ids);
  return dropped + change(sqlite, `delete from runs where id in ${these}`, ids);
}

/** Deletes triggers; one that a run which stays was claimed by is cancelled instead, its scope forgotten. */
function dropTriggers(sqlite: Database, ids: readonly string[]): number {
  const gone = `id in ${these} and id not in (select trigger_id from runs)`;
  let dropped = change(sqlite, `delete from trigger_filters where trigger_id in ${these}`, ids);
  dropped += change(
    sqlite,
    `delete from request_keys where trigger_id in (select id from triggers where ${gone})`,
    ids,
  );
  dropped += change(sqlite, `delete from triggers where ${gone}`, ids);
  const unscoped = `update triggers set ticket_id = null, project_id = null,
    state = case state when 'queued' then 'cancelled' else state end where id in ${these}`;
  change(sqlite, unscoped, ids);
  return dropped;
}

/** Takes tickets out of triggers' filters. A trigger that is left without any would select everything, so it goes. */
function dropFilters(sqlite: Database, ids: readonly string[]): number {
  const touched = find(sqlite, `select distinct trigger_id id from trigger_filters where ticket_id in ${these}`, ids);
  const dropped = change(sqlite, `delete from trigger_filters where ticket_id in ${these}`, ids);
  const emptied = find(
    sqlite,
    `select id from triggers where id in ${these} and state = 'queued' and id not in (select trigger_id from trigger_filters)`,
    touched,
  );
  return dropped + dropTriggers(sqlite, emptied);
}

/** Deletes tickets with their runs and all that is said about those; returns how many rows of all tables that were. */
export function dropTickets(sqlite: Database, ids: readonly string[]): number {
  if (ids.length === 0) return 0;
  let dropped = change(sqlite, `delete from leases where ticket_id in ${these}`, ids);
  dropped += dropRuns(sqlite, find(sqlite, `select id from runs where ticket_id in ${these}`, ids));
  dropped += dropFilters(sqlite, ids);
  dropped += dropTriggers(sqlite, find(sqlite, `select id from triggers where ticket_id in ${these}`, ids));
  dropped += change(sqlite, `delete from ticket_blockers where ticket_id in ${these} or blocker_id in ${these}`, ids);
  return dropped + change(sqlite, `delete from tickets where id in ${these}`, ids);
}

/** Deletes local projects but `kept`, whose tickets have been given another. A settled trigger of one loses its scope only. */
export function dropProjects(sqlite: Database, kept: readonly string[]): number {
  const gone = find(sqlite, `select id from projects where source = 'local' and id not in ${these}`, kept);
  if (gone.length === 0) return 0;
  const queued = `select id from triggers where project_id in ${these} and state = 'queued'`;
  const dropped = dropTriggers(sqlite, find(sqlite, queued, gone));
  change(sqlite, `update triggers set project_id = null where project_id in ${these}`, gone);
  return dropped + change(sqlite, `delete from projects where id in ${these}`, gone);
}

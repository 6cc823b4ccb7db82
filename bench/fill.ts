// Tickets and a history as years of use leave them. The history is written past the daemon into the tables it made
// (src/store/tables.ts), with the columns that a settled run has.

import { Database } from "bun:sqlite";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { builtInFlow } from "../src/core/flow.ts";
import { renderFlowSnapshot } from "../src/core/snapshot.ts";
import type { Scene } from "../test/support/scene.ts";

const minute = 60_000;

function write(scene: Scene, body: (db: Database) => void): void {
  const db = new Database(join(scene.stateDir(), "sloop.db"), { readwrite: true, strict: true });
  try {
    db.run("PRAGMA busy_timeout=30000");
    db.run("PRAGMA foreign_keys=ON");
    db.transaction(() => body(db)).immediate();
  } finally {
    db.close();
  }
}

type Row = Record<string, string | number | null>;

/** A writer of rows given by column name; all rows of one writer have the same columns. */
function inserter(db: Database, table: string): (row: Row) => void {
  let statement: ReturnType<Database["prepare"]> | null = null;
  return (row) => {
    const columns = Object.keys(row);
    const marks = columns.map(() => "?").join(", ");
    statement ??= db.prepare(`insert into ${table} (${columns.join(", ")}) values (${marks})`);
    statement.run(...Object.values(row));
  };
}

/** Writes complete ticket files, `TICK-1` and on; every fifth waits for the one before it. */
export function writeTickets(scene: Scene, count: number): void {
  for (let n = 1; n <= count; n += 1) {
    const name = `task ${String(n).padStart(5, "0")}`;
    const blockers = n % 5 === 0 ? `TICK-${n - 1}` : "";
    const keys = `id: TICK-${n}\nproject: default\nworktree: sloop/task-${n}\nflow: default\n`;
    const body = `Part ${n} of the work. `.repeat(20);
    const text = `---\nname: ${name}\nblocked_by: [${blockers}]\n${keys}---\n${body}\n`;
    writeFileSync(join(scene.root, `.agents/sloop/tickets/task-${n}.md`), text);
  }
}

function inserters(db: Database) {
  return {
    trigger: inserter(db, "triggers"),
    run: inserter(db, "runs"),
    stage: inserter(db, "stage_runs"),
    evidence: inserter(db, "run_evidence"),
    event: inserter(db, "events"),
  };
}

type Inserters = ReturnType<typeof inserters>;

type Settled = { n: number; at: number; worktree: string; cleaned: boolean };

/** A run that was merged, with the rows and events it leaves. */
function settledRun(insert: Inserters, { n, at, worktree, cleaned }: Settled): void {
  const runId = n.toString(16).padStart(8, "0") + "0".repeat(24);
  const triggerId = `TR${1_000_000 + n}`;
  const ticketId = `TICK-${n}`;
  insert.trigger({
    id: triggerId,
    kind: "immediate",
    state: "completed",
    ticket_id: ticketId,
    created_at_ms: at,
    updated_at_ms: at,
  });
  insert.run({
    id: runId,
    trigger_id: triggerId,
    ticket_id: ticketId,
    state: "merged",
    attempt: 1,
    target_branch: "main",
    branch: `sloop/${ticketId}-a1-${runId.slice(0, 8)}`,
    worktree_path: worktree,
    started_at_ms: at,
    exited_at_ms: at + minute,
    exit_code: 0,
    cleanup_eligible_at_ms: at + minute,
    cleaned_at_ms: cleaned ? at + 2 * minute : null,
    flow_json: renderFlowSnapshot(builtInFlow),
    ticket_json: JSON.stringify({ id: ticketId, name: `task ${n}`, blocked_by: [], worktree: null, target: "sh" }),
    created_at_ms: at,
    updated_at_ms: at + minute,
  });
  builtInFlow.stages.forEach((stage, index) => {
    insert.stage({
      run_id: runId,
      seq: index + 1,
      stage_index: index,
      stage: stage.name,
      state: "passed",
      started_at_ms: at,
      finished_at_ms: at + minute,
      exit_code: 0,
      evidence_json: JSON.stringify({ verdict_source: "exit_code", reason: null }),
    });
  });
  const facts = { exit_classified: { exit_code: 0 }, commits_observed: { complete: true, oids: ["0".repeat(40)] } };
  for (const [kind, data] of Object.entries({ ...facts, merge_result: { merged: true } })) {
    const dedupe_key = `settlement:${runId}:${kind}`;
    insert.evidence({ run_id: runId, kind, observed_at_ms: at, dedupe_key, data_json: JSON.stringify(data) });
  }
  for (const kind of ["run_claimed", "run_started", "run_finished"]) {
    insert.event({ occurred_at_ms: at, kind, run_id: runId, ticket_id: ticketId, data_json: '{"outcome":"merged"}' });
  }
}

/** As many worktrees still wait for their retention. */
const uncleaned = 200;

/** Settles one run of each of the oldest `runs` tickets, and fills the journal up to `events`. */
export function fillHistory(scene: Scene, size: { runs: number; events: number }): void {
  const now = Date.now();
  write(scene, (db) => {
    const insert = inserters(db);
    for (let n = size.runs * 3; n < size.events; n += 1) {
      const at = now - 30 * 24 * 60 * minute;
      insert.event({ occurred_at_ms: at, kind: "run_claimed", run_id: null, ticket_id: null, data_json: "{}" });
    }
    for (let n = 1; n <= size.runs; n += 1) {
      const worktree = join(scene.root, ".worktrees", n.toString(16).padStart(8, "0"));
      const cleaned = n <= size.runs - uncleaned;
      if (!cleaned) mkdirSync(worktree, { recursive: true });
      settledRun(insert, { n, at: now - (size.runs - n) * minute, worktree, cleaned });
    }
    db.run("update tickets set state = 'merged', attempts = 1 where id in (select ticket_id from runs)");
  });
}

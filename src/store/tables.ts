// The state database, defined once (engine.md 3.2). Every name here is a published contract: other programs read the file.

import { type SQL, sql } from "drizzle-orm";
import {
  type AnySQLiteColumn,
  check,
  index,
  integer,
  primaryKey,
  sqliteTable,
  text,
  unique,
} from "drizzle-orm/sqlite-core";
import { runStates, ticketStates } from "../core/ticket.ts";
import { triggerKinds } from "../core/trigger.ts";

export const projects = sqliteTable(
  "projects",
  {
    id: text("id").primaryKey(),
    filePath: text("file_path").unique(),
    source: text("source").notNull().default("local"),
    sourceRef: text("source_ref"),
    title: text("title").notNull(),
    createdAtMs: integer("created_at_ms").notNull(),
    updatedAtMs: integer("updated_at_ms").notNull(),
  },
  (t) => [
    unique("projects_source_ref").on(t.source, t.sourceRef),
    check("projects_origin", sql`${t.filePath} is not null or ${t.sourceRef} is not null`),
  ],
);

/**
 * The number after an id's last `-` as core/ids.ts `ordinal` reads it, in two terms that sort as it does however long it is:
 * how many digits it has without leading zeros, and those digits. An index is only used by a query that says it so.
 */
export function numberOf(id: AnySQLiteColumn): readonly [length: SQL, digits: SQL] {
  const rest = sql`rtrim(${id}, '0123456789')`;
  const digits = sql`case when substr(${rest}, -1) = '-' then ltrim(substr(${id}, length(${rest}) + 1), '0') else '' end`;
  return [sql`length(${digits})`, digits];
}

export const tickets = sqliteTable(
  "tickets",
  {
    id: text("id").primaryKey(),
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id),
    filePath: text("file_path").unique(),
    source: text("source").notNull().default("local"),
    sourceRef: text("source_ref"),
    state: text("state", { enum: ticketStates }).notNull(),
    attempts: integer("attempts").notNull().default(0),
    contentHash: text("content_hash"),
    name: text("name").notNull().default(""),
    worktree: text("worktree"),
    target: text("target"),
    model: text("model"),
    effort: text("effort"),
    flow: text("flow"),
    body: text("body"),
    heldReason: text("held_reason"),
    missingAtMs: integer("missing_at_ms"),
    createdAtMs: integer("created_at_ms").notNull(),
    updatedAtMs: integer("updated_at_ms").notNull(),
  },
  (t) => [
    unique("tickets_source_ref").on(t.source, t.sourceRef),
    check("tickets_origin", sql`${t.filePath} is not null or ${t.sourceRef} is not null`),
    index("tickets_by_project_state").on(t.projectId, t.state),
    index("tickets_by_recency").on(t.createdAtMs, ...numberOf(t.id), t.id),
    index("tickets_by_state").on(t.state, t.createdAtMs, t.id),
    index("tickets_by_name").on(t.name, t.id, t.createdAtMs),
  ],
);

export const ticketBlockers = sqliteTable(
  "ticket_blockers",
  {
    ticketId: text("ticket_id")
      .notNull()
      .references(() => tickets.id, { onDelete: "cascade" }),
    blockerId: text("blocker_id")
      .notNull()
      .references(() => tickets.id),
    position: integer("position").notNull(),
  },
  (t) => [primaryKey({ columns: [t.ticketId, t.blockerId] }), index("blockers_by_blocker").on(t.blockerId)],
);

export const triggers = sqliteTable(
  "triggers",
  {
    id: text("id").primaryKey(),
    kind: text("kind", { enum: triggerKinds }).notNull(),
    state: text("state", { enum: ["queued", "completed", "cancelled"] }).notNull(),
    ticketId: text("ticket_id").references(() => tickets.id),
    projectId: text("project_id").references(() => projects.id),
    eligibleAtMs: integer("eligible_at_ms"),
    intervalMs: integer("interval_ms"),
    createdAtMs: integer("created_at_ms").notNull(),
    updatedAtMs: integer("updated_at_ms").notNull(),
  },
  (t) => [
    check("triggers_scope", sql`${t.ticketId} is null or ${t.projectId} is null`),
    index("triggers_by_state").on(t.state, t.createdAtMs, t.id),
    index("triggers_by_ticket").on(t.ticketId, t.state),
  ],
);

export const triggerFilters = sqliteTable(
  "trigger_filters",
  {
    triggerId: text("trigger_id")
      .notNull()
      .references(() => triggers.id, { onDelete: "cascade" }),
    ticketId: text("ticket_id")
      .notNull()
      .references(() => tickets.id),
  },
  (t) => [primaryKey({ columns: [t.triggerId, t.ticketId] })],
);

export const runs = sqliteTable(
  "runs",
  {
    id: text("id").primaryKey(),
    triggerId: text("trigger_id")
      .notNull()
      .references(() => triggers.id),
    ticketId: text("ticket_id")
      .notNull()
      .references(() => tickets.id),
    state: text("state", { enum: runStates }).notNull(),
    attempt: integer("attempt").notNull(),
    targetBranch: text("target_branch"),
    branch: text("branch"),
    worktreePath: text("worktree_path"),
    pid: integer("pid"),
    pidStartTime: integer("pid_start_time"),
    processGroupId: integer("process_group_id"),
    workerToken: text("worker_token"),
    workerSocketPath: text("worker_socket_path"),
    startedAtMs: integer("started_at_ms"),
    exitedAtMs: integer("exited_at_ms"),
    exitCode: integer("exit_code"),
    cleanupEligibleAtMs: integer("cleanup_eligible_at_ms"),
    cleanedAtMs: integer("cleaned_at_ms"),
    flowJson: text("flow_json"),
    ticketJson: text("ticket_json"),
    createdAtMs: integer("created_at_ms").notNull(),
    updatedAtMs: integer("updated_at_ms").notNull(),
  },
  (t) => [
    index("runs_by_ticket").on(t.ticketId, t.createdAtMs),
    index("runs_by_trigger").on(t.triggerId, t.createdAtMs),
    index("runs_unsettled").on(t.createdAtMs).where(sql`${t.exitedAtMs} is null`),
    index("runs_to_clean").on(t.cleanupEligibleAtMs).where(sql`${t.cleanedAtMs} is null`),
  ],
);

export const leases = sqliteTable(
  "leases",
  {
    ticketId: text("ticket_id")
      .primaryKey()
      .references(() => tickets.id),
    runId: text("run_id")
      .notNull()
      .unique()
      .references(() => runs.id),
    ownerId: text("owner_id").notNull(),
    acquiredAtMs: integer("acquired_at_ms").notNull(),
    renewedAtMs: integer("renewed_at_ms").notNull(),
    expiresAtMs: integer("expires_at_ms").notNull(),
  },
  (t) => [index("leases_by_expiry").on(t.expiresAtMs)],
);

export const runEvidence = sqliteTable(
  "run_evidence",
  {
    sequence: integer("sequence").primaryKey({ autoIncrement: true }),
    runId: text("run_id")
      .notNull()
      .references(() => runs.id),
    kind: text("kind").notNull(),
    observedAtMs: integer("observed_at_ms").notNull(),
    dedupeKey: text("dedupe_key").unique(),
    dataJson: text("data_json").notNull(),
  },
  (t) => [index("evidence_by_run").on(t.runId, t.sequence)],
);

export const stageRuns = sqliteTable(
  "stage_runs",
  {
    runId: text("run_id")
      .notNull()
      .references(() => runs.id),
    seq: integer("seq").notNull(),
    stageIndex: integer("stage_index").notNull(),
    stage: text("stage").notNull(),
    state: text("state", { enum: ["passed", "failed"] }),
    attempt: integer("attempt").notNull().default(1),
    phase: text("phase", { enum: ["action", "check"] })
      .notNull()
      .default("action"),
    startedAtMs: integer("started_at_ms"),
    finishedAtMs: integer("finished_at_ms"),
    exitCode: integer("exit_code"),
    evidenceJson: text("evidence_json"),
  },
  (t) => [
    primaryKey({ columns: [t.runId, t.seq] }),
    unique("stage_runs_execution").on(t.runId, t.stageIndex, t.attempt, t.phase),
  ],
);

export const cooldowns = sqliteTable("cooldowns", {
  key: text("key").primaryKey(),
  untilMs: integer("until_ms").notNull(),
  reason: text("reason").notNull(),
  sourceRunId: text("source_run_id").references(() => runs.id),
  updatedAtMs: integer("updated_at_ms").notNull(),
});

export const schedulerState = sqliteTable("scheduler_state", {
  singleton: integer("singleton").primaryKey(),
  paused: integer("paused", { mode: "boolean" }).notNull().default(false),
  draining: integer("draining", { mode: "boolean" }).notNull().default(false),
  journalId: text("journal_id").notNull().default(sql`(lower(hex(randomblob(8))))`),
  updatedAtMs: integer("updated_at_ms").notNull(),
});

export const requestKeys = sqliteTable("request_keys", {
  key: text("key").primaryKey(),
  requestHash: text("request_hash").notNull(),
  triggerId: text("trigger_id")
    .notNull()
    .references(() => triggers.id),
  createdAtMs: integer("created_at_ms").notNull(),
});

export const notes = sqliteTable(
  "notes",
  {
    id: text("id").primaryKey(),
    runId: text("run_id")
      .notNull()
      .references(() => runs.id),
    text: text("text").notNull(),
    recordedAtMs: integer("recorded_at_ms").notNull(),
  },
  (t) => [index("notes_by_run").on(t.runId, t.recordedAtMs)],
);

export const idCounters = sqliteTable(
  "id_counters",
  { kind: text("kind").primaryKey(), nextOrdinal: integer("next_ordinal").notNull() },
  (t) => [check("id_counters_positive", sql`${t.nextOrdinal} > 0`)],
);

export const events = sqliteTable(
  "events",
  {
    sequence: integer("sequence").primaryKey({ autoIncrement: true }),
    occurredAtMs: integer("occurred_at_ms").notNull(),
    kind: text("kind").notNull(),
    runId: text("run_id"),
    ticketId: text("ticket_id"),
    dataJson: text("data_json").notNull().default("{}"),
  },
  (t) => [index("events_by_run").on(t.runId, t.sequence), index("events_by_ticket").on(t.ticketId, t.sequence)],
);

/** Reserved for token budgets; kept so that other programs find it. */
export const budgetReservations = sqliteTable("budget_reservations", {
  runId: text("run_id")
    .primaryKey()
    .references(() => runs.id),
  reservedTokens: integer("reserved_tokens").notNull(),
  actualTokens: integer("actual_tokens"),
  state: text("state").notNull(),
  createdAtMs: integer("created_at_ms").notNull(),
  reconciledAtMs: integer("reconciled_at_ms"),
});

export type TicketRow = typeof tickets.$inferSelect;
export type RunRow = typeof runs.$inferSelect;
export type StageRow = typeof stageRuns.$inferSelect;
export type EvidenceRow = typeof runEvidence.$inferSelect;
export type EventRow = typeof events.$inferSelect;
export type ProjectRow = typeof projects.$inferSelect;
export type LeaseRow = typeof leases.$inferSelect;

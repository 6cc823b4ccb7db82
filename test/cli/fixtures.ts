// Replies as a daemon sends them, for the tests of what is made of them. Times are local to UTC.

import type { Dashboard, TicketDetail } from "../../src/protocol/replies.ts";
import type { ActiveRun, RunDetail, StageRow, StageStrip, TicketDisplayRow } from "../../src/protocol/rows.ts";

/** Epoch ms of a local time on 2026-08-02, or of another day given as `07-30 23:50`. */
export function at(time: string): number {
  const [day, clock] = time.includes(" ") ? time.split(" ") : ["08-02", time];
  const withSeconds = clock!.length === 5 ? `${clock}:00` : clock;
  return new Date(`2026-${day}T${withSeconds}`).getTime();
}

export function row(id: string, name: string, more: Partial<TicketDisplayRow> = {}): TicketDisplayRow {
  return {
    id,
    name,
    project: "default",
    state: "ready",
    run: null,
    run_id: null,
    reason: null,
    classification: null,
    ...more,
  };
}

export function strip(stage: string, state: StageStrip["state"], more: Partial<StageStrip> = {}): StageStrip {
  return { stage, state, attempt: state === "pending" ? 0 : 1, advisory: false, silent_for_ms: null, ...more };
}

export function stage(name: string, state: StageRow["state"], more: Partial<StageRow> = {}): StageRow {
  return {
    ...strip(name, state),
    started_at_ms: null,
    finished_at_ms: null,
    duration_ms: null,
    exit_code: null,
    verdict_source: null,
    reason: null,
    confidence: null,
    reviewers: [],
    ...more,
  };
}

export function activeRun(alias: string, name: string, more: Partial<ActiveRun> = {}): ActiveRun {
  return {
    id: "9be01f44d1a04d0c8a2e6f1b7c3d5e90",
    alias,
    attempt: 1,
    state: "running",
    terminal: false,
    started_at_ms: at("14:02"),
    finished_at_ms: null,
    reason: null,
    stall: null,
    stages: [],
    project: "default",
    ticket: alias.replace(/-r[0-9]+$/, ""),
    ticket_name: name,
    ...more,
  };
}

export const emptyDashboard: Dashboard = {
  kind: "dashboard",
  daemon: { pid: 48211, paused: false, draining: false },
  gate: {
    active_agents: 0,
    max_agents: 1,
    capacity_reconciled: true,
    storage: { writable: true, reason: null },
    cooldowns: [],
  },
  runs: [],
  queued_triggers: [],
  queued_activations: [],
  tickets: { ready: 0, held: 0, blocked: 0, claimed: 0, merged: 0, failed: 0, needs_review: 0 },
  attention: [],
  recent: [],
  recent_total: 0,
  recent_limit: 10,
};

export const ticketDetail: TicketDetail = {
  id: "TICK-27",
  name: "Fix flaky upload",
  project: "default",
  state: "failed",
  file: ".agents/sloop/tickets/fix-flaky-upload.md",
  blocked_by: ["TICK-12", "TICK-20"],
  worktree: "sloop/fix-flaky-upload",
  target: "codex",
  model: "gpt-5.6-sol",
  effort: "high",
  reason: "Codex authentication is missing or expired",
  classification: null,
  queued_triggers: [],
  runs: [
    {
      ...activeRun("TICK-27-r2", ""),
      attempt: 2,
      state: "failed",
      terminal: true,
      started_at_ms: at("09:10"),
      finished_at_ms: at("09:31"),
      stages: [
        strip("build", "passed"),
        strip("lint", "failed", { advisory: true }),
        strip("test", "failed"),
        strip("merge", "pending"),
      ],
    },
    {
      ...activeRun("TICK-27-r1", ""),
      state: "cancelled",
      terminal: true,
      started_at_ms: at("07-30 23:50"),
      finished_at_ms: at("07-31 00:12"),
      stages: [
        strip("build", "pending"),
        strip("lint", "pending"),
        strip("test", "pending"),
        strip("merge", "pending"),
      ],
    },
  ],
  body: "\nThe upload test fails one time in twenty.\n",
};

export const runDetail: RunDetail = {
  id: "9be01f44d1a04d0c8a2e6f1b7c3d5e90",
  alias: "TICK-27-r2",
  attempt: 2,
  note: null,
  ticket: "TICK-27",
  ticket_name: "Fix flaky upload",
  state: "failed",
  terminal: true,
  branch: "sloop/TICK-27-a2-9be01f44",
  worktree: "/home/ana/dev/app/.worktrees/9be01f44",
  target_branch: "main",
  wip: null,
  claimed_at_ms: at("09:10"),
  started_at_ms: at("09:10"),
  finished_at_ms: at("09:31"),
  exit_code: 0,
  agent_exit_code: 0,
  reason: "stage `test` failed (exit 1) after agent completed with commits",
  classification: null,
  stall: null,
  halt: "fail_action",
  stages: [
    stage("build", "passed", {
      started_at_ms: at("09:10:05"),
      finished_at_ms: at("09:22:18"),
      duration_ms: 733_400,
      exit_code: 0,
      verdict_source: "exit_code",
    }),
    stage("lint", "failed", {
      started_at_ms: at("09:22:18"),
      finished_at_ms: at("09:22:22"),
      duration_ms: 4000,
      exit_code: 2,
      advisory: true,
      verdict_source: "exit_code",
    }),
    stage("review", "passed", {
      started_at_ms: at("09:22:22"),
      finished_at_ms: at("09:27:23"),
      duration_ms: 301_000,
      verdict_source: "reported",
      confidence: "low",
    }),
    stage("test", "failed", {
      started_at_ms: at("09:27:23"),
      finished_at_ms: at("09:31:23"),
      duration_ms: 240_000,
      exit_code: 1,
      verdict_source: "exit_code",
    }),
    stage("merge", "pending"),
  ],
};

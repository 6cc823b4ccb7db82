// The kinds of events that the v1 activity feed knows (protocol.md 10); the journal may hold more for other doors.

export const eventKinds = [
  "run_claimed",
  "run_started",
  "run_finished",
  "run_aborted",
  "external_merge_reconciled",
  "run_worktree_cleaned",
  "daemon_restart_requested",
] as const;

export type EventKind = (typeof eventKinds)[number];

// What a loaded configuration holds, defaults already filled in. Read once per daemon life (engine.md 17.2).

/** An agent's command: argv with `{prompt}`, `{model}`, `{effort}` still in it. */
export type Target = { name: string; cmd: string[]; model: string | null; effort: string | null };

export type RunningHours = { start: string; end: string; startMinute: number; endMinute: number };

export type Config = {
  /** Repository-relative, normalised. */
  worktreeDir: string;
  projectDir: string;
  ticketDir: string;
  /** Null: `never`. */
  worktreeRetentionMs: number | null;
  evidenceRetentionMs: number | null;
  deleteMissingAfterMs: number;
  maxParallelTasks: number;
  stallReportAfterMs: number;
  stallAfterMs: number;
  cancelGraceMs: number;
  runningHours: RunningHours | null;
  agent: { defaultTarget: string; targets: Record<string, Target> } | null;
  /** argv of `sources.tickets.exec`; null: Markdown files. */
  ticketSource: string[] | null;
  testCmd: string[] | null;
  mergeTarget: string | null;
  ticketPrefix: string;
  projectPrefix: string;
};

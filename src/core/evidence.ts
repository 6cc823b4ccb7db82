// What the daemon observed of a run: the walk's log, and the facts kept beside it (engine.md 3.2, 3.3).

export type VerdictSource = "exit_code" | "reported" | "panel";

/** One row of the walk's log, as the replay and every report read it. */
export type StageRecord = {
  stageIndex: number;
  stage: string;
  /** Null: the action of an execution whose check decides. */
  state: "passed" | "failed" | null;
  attempt: number;
  phase: "action" | "check";
  startedAtMs: number | null;
  finishedAtMs: number | null;
  exitCode: number | null;
  verdictSource: VerdictSource | null;
  reason: string | null;
};

export type Confidence = "low" | "medium" | "high";

/** A worker's report for one stage execution. */
export type StageVerdict = {
  stage: string;
  attempt: number;
  verdict: "pass" | "fail";
  confidence: Confidence | null;
  reason: string | null;
  /** Where the run's branch stood when it was filed; null when that was not observed. */
  tip: string | null;
};

/** A reviewer's report from one seat of one execution's panel. */
export type PanelReport = {
  stage: string;
  stageIndex: number;
  attempt: number;
  reviewer: number;
  verdict: "pass" | "fail";
  confidence: Confidence | null;
  reason: string | null;
};

export const vendorClasses = [
  "authentication_required",
  "invalid_configuration",
  "rate_limited",
  "unknown_rejection",
] as const;
export type VendorClass = (typeof vendorClasses)[number];

/** A recognised vendor rejection; the wire shows the first four keys (protocol.md 6.6). */
export type Classification = { class: VendorClass; vendor: string; rule_id: string; diagnostic: string };
export type VendorEvidence = Classification & { cooldown_until_ms: number | null };

/** Whether a class of rejection cools the run's target down. */
export function coolsDown(vendorClass: VendorClass): boolean {
  return vendorClass === "rate_limited" || vendorClass === "unknown_rejection";
}

export type Stall = {
  stage: string;
  last_output_at_ms: number;
  threshold_ms: number;
  last_output_sequence: number | null;
};

export type CommitObservation = { complete: boolean; oids: string[] };

/** The process a run stands on, stored before anybody may rely on it. */
export type StageProcess = {
  stage: string;
  attempt: number;
  pid: number;
  pid_start_time: number | null;
  process_group_id: number;
  phase: "action" | "check";
  seat?: number;
  merge?: { target_head: string; branch_tip: string; completed_target: string | null };
};

/** A path that differs from its commit, and what is there: an object name, "deleted", or null where that does not tell. */
export type Uncommitted = { path: string; oid: string | null };

/** What a gate's process was started on: the worktree's commit, its branch's, and what nobody committed. */
export type GateTree = {
  stageIndex: number;
  attempt: number;
  phase: "action" | "check";
  seat: number | null;
  /** The commit the worktree's HEAD stands on; null when it cannot be read. */
  head: string | null;
  tip: string | null;
  /** Null when git cannot tell. */
  uncommitted: Uncommitted[] | null;
  /** Whether there were more than are listed. */
  more: boolean;
  /** The tree that committing everything would have made; null when there was nothing to commit, or git cannot tell. */
  content: string | null;
};

/** Where the run's branch stood around one execution of a stage. */
export type StageTree = {
  stageIndex: number;
  attempt: number;
  /** Null when an earlier daemon began the execution. */
  from: string | null;
  tip: string | null;
  /** The tip's tree; asked for only where a gate saw something uncommitted, or the tip moved under one. */
  tree: string | null;
  /** Of a gate: what its end left uncommitted. Null for other stages, when git cannot tell, and when it is too much to list. */
  uncommitted: Uncommitted[] | null;
};

/** Everything kept about one run beside its walk, kinds folded into fields. */
export type RunFacts = {
  process: StageProcess | null;
  /** The primary agent's last exit; null: none was checkpointed. */
  exit: { exitCode: number | null; attempt: number | null } | null;
  commits: CommitObservation | null;
  vendor: VendorEvidence | null;
  captureIncomplete: boolean;
  cancelRequested: boolean;
  stall: Stall | null;
  verdicts: StageVerdict[];
  reports: PanelReport[];
  mergeResult: boolean | null;
  /** What recovery said of the run; `orphaned` also before it is settled. */
  recovery: "resumed" | "orphaned" | null;
  externalMerge: { branch: string; branch_tip: string; observed_default_tip: string } | null;
  /** Uncommitted files of the worktree, kept as a commit when the run settled. */
  wip: { ref: string; files: number } | null;
  /** In the order in which the processes were started. */
  gateTrees: GateTree[];
  stageTrees: StageTree[];
};

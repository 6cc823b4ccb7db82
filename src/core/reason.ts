// Why a run ended as it did, told from recorded evidence only (protocol.md 6.8, engine.md 13.3).

import type { CommitObservation, StageRecord, Stall } from "./evidence.ts";
import type { Flow } from "./flow.ts";
import type { StageRow } from "./stagerows.ts";
import { type RunState, terminal } from "./ticket.ts";
import { type HaltCause, nextStep } from "./walk.ts";

/** Why the walk of a settled run stopped; null while unsettled, at the flow's end, and without a readable flow. */
export function haltOf(state: RunState, flow: Flow | null, log: readonly StageRecord[]): HaltCause | null {
  if (flow === null || !terminal(state)) return null;
  const step = nextStep(flow, log);
  return step.kind === "halted" ? step.cause : null;
}

/** A silence in words: `45s`, `30m`, `5m1s`, `2h`, `2h5m`; milliseconds in, seconds dropped once there are hours. */
export function formatSilence(ms: number): string {
  const total = Math.max(0, Math.floor(ms / 1000));
  const hours = Math.floor(total / 3600);
  const minutes = Math.floor((total % 3600) / 60);
  const seconds = total % 60;
  if (hours > 0) return minutes > 0 ? `${hours}h${minutes}m` : `${hours}h`;
  if (minutes > 0) return seconds > 0 ? `${minutes}m${seconds}s` : `${minutes}m`;
  return `${seconds}s`;
}

export type RunEnd = {
  state: RunState;
  stall: Stall | null;
  /** In `seq` order: "the last failure" goes by time. */
  log: readonly StageRecord[];
  /** In the order shown: "the first row" and advisory stages go by this. */
  rows: readonly StageRow[];
  commits: CommitObservation | null;
  halt: HaltCause | null;
};

function haltText(halt: HaltCause | null): string {
  switch (halt) {
    case "return_budget_exhausted":
      return "; return_to budget spent";
    case "corrupt_log":
      return "; the stage log does not replay against this flow";
    case "fail_action":
    case null:
      return "";
  }
}

function failureText(end: RunEnd, row: StageRow): string {
  const first = end.rows[0];
  const after =
    first !== undefined && first.stage !== row.stage && first.state === "passed"
      ? ` after agent completed with ${(end.commits?.oids.length ?? 0) > 0 ? "commits" : "no commits"}`
      : "";
  return [
    `stage \`${row.stage}\` failed`,
    row.exit_code === null ? "" : ` (exit ${row.exit_code})`,
    row.reason === null || row.reason === "" ? "" : `: ${row.reason}`,
    row.attempt > 1 ? ` on attempt ${row.attempt}` : "",
    after,
    haltText(end.halt),
  ].join("");
}

function lastHaltingFailure(end: RunEnd): StageRow | null {
  for (const record of end.log.toReversed()) {
    if (record.state !== "failed") continue;
    const row = end.rows.find((one) => one.stage === record.stage && one.attempt === record.attempt);
    if (row !== undefined && !row.advisory) return row;
  }
  return null;
}

/** The derived reason of a run; null for a merged and for an unsettled one. Never a vendor's diagnostic. */
export function derivedReason(end: RunEnd): string | null {
  if (end.state === "merged" || !terminal(end.state)) return null;
  if (end.stall !== null) return `stalled: no output for ${formatSilence(end.stall.threshold_ms)}`;
  const halting = lastHaltingFailure(end);
  if (halting !== null) return failureText(end, halting);
  const failed = end.rows.filter((row) => row.state === "failed");
  if (failed.length === 0) return `run ended as ${end.state} with no failing stage recorded`;
  const names = [...new Set(failed.map((row) => row.stage))].map((name) => `stage \`${name}\``);
  return `run ended as ${end.state} with only advisory failures recorded (${names.join(", ")})`;
}

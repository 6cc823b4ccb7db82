// What a daemon and the supervisor of a stage process say to each other, and the records that outlive both (engine.md 10.4).

import { join } from "node:path";
import type { Environment } from "./environment.ts";
import { readIfPresent } from "./files.ts";
import type { OutputLabels } from "./output.ts";

/** The word in argv that makes the program a supervisor. */
export const superviseWord = "__supervise";

/** One execution of a stage process. */
export type StageProcess = {
  runId: string;
  argv: string[];
  cwd: string;
  /** The command's whole environment. */
  environment: Environment;
  /** Whether the command waits for `gate`; else it runs from its spawn. */
  gated: boolean;
  outputLog: string;
  labels: OutputLabels;
  startRecord: string;
  exitRecord: string;
  /** The socket the supervisor serves. */
  channel: string;
};

/** What a supervisor is told on standard input, in one line of JSON; `starter` is the daemon's pid. */
export type SupervisorRequest = StageProcess & { starter: number };

/** A command that was spawned. Instants are epoch ms on the daemon clock. */
export type SpawnFacts = {
  pid: number;
  pid_start_time: number | null;
  process_group_id: number;
  started_at_ms: number;
};

/** Created with the first two keys before the spawn, completed after it. */
export type StartRecord = {
  supervisor_pid: number;
  supervisor_start_time: number | null;
  spawned: SpawnFacts | null;
};

export type ExitRecord = SpawnFacts & {
  exit_code: number | null;
  signal: string | null;
  finished_at_ms: number;
  capture_complete: boolean;
  stragglers_killed: number;
  last_sequence: number;
  /** Whether a daemon's channel was open when the command ended. */
  attended: boolean;
};

export type ChannelEvent =
  | ({ type: "spawned" } & SpawnFacts)
  /** The newest record and when it was captured, epoch ms on the daemon clock. */
  | { type: "output"; sequence: number; at_ms: number }
  /** `holders`: processes that still had the command's output open and were left alone. */
  | { type: "exited"; record: ExitRecord; holders: number[] }
  | { type: "failed"; problem: string };

/** `daemon`, the first of a daemon's lines, says who it is: a dead one's end of the channel may stay open for a while. */
export type ChannelCommand =
  | { type: "daemon"; pid: number; pid_start_time: number | null }
  | { type: "gate" }
  | { type: "terminate"; grace_ms: number }
  | { type: "kill" };

/** The line the supervisor writes on standard output once its channel is served; `failed` says why it never will be. */
export type Greeting = { type: "ready" } | { type: "failed"; problem: string };

export type Execution = { stageIndex: number; attempt: number; phase: string; seat?: number | null };

/** The stem of an execution's records: `<stage_index>-<attempt>-<phase>[-<seat>]`. */
export function executionName({ stageIndex, attempt, phase, seat }: Execution): string {
  const tail = seat === undefined || seat === null ? "" : `-${seat}`;
  return `${stageIndex}-${attempt}-${phase}${tail}`;
}

export function exitRecordPath(runDirectory: string, execution: Execution): string {
  return join(runDirectory, "exits", `${executionName(execution)}.json`);
}

export function startRecordPath(runDirectory: string, execution: Execution): string {
  return join(runDirectory, "exits", `${executionName(execution)}.start.json`);
}

type Fields = Record<string, unknown>;

/** A JSON object out of a line or a file; null for anything else. */
export function parseFields(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;
  } catch {
    return null;
  }
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isNullOr<T>(value: unknown, is: (value: unknown) => value is T): value is T | null {
  return value === null || is(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** The four keys of a spawned command; null when one is missing or of another type. */
export function parseSpawnFacts(fields: Fields): SpawnFacts | null {
  const { pid, pid_start_time, process_group_id, started_at_ms } = fields;
  if (!isInteger(pid) || !isNullOr(pid_start_time, isInteger)) return null;
  if (!isInteger(process_group_id) || !isInteger(started_at_ms)) return null;
  return { pid, pid_start_time, process_group_id, started_at_ms };
}

/** An exit record; null when a key is missing or of another type. */
export function parseExitRecord(fields: Fields): ExitRecord | null {
  const spawned = parseSpawnFacts(fields);
  const { exit_code, signal, finished_at_ms, capture_complete, stragglers_killed, last_sequence, attended } = fields;
  if (spawned === null || !isNullOr(exit_code, isInteger) || !isNullOr(signal, isText)) return null;
  if (!isInteger(finished_at_ms) || !isInteger(stragglers_killed) || !isInteger(last_sequence)) return null;
  if (typeof capture_complete !== "boolean" || typeof attended !== "boolean") return null;
  return {
    ...spawned,
    exit_code,
    signal,
    finished_at_ms,
    capture_complete,
    stragglers_killed,
    last_sequence,
    attended,
  };
}

function readFields(path: string): Fields | null {
  const bytes = readIfPresent(path);
  return bytes === null ? null : parseFields(new TextDecoder().decode(bytes));
}

/** The exit record at `path`; null when there is none or it is damaged. */
export function readExitRecord(path: string): ExitRecord | null {
  const fields = readFields(path);
  return fields === null ? null : parseExitRecord(fields);
}

/** The start record at `path`; null when there is none or it is damaged. */
export function readStartRecord(path: string): StartRecord | null {
  const fields = readFields(path);
  if (fields === null) return null;
  const { supervisor_pid, supervisor_start_time } = fields;
  if (!isInteger(supervisor_pid) || !isNullOr(supervisor_start_time, isInteger)) return null;
  return { supervisor_pid, supervisor_start_time, spawned: parseSpawnFacts(fields) };
}

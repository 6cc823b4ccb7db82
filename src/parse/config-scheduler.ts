// The scheduler's values: the repository's, else the user's, else the built-in defaults.

import type { Config, RunningHours } from "../core/config.ts";
import { parseDuration } from "../core/duration.ts";
import { parseLocalTime } from "../core/hours.ts";
import type { RawHours, RawScheduler } from "./config-file.ts";
import { type Placed, refusePlaced } from "./shape.ts";

type SchedulerConfig = Pick<
  Config,
  "maxParallelTasks" | "stallReportAfterMs" | "stallAfterMs" | "cancelGraceMs" | "runningHours"
>;

const tenMinutesMs = 600_000;
const twoHoursMs = 7_200_000;
const twoSecondsMs = 2_000;

/** A duration in ms, the default when absent. */
export function checkDuration(placed: Placed<string> | null, fallbackMs: number): number {
  if (placed === null) return fallbackMs;
  const duration = parseDuration(placed.value);
  return duration.ok ? duration.ms : refusePlaced(placed, `${placed.key}: ${duration.problem}`);
}

/** A duration in ms, or null for `never`. */
export function checkRetention(placed: Placed<string> | null, fallbackMs: number): number | null {
  if (placed === null) return fallbackMs;
  if (placed.value === "never") return null;
  const duration = parseDuration(placed.value);
  if (duration.ok) return duration.ms;
  refusePlaced(placed, `${placed.key}: ${duration.problem}; use a positive duration or \`never\``);
}

function checkHours(raw: RawHours | null): RunningHours | null {
  if (raw === null) return null;
  const minute = (half: Placed<string>): number =>
    parseLocalTime(half.value) ??
    refusePlaced(half, `${half.key}: \`${half.value}\` is not a time of day; write HH:MM, 00:00 to 23:59`);
  const startMinute = minute(raw.start);
  const endMinute = minute(raw.end);
  if (startMinute === endMinute) {
    const key = raw.end.key.slice(0, raw.end.key.lastIndexOf("."));
    refusePlaced(raw.end, `${key}: start and end must differ; leave the key out to run at any hour (times are HH:MM)`);
  }
  return { start: raw.start.value, end: raw.end.value, startMinute, endMinute };
}

function compareStalls(report: Placed<string> | null, kill: Placed<string> | null, order: boolean): void {
  if (order) return;
  // The repository's value is blamed when it has one of the two: it could have set the other.
  const repository = [kill, report].find((placed) => placed !== null && !placed.key.startsWith("defaults."));
  const blamed = repository ?? kill ?? report;
  if (blamed === null || blamed === undefined) return;
  const wording = (placed: Placed<string> | null, fallback: string) =>
    placed === null ? `\`${fallback}\` by default` : `\`${placed.value}\``;
  refusePlaced(
    blamed,
    `scheduler.stall_after must be greater than scheduler.stall_report_after; they are ${wording(kill, "2h")} and ${wording(report, "10m")}`,
  );
}

/** Checks 9 to 13 of files.md 3.7 on the effective values. */
export function checkScheduler(repository: RawScheduler, user: RawScheduler | null): SchedulerConfig {
  const maximum = repository.maxParallelTasks ?? user?.maxParallelTasks ?? null;
  const report = repository.stallReportAfter ?? user?.stallReportAfter ?? null;
  const kill = repository.stallAfter ?? user?.stallAfter ?? null;
  const grace = repository.cancelGrace ?? user?.cancelGrace ?? null;
  if (maximum !== null && maximum.value < 1) refusePlaced(maximum, `${maximum.key} must be greater than zero`);
  const stallReportAfterMs = checkDuration(report, tenMinutesMs);
  const stallAfterMs = checkDuration(kill, twoHoursMs);
  compareStalls(report, kill, stallAfterMs > stallReportAfterMs);
  return {
    maxParallelTasks: maximum?.value ?? 1,
    stallReportAfterMs,
    stallAfterMs,
    cancelGraceMs: checkDuration(grace, twoSecondsMs),
    runningHours: checkHours(repository.runningHours ?? user?.runningHours ?? null),
  };
}

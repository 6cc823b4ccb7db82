// Spans of time: how people write them (`30m`), and the two ways they are shown back.

import { trimBlank } from "./blank.ts";

const unitMs = new Map([
  ["s", 1_000n],
  ["m", 60_000n],
  ["h", 3_600_000n],
  ["d", 86_400_000n],
  ["w", 604_800_000n],
]);
const largestMs = 0x7fff_ffff_ffff_ffffn;
const examples = "30d, 12h, 30m, 45s, or 2w";

export type DurationResult = { ok: true; ms: number } | { ok: false; problem: string };

function refuse(problem: string): DurationResult {
  return { ok: false, problem };
}

/** Reads `<integer><s|m|h|d|w>` (files.md 2.2) as milliseconds; the problem quotes the value and shows how to write one. */
export function parseDuration(text: string): DurationResult {
  const match = /^([+-]?)([0-9]+)([smhdw])$/.exec(trimBlank(text));
  const unit = unitMs.get(match?.[3] ?? "");
  if (match === null || unit === undefined) {
    return refuse(`\`${text}\` is not a duration; write a whole number and a unit, such as ${examples}`);
  }
  // Without its leading zeros a count that could fit has at most 19 digits: a long one never becomes a big integer.
  const digits = (match[2] ?? "").replace(/^0+/, "");
  if (digits === "" || match[1] === "-") {
    return refuse(`\`${text}\` must be a positive duration, such as ${examples}`);
  }
  const product = digits.length > 19 ? null : BigInt(digits) * unit;
  if (product === null || product > largestMs) {
    return refuse(`\`${text}\` is not a usable duration: the value is too large; write one such as ${examples}`);
  }
  return { ok: true, ms: Number(product) };
}

/** The daemon's wording in reasons: `45s`, `5m1s`, `2h`, `2h5m`. Whole seconds; none once there are hours; zero units dropped. */
export function formatSilence(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  const rest = seconds % 60;
  if (hours > 0) return minutes > 0 ? `${hours}h${minutes}m` : `${hours}h`;
  if (minutes > 0) return rest > 0 ? `${minutes}m${rest}s` : `${minutes}m`;
  return `${rest}s`;
}

/** The CLI's wording: two units at most, zero minor units kept: `9s`, `1m0s`, `1h5m`, `1d0h`. Rounded down. */
export function formatSpan(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (days > 0) return `${days}d${hours % 24}h`;
  if (hours > 0) return `${hours}h${minutes % 60}m`;
  if (minutes > 0) return `${minutes}m${seconds % 60}s`;
  return `${seconds}s`;
}

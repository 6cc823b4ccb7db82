// Clock times, spans and countdowns as people read them (cli.md 13.1); local time, epoch milliseconds in.

import { formatSpan } from "../core/duration.ts";

const two = (value: number) => String(value).padStart(2, "0");

/** Local `HH:MM`. */
export function clockTime(ms: number): string {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** Local `MM-DD HH:MM`. */
export function datedTime(ms: number): string {
  const at = new Date(ms);
  return `${two(at.getMonth() + 1)}-${two(at.getDate())} ${clockTime(ms)}`;
}

function sameDay(one: number, other: number): boolean {
  return new Date(one).toDateString() === new Date(other).toDateString();
}

/** `HH:MM` today, dated on any other day. */
export function timeOn(ms: number, now: number): string {
  return sameDay(ms, now) ? clockTime(ms) : datedTime(ms);
}

/** `14:02-14:09`, `14:02-... (6m3s)` while unfinished, `-` without a start; the opening is dated when it is not of today or not of the end's day. */
export function span(startMs: number | null, endMs: number | null, now: number): string {
  if (startMs === null) return "-";
  const crosses = endMs !== null && !sameDay(startMs, endMs);
  const opening = crosses || !sameDay(startMs, now) ? datedTime(startMs) : clockTime(startMs);
  if (endMs === null) return `${opening}-... (${formatSpan(now - startMs)})`;
  return `${opening}-${crosses ? datedTime(endMs) : clockTime(endMs)}`;
}

/** `in 42m0s`, or `imminent` once it is reached; text that is no timestamp is passed through. */
export function countdown(at: string, now: number): string {
  const ms = Date.parse(at);
  if (Number.isNaN(ms)) return at;
  return ms > now ? `in ${formatSpan(ms - now)}` : "imminent";
}

/** `1 run`, `0 runs`, `2 runs`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

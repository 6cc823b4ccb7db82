// Running hours and local times: reading `HH:MM`, whether the window is open, and when it opens next.

import type { RunningHours } from "./config.ts";

type Window = Pick<RunningHours, "startMinute" | "endMinute">;

const minuteMs = 60_000;
const blockMinutes = 60;
/** Two days and the longest hour a clock change can add. */
const scanBlocks = 49;

/** The minute of the day, 0 to 1439, of `HH:MM`; null unless it is two digits, colon, two digits within 00:00-23:59. */
export function parseLocalTime(text: string): number | null {
  const match = /^([01][0-9]|2[0-3]):([0-5][0-9])$/.exec(text);
  return match === null ? null : Number(match[1]) * 60 + Number(match[2]);
}

/** Whether the window holds the minute: start inclusive, end exclusive; a start after the end crosses midnight. */
export function isOpen(hours: Window, minute: number): boolean {
  const { startMinute, endMinute } = hours;
  if (startMinute < endMinute) return startMinute <= minute && minute < endMinute;
  return minute >= startMinute || minute < endMinute;
}

/** The minute of the day the local wall clock shows at `now` (epoch ms). */
export function localMinute(now: number): number {
  const date = new Date(now);
  return date.getHours() * 60 + date.getMinutes();
}

function offset(ms: number): number {
  return new Date(ms).getTimezoneOffset();
}

/** The first matching minute of the hour of real minutes from `start`; asks the clock for each only around a clock change. */
function firstInBlock(start: number, wanted: (minute: number) => boolean): number | null {
  const steady = offset(start) === offset(start + (blockMinutes - 1) * minuteMs);
  const base = localMinute(start);
  for (let step = 0; step < blockMinutes; step += 1) {
    const at = start + step * minuteMs;
    const minute = steady ? (base + step) % 1440 : localMinute(at);
    if (wanted(minute)) return at;
  }
  return null;
}

function firstMinute(now: number, wanted: (minute: number) => boolean): number | null {
  const first = (Math.floor(now / minuteMs) + 1) * minuteMs;
  for (let block = 0; block < scanBlocks; block += 1) {
    const found = firstInBlock(first + block * blockMinutes * minuteMs, wanted);
    if (found !== null) return found;
  }
  return null;
}

/** Epoch ms of the first whole minute strictly after `now` inside the window, found by stepping real minutes for 49 h. */
export function nextOpening(hours: Window, now: number): number | null {
  return firstMinute(now, (minute) => isOpen(hours, minute));
}

/** Epoch ms of the next whole minute strictly after `now` at which the local clock reads `minute`; a skipped one is tomorrow's. */
export function nextLocalTime(minute: number, now: number): number | null {
  return firstMinute(now, (candidate) => candidate === minute);
}

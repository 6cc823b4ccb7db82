// Local times and running hours, across clock changes. The zone is the process's, so the tests set it per case.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isOpen, localMinute, nextLocalTime, nextOpening, parseLocalTime } from "../../src/core/hours.ts";

/** Runs `action` as if the process had been started in `zone`; `bun test` itself runs in UTC unless TZ says otherwise. */
function inZone(zone: string, action: () => void): void {
  const before = process.env["TZ"] ?? "UTC";
  process.env["TZ"] = zone;
  try {
    action();
  } finally {
    process.env["TZ"] = before;
  }
}

const at = (iso: string) => Date.parse(iso);
const minutes = (text: string) => parseLocalTime(text) as number;
const window = (start: string, end: string) => ({ startMinute: minutes(start), endMinute: minutes(end) });

test.each([
  ["00:00", 0],
  ["09:05", 545],
  ["23:59", 1439],
])("%s is minute %i", (text, minute) => {
  expect(parseLocalTime(text)).toBe(minute);
});

test.each(["9:00", "24:00", "12:60", "1200", "", "+5:00", "12:00 ", "١٢:00", "12:0", "012:00", "12:00\n"])(
  "%j is no time",
  (text) => {
    expect(parseLocalTime(text)).toBeNull();
  },
);

describe("the window", () => {
  test.each([
    ["09:00", "17:00", "08:59", false],
    ["09:00", "17:00", "09:00", true],
    ["09:00", "17:00", "16:59", true],
    ["09:00", "17:00", "17:00", false],
    ["22:00", "06:00", "21:59", false],
    ["22:00", "06:00", "22:00", true],
    ["22:00", "06:00", "00:00", true],
    ["22:00", "06:00", "05:59", true],
    ["22:00", "06:00", "06:00", false],
  ])("%s-%s at %s: %p", (start, end, time, open) => {
    expect(isOpen(window(start, end), minutes(time))).toBe(open);
  });
});

describe("the next opening", () => {
  test.each([
    ["UTC", "09:00-17:00", "2026-06-01T07:00:30Z", "2026-06-01T09:00:00Z"],
    ["UTC", "09:00-17:00", "2026-06-01T09:00:00Z", "2026-06-01T09:01:00Z"],
    ["UTC", "09:00-17:00", "2026-06-01T16:59:00Z", "2026-06-02T09:00:00Z"],
    ["UTC", "22:00-06:00", "2026-06-01T07:00:00Z", "2026-06-01T22:00:00Z"],
    ["Europe/Berlin", "09:00-17:00", "2026-06-01T00:00:00Z", "2026-06-01T07:00:00Z"],
    // 02:00-03:00 does not exist on that day: open from the first minute after the skip that is inside.
    ["Europe/Berlin", "02:30-06:00", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"],
    // The window lies inside the skipped hour altogether: the next day.
    ["Europe/Berlin", "02:15-02:45", "2026-03-29T00:00:00Z", "2026-03-30T00:15:00Z"],
    // The hour that comes twice.
    ["Europe/Berlin", "02:30-02:40", "2026-10-25T00:35:00Z", "2026-10-25T00:36:00Z"],
    ["Europe/Berlin", "02:30-02:40", "2026-10-25T00:40:00Z", "2026-10-25T01:30:00Z"],
    ["Asia/Kathmandu", "00:00-00:01", "2026-06-01T00:00:00Z", "2026-06-01T18:15:00Z"],
    ["Australia/Lord_Howe", "02:10-02:20", "2026-10-03T15:00:00Z", "2026-10-04T15:10:00Z"],
  ])("%s %s after %s is %s", (zone, hours, now, expected) => {
    const [start = "", end = ""] = hours.split("-");
    inZone(zone, () => {
      const next = nextOpening(window(start, end), at(now));
      expect(next === null ? null : new Date(next).toISOString()).toBe(new Date(at(expected)).toISOString());
    });
  });
});

describe("the next local time", () => {
  test.each([
    ["UTC", "03:00", "2026-06-01T02:59:59.999Z", "2026-06-01T03:00:00Z"],
    ["UTC", "03:00", "2026-06-01T03:00:00Z", "2026-06-02T03:00:00Z"],
    ["UTC", "03:00", "2026-06-01T03:00:30Z", "2026-06-02T03:00:00Z"],
    ["Europe/Berlin", "02:30", "2026-03-28T23:00:00Z", "2026-03-30T00:30:00Z"],
    ["Europe/Berlin", "02:30", "2026-10-24T23:00:00Z", "2026-10-25T00:30:00Z"],
    ["Europe/Berlin", "02:30", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"],
  ])("%s %s after %s is %s", (zone, time, now, expected) => {
    inZone(zone, () => {
      const next = nextLocalTime(minutes(time), at(now));
      expect(next === null ? null : new Date(next).toISOString()).toBe(new Date(at(expected)).toISOString());
    });
  });

  test("equals stepping every real minute", () => {
    const zones = fc.constantFrom("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia");
    const around = fc.constantFrom("2026-03-29", "2026-10-25", "2026-03-08", "2026-11-01", "2026-04-05", "2026-10-04");
    fc.assert(
      fc.property(
        zones,
        around,
        fc.integer({ min: -86_400, max: 86_400 }),
        fc.nat(1439),
        (zone, day, offset, minute) => {
          inZone(zone, () => {
            const now = at(`${day}T00:00:00Z`) + offset * 1000;
            let step = (Math.floor(now / 60_000) + 1) * 60_000;
            const end = step + 49 * 3_600_000;
            while (step < end && localMinute(step) !== minute) step += 60_000;
            expect(nextLocalTime(minute, now)).toBe(step < end ? step : null);
          });
        },
      ),
      { numRuns: 150 },
    );
  });
});

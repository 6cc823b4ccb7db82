// Clock times, spans and countdowns.

import { expect, test } from "bun:test";
import { countdown, counted, span, timeOn } from "../../src/cli/span.ts";
import { at } from "./fixtures.ts";

const now = at("14:08:03");

test.each([
  [null, null, "-"],
  [at("14:02"), at("14:09"), "14:02-14:09"],
  [at("14:02"), null, "14:02-... (6m3s)"],
  [at("14:02"), at("14:02"), "14:02-14:02"],
  [at("07-30 23:50"), at("07-31 00:12"), "07-30 23:50-07-31 00:12"],
  [at("07-30 09:10"), at("07-30 09:31"), "07-30 09:10-09:31"],
  [at("08-01 23:50"), null, "08-01 23:50-... (14h18m)"],
  [at("08-01 23:50"), at("00:10"), "08-01 23:50-08-02 00:10"],
])("span %#", (start, end, text) => {
  expect(span(start, end, now)).toBe(text);
});

test("an instant of another day is dated", () => {
  expect(timeOn(at("09:10"), now)).toBe("09:10");
  expect(timeOn(at("07-30 09:10"), now)).toBe("07-30 09:10");
});

test.each([
  [new Date(now + 42 * 60_000).toISOString(), "in 42m0s"],
  [new Date(now + 90_061_000).toISOString(), "in 1d1h"],
  [new Date(now).toISOString(), "imminent"],
  ["whenever", "whenever"],
])("countdown %s", (instant, text) => {
  expect(countdown(instant, now)).toBe(text);
});

test("plurals", () => {
  expect([0, 1, 2].map((count) => counted(count, "run"))).toEqual(["0 runs", "1 run", "2 runs"]);
});

// Durations: what is read (files.md 2.2), and the two wordings.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatSilence, formatSpan, parseDuration } from "../../src/core/duration.ts";

describe("parseDuration", () => {
  test.each([
    ["45s", 45_000],
    ["30m", 1_800_000],
    ["12h", 43_200_000],
    ["30d", 2_592_000_000],
    ["2w", 1_209_600_000],
    ["+5m", 300_000],
    ["007s", 7_000],
    [" 1h\t\u0085", 3_600_000],
    [`${"0".repeat(40)}1s`, 1_000],
  ])("%j is %i ms", (text, ms) => {
    expect(parseDuration(text)).toEqual({ ok: true, ms });
  });

  test.each([
    ["", "30d, 12h, 30m, 45s, or 2w"],
    ["30", "30d, 12h, 30m, 45s, or 2w"],
    ["d", "`d`"],
    ["1.5h", "`1.5h`"],
    ["30 days", "`30 days`"],
    ["1 h", "`1 h`"],
    ["5M", "`5M`"],
    ["5é", "`5é`"],
    ["soon", "`soon`"],
    ["never", "`never`"],
    ["1h30m", "`1h30m`"],
    ["٣s", "`٣s`"],
    ["\ufeff1s", "30d, 12h, 30m, 45s, or 2w"],
    ["0d", "positive duration"],
    ["0m", "positive duration"],
    ["-1d", "positive duration"],
    ["-0s", "positive duration"],
    ["999999999999999w", "value is too large"],
    ["9223372036854776s", "value is too large"],
    [`${"9".repeat(100_000)}s`, "value is too large"],
  ])("%j is refused", (text, fragment) => {
    const result = parseDuration(text);
    expect(result.ok).toBe(false);
    expect(result.ok ? "" : result.problem).toContain(fragment);
  });

  test("the largest that fits", () => {
    expect(parseDuration("9223372036854775s").ok).toBe(true);
  });

  test("is total, and positive when it reads", () => {
    const any = fc.oneof(fc.string({ unit: "binary" }), fc.stringMatching(/^[+-]?[0-9]{1,25}[smhdwx]$/));
    fc.assert(
      fc.property(any, (text) => {
        const result = parseDuration(text);
        if (result.ok) expect(result.ms).toBeGreaterThan(0);
        else expect(result.problem).toContain(`\`${text}\``);
      }),
    );
  });
});

test.each([
  [0, "0s"],
  [-5, "0s"],
  [999, "0s"],
  [45_000, "45s"],
  [1_800_000, "30m"],
  [301_000, "5m1s"],
  [301_999, "5m1s"],
  [7_200_000, "2h"],
  [7_201_000, "2h"],
  [7_500_000, "2h5m"],
  [90_000_000, "25h"],
])("the daemon's wording of %i ms is %s", (ms, text) => {
  expect(formatSilence(ms)).toBe(text);
});

test.each([
  [0, "0s"],
  [-1, "0s"],
  [9_999, "9s"],
  [60_000, "1m0s"],
  [191_000, "3m11s"],
  [3_600_000, "1h0m"],
  [3_900_000, "1h5m"],
  [86_399_000, "23h59m"],
  [86_400_000, "1d0h"],
  [604_799_000, "6d23h"],
])("the CLI's wording of %i ms is %s", (ms, text) => {
  expect(formatSpan(ms)).toBe(text);
});

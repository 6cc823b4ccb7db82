// Option values: durations, counts, times.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { parseSpan, readValue } from "../../src/cli/value.ts";

const unit = { ms: 1n, s: 1000n, m: 60_000n, h: 3_600_000n, d: 86_400_000n, w: 604_800_000n } as const;
const part = fc.tuple(
  fc.bigInt({ min: 0n, max: 10n ** 6n }),
  fc.constantFrom(...(Object.keys(unit) as (keyof typeof unit)[])),
);

test("a span is the sum of its parts", () => {
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 5 }), (parts) => {
      const text = parts.map(([count, name]) => `${count}${name}`).join("");
      const sum = parts.reduce((total, [count, name]) => total + count * unit[name], 0n);
      expect(parseSpan(text)).toBe(sum > 0n ? sum : null);
    }),
  );
});

test("a span never throws, whatever the text", () => {
  fc.assert(fc.property(fc.string(), (text) => parseSpan(text) === null || /^[0-9a-z]+$/.test(text)));
});

test.each(["9223372036854775808ms", "99999999999999999999w", "-5m", "5 m", "m", "", "1.5h", "5M"])(
  "no span: %s",
  (text) => {
    expect(parseSpan(text)).toBeNull();
  },
);

test("every minute of the day is a time, and nothing else", () => {
  const time = { kind: "time" } as const;
  for (let minute = 0; minute < 1440; minute += 1) {
    const text = `${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;
    expect(readValue(text, time).ok).toBe(true);
  }
  for (const text of ["24:00", "3:00", "03:60", "03:0", "+5:00", "03:00:00", " 03:00", "٠٣:٠٠"]) {
    expect(readValue(text, time).ok).toBe(false);
  }
});

test("a count is exactly the decimal integers of its range", () => {
  const form = { kind: "count", min: 1, max: 4_294_967_295 } as const;
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4_294_967_295 }), (value) => {
      expect(readValue(String(value), form)).toEqual({ ok: true, value });
    }),
  );
  for (const text of ["0", "4294967296", "-1", "+1", "1_0", "0x1", "1e1", " 1", "1 ", "٣", ""]) {
    expect(readValue(text, form).ok).toBe(false);
  }
});

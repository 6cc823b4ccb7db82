// JSON without silent loss: what is read goes back digit by digit.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { parseExact, renderExact } from "../../src/protocol/exact.ts";

test("integers beyond 2^53 survive both ways", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }), (value) => {
      const safe = value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER);
      const read = parseExact(`{"a":[${value}]}`) as { a: [number | bigint] };
      expect(read.a[0]).toBe(safe ? Number(value) : value);
      expect(renderExact(read)).toBe(`{"a":[${value}]}`);
    }),
  );
});

/** Bigints as the doubles JSON.parse would have made of them. */
function inDoubles(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_key, part) => (typeof part === "bigint" ? Number(part) : part)));
}

test("everything else is read as JSON.parse reads it", () => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom("", " ", "\r", "\t\n", "\v", "\f \r"), (text, blanks) => {
      const plain = text.replaceAll(/[0-9]{16,}/g, "7");
      expect(inDoubles(parseExact(`${blanks}${plain}${blanks}`))).toEqual(JSON.parse(plain));
    }),
  );
  expect(parseExact('"12345678901234567890"')).toBe("12345678901234567890");
  expect(parseExact("0.10000000000000000000")).toBe(0.1);
  expect(() => parseExact("\ufeff{}")).toThrow(SyntaxError);
});

test.each<[string, number | bigint]>([
  ["5.0", 5],
  ["-0", -0],
  ["0e999999999", 0],
  ["1e2", 100],
  ["1.5e1", 15],
  ["2500e-2", 25],
  ["9007199254740993.0", 9_007_199_254_740_993n],
  ["9223372036854775807.000", 9_223_372_036_854_775_807n],
  ["-9.223372036854775808e18", -9_223_372_036_854_775_808n],
  ["1e30", 10n ** 30n],
  ["1e300", 1e300],
  ["0.5", 0.5],
])("%s is %p", (text, value) => {
  expect(parseExact(text)).toBe(value);
});

test("a fraction that a double rounds to an integer is none", () => {
  for (const text of [
    "1.00000000000000000001",
    "9007199254740992.5",
    "1e-400",
    "-1e-400",
    "25e-400",
    "4503599627370497.49e0",
  ])
    expect(Number.isInteger(parseExact(text))).toBe(false);
});

test("a number of a megabyte is read in no time", () => {
  const zeros = "0".repeat(500_000);
  expect(parseExact(`1.${zeros}1`)).toBeNaN();
  expect(parseExact(`1.${zeros}`)).toBe(1);
  expect(parseExact(`${zeros.replaceAll("0", "9")}e-500000`)).toBeNaN();
});

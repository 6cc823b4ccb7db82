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

test("everything else is read as JSON.parse reads it", () => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom("", " ", "\r", "\t\n", "\v", "\f \r"), (text, blanks) => {
      const plain = text.replaceAll(/[0-9]{16,}/g, "7");
      expect(parseExact(`${blanks}${plain}${blanks}`)).toEqual(JSON.parse(plain));
    }),
  );
  expect(parseExact('"12345678901234567890"')).toBe("12345678901234567890");
  expect(parseExact("0.10000000000000000000")).toBe(0.1);
  expect(() => parseExact("\ufeff{}")).toThrow(SyntaxError);
});

// FNV-1a-64 against published vectors, and against the definition written down plainly.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { contentHash } from "../../src/core/hash.ts";

test.each([
  ["", "cbf29ce484222325"],
  ["a", "af63dc4c8601ec8c"],
  ["foobar", "85944171f73967e8"],
  ["chongo was here!\n", "46810940eff5f915"],
])("%j", (text, expected) => {
  expect(contentHash(new TextEncoder().encode(text))).toBe(expected);
});

test("keeps leading zeros and wraps at 64 bits", () => {
  const hashes = Array.from({ length: 500 }, (_, index) => contentHash(new Uint8Array([index % 256, index >> 8, 255])));
  for (const hash of hashes) expect(hash).toMatch(/^[0-9a-f]{16}$/);
  expect(new Set(hashes).size).toBe(500);
});

function byDefinition(bytes: Uint8Array): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash.toString(16).padStart(16, "0");
}

test("the halves give what one 64-bit number would", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      expect(contentHash(bytes)).toBe(byDefinition(bytes));
    }),
  );
});

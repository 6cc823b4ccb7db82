// The order of ticket lists, and that taking a few of many gives what sorting them all would.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { ordinal } from "../../src/core/ids.ts";
import { newestFirst, type Registered } from "../../src/core/recency.ts";

function slowly(rows: readonly Registered[]): Registered[] {
  return [...rows].sort((a, b) => {
    const byNumber = ordinal(b.id) - ordinal(a.id);
    return b.createdAtMs - a.createdAtMs || (byNumber > 0n ? 1 : byNumber < 0n ? -1 : 0) || (a.id < b.id ? 1 : -1);
  });
}

const id = fc.oneof(
  fc.tuple(fc.constantFrom("TICK", "A", "a-b"), fc.bigInt({ min: 0n, max: 2n ** 64n })).map((parts) => parts.join("-")),
  fc.tuple(fc.constantFrom("TICK", "A"), fc.nat(30)).map((parts) => parts.join("-")),
  fc.constantFrom("plain", "x-", "-7", "TICK-9007199254740993", "TICK-9007199254740992"),
);
const rows = fc.uniqueArray(fc.record({ id, createdAtMs: fc.nat(3) }), { selector: (row) => row.id, maxLength: 120 });

test("any part of the order is a part of the whole", () => {
  fc.assert(
    fc.property(rows, fc.option(fc.nat(40)), (some, limit) => {
      expect(newestFirst(some, limit)).toEqual(slowly(some).slice(0, limit ?? some.length));
    }),
    { numRuns: 500 },
  );
});

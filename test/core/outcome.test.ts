// The outcome of a run as a total function of its evidence: the table of engine.md 13.1, row by row.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { vendorClasses } from "../../src/core/evidence.ts";
import { deriveOutcome, type End } from "../../src/core/outcome.ts";
import { outcomes } from "../../src/core/ticket.ts";

const good: End = {
  orphaned: false,
  cancelRequested: false,
  stalled: false,
  vendorClass: null,
  merged: true,
  unresumable: false,
  exit: { ran: true, code: 0 },
  haltIndex: null,
  halted: false,
  commits: { complete: true, oids: ["a"] },
};
const none = { complete: true, oids: [] };
const unknown = { complete: false, oids: [] };
const failedLater: End = { ...good, merged: false, halted: true, haltIndex: 2 };

const table: [string, Partial<End>, string][] = [
  ["merged", {}, "merged"],
  ["orphaned", { orphaned: true, merged: false, exit: { ran: true, code: null } }, "orphaned"],
  ["orphaned and cancelled", { orphaned: true, cancelRequested: true }, "cancelled"],
  ["orphaned and stalled", { orphaned: true, stalled: true }, "failed"],
  ["orphaned after a vendor rejection", { orphaned: true, vendorClass: "rate_limited" }, "rate_limited"],
  ["cancel beats a merge", { cancelRequested: true }, "cancelled"],
  ["cancel beats a stall", { cancelRequested: true, stalled: true }, "cancelled"],
  ["a stall beats a vendor", { stalled: true, vendorClass: "rate_limited" }, "failed"],
  ["a rejection that cools", { vendorClass: "unknown_rejection" }, "rate_limited"],
  ["a rejection that does not", { vendorClass: "authentication_required" }, "failed"],
  ["merged after a failed agent that was reported as passed", { exit: { ran: true, code: 1 } }, "merged"],
];

const halted: [string, Partial<End>, string][] = [
  ["what the walk needs is gone", { unresumable: true, haltIndex: null, commits: none }, "needs_review"],
  ["agent failed", { exit: { ran: true, code: 3 } }, "failed"],
  ["agent killed by a signal", { exit: { ran: true, code: null } }, "failed"],
  ["later halt, certainly no commits", { commits: none }, "failed"],
  ["later halt, commits", {}, "needs_review"],
  ["later halt, commits unknown", { commits: unknown }, "needs_review"],
  ["later halt, never observed", { commits: null }, "needs_review"],
  ["halt on the first stage without commits", { haltIndex: 0, commits: none }, "needs_review"],
  ["halt at an unknown position, no commits", { haltIndex: null, commits: none }, "failed"],
  ["no agent ever exited, exec stage 0 failed", { haltIndex: 0, exit: { ran: false, code: null } }, "needs_review"],
  ["complete without a merge stage", { halted: false, haltIndex: null }, "needs_review"],
  [
    "complete without a merge stage and without commits",
    { halted: false, haltIndex: null, commits: none },
    "needs_review",
  ],
];

const ends: fc.Arbitrary<End> = fc.record({
  orphaned: fc.boolean(),
  cancelRequested: fc.boolean(),
  stalled: fc.boolean(),
  vendorClass: fc.constantFrom(null, ...vendorClasses),
  merged: fc.boolean(),
  unresumable: fc.boolean(),
  exit: fc.record({ ran: fc.boolean(), code: fc.constantFrom(null, 0, 1) }),
  haltIndex: fc.constantFrom(null, 0, 1),
  halted: fc.boolean(),
  commits: fc.constantFrom(null, none, unknown, { complete: true, oids: ["a"] }),
});

describe("deriveOutcome", () => {
  test.each(table)("%s", (_name, change, outcome) =>
    expect(deriveOutcome({ ...good, ...change })).toBe(outcome as never),
  );
  test.each(halted)("%s", (_name, change, outcome) =>
    expect(deriveOutcome({ ...failedLater, ...change })).toBe(outcome as never),
  );

  test("is total; merged implies a merge and no cancel, stall or rejection; cancel implies cancelled", () => {
    fc.assert(
      fc.property(ends, (end) => {
        const outcome = deriveOutcome(end);
        expect(outcomes).toContain(outcome);
        if (end.cancelRequested) expect(outcome).toBe("cancelled");
        if (outcome !== "merged") return;
        expect(end.merged && !end.stalled && end.vendorClass === null && !end.orphaned).toBe(true);
      }),
    );
  });
});

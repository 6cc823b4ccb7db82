// The table itself: the verbs of protocol.md section 1, who may call them, which change nothing.

import { expect, test } from "bun:test";
import { isVerb, verbs } from "../../src/protocol/verbs.ts";

test("the operator's and the worker's verbs are exactly these", () => {
  const names = (who: string) =>
    Object.entries(verbs)
      // Comes with its own issue.
      .filter(([name, row]) => row.who === who && name !== "reindex")
      .map(([name]) => name)
      .sort();
  expect(names("worker")).toEqual(["brief", "note", "verdict"]);
  expect(names("both")).toEqual(["show"]);
  const operator =
    "cancel daemon events hold init list logs pause post ready restart resume retry run status stop wait";
  expect(names("operator").join(" ")).toBe(operator);
});

test("reads are the verbs that change nothing", () => {
  const reads = Object.entries(verbs)
    .filter(([, row]) => row.read)
    .map(([name]) => name)
    .sort();
  expect(reads.join(" ")).toBe("brief daemon events init list logs show status wait");
});

test("names inherited from Object are no verbs", () => {
  for (const name of ["constructor", "toString", "__proto__", "hasOwnProperty", ""]) expect(isVerb(name)).toBe(false);
});

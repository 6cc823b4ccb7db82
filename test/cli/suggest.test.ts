// Suggestions: the two measures of likeness, and what they add up to.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { commands } from "../../src/cli/commands.ts";
import { commandTip, editDistance, jaro, likelyTip, similarNames } from "../../src/cli/suggest.ts";

const word = fc.string({ maxLength: 12 });

test.each([
  ["", "abc", 3],
  ["show", "show", 0],
  ["shwo", "show", 1],
  ["kitten", "sitting", 3],
  ["ca", "abc", 3],
])("distance of %s and %s is %d", (a, b, distance) => {
  expect(editDistance(a, b)).toBe(distance);
});

test("distance is a symmetric measure that is 0 only for the same word", () => {
  fc.assert(
    fc.property(word, word, (a, b) => {
      const distance = editDistance(a, b);
      expect(distance).toBe(editDistance(b, a));
      expect(distance === 0).toBe(a === b);
      expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
    }),
  );
});

test.each([
  ["MARTHA", "MARHTA", 0.944],
  ["DIXON", "DICKSONX", 0.767],
  ["JELLYFISH", "SMELLYFISH", 0.896],
])("Jaro of %s and %s", (a, b, likeness) => {
  expect(jaro(a, b)).toBeCloseTo(likeness, 3);
});

test("Jaro is symmetric and lies between 0 and 1", () => {
  fc.assert(
    fc.property(word, word, (a, b) => {
      const likeness = jaro(a, b);
      expect(likeness).toBeCloseTo(jaro(b, a), 10);
      expect(likeness).toBeGreaterThanOrEqual(0);
      expect(likeness).toBeLessThanOrEqual(1);
    }),
  );
});

test("at most three, best first, and a long word costs nothing", () => {
  expect(similarNames("wat", ["watch", "wait", "logs"])).toEqual(["wait", "watch"]);
  expect(similarNames("aaaa", ["aaab", "aaac", "aaad", "aaae"])).toHaveLength(3);
  expect(similarNames("x".repeat(1_000_000), ["show"])).toEqual([]);
});

test("other tools' words win over likeness; nothing alike gives no tip", () => {
  expect(commandTip("ps", ["post", "show"])).toStartWith("`ps` is not a command; did you mean `show` or `list`?");
  expect(commandTip("start", ["status"])).toContain("run `sloop run`");
  expect(likelyTip("zzzzzz", ["show", "list"])).toBeNull();
});

test.each([
  ["statsu", "status"],
  ["stauts", "status"],
  ["stat", "status"],
  ["wacth", "watch"],
  ["watc", "watch"],
  ["wiat", "wait"],
  ["wat", "wait"],
  ["lst", "list"],
  ["lists", "list"],
  ["evnets", "events"],
  ["complete", "completions"],
  ["docter", "doctor"],
])("`%s` is a near miss of `%s`, which the tip names first", (typed, meant) => {
  const names = commands.map(({ name }) => name);
  expect(commandTip(typed, names)).toStartWith(`did you mean \`${meant}\``);
});

// The pattern engine: it agrees with RegExp where both know the syntax, and its time stays linear where RegExp's does not.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { compilePattern } from "../../src/core/pattern.ts";

function matches(pattern: string, text: string): boolean {
  const compiled = compilePattern(pattern);
  if (compiled === null) throw new Error(`bad pattern: ${pattern}`);
  return compiled(text);
}

const literal = fc.constantFrom("a", "b", "c", "A", "B", " ", "-", "1", "_");
const piece = fc.oneof(
  { weight: 6, arbitrary: literal },
  fc.constantFrom(".", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "^", "$", "\\b", "\\B", "\\.", "\\x61"),
  fc.constantFrom("[ab]", "[^a]", "[a-c1]", "[^\\d]", "[\\w-]", "[A-B]"),
);

/** Expressions that RegExp reads too; counts are small, so that its backtracking cannot explode. */
const expression = fc.letrec<{ choice: string; sequence: string; part: string }>((tie) => ({
  part: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    piece,
    fc
      .tuple(literal, fc.constantFrom("*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "*?", "+?"))
      .map(([a, q]) => a + q),
    tie("choice").map((inner) => `(${inner})`),
    tie("choice").map((inner) => `(?:${inner})`),
    fc.tuple(tie("choice"), fc.constantFrom("?", "{1,2}", "{2}")).map(([inner, q]) => `(?:${inner})${q}`),
  ),
  sequence: fc.array(tie("part"), { maxLength: 4, depthIdentifier: "p" }).map((parts) => parts.join("")),
  choice: fc
    .array(tie("sequence"), { minLength: 1, maxLength: 3, depthIdentifier: "p" })
    .map((parts) => parts.join("|")),
})).choice;

const subject = fc.string({
  unit: fc.constantFrom("a", "b", "c", "A", "B", "C", " ", "-", "1", "_", "."),
  maxLength: 12,
});

describe("compilePattern", () => {
  test("agrees with RegExp", () => {
    fc.assert(
      fc.property(expression, fc.array(subject, { minLength: 1, maxLength: 4 }), (pattern, texts) => {
        const wanted = new RegExp(/[.^$*+?()[\]{}|\\]/.test(pattern) ? pattern : RegExp.escape(pattern), "iu");
        for (const text of texts) expect(matches(pattern, text)).toBe(wanted.test(text));
      }),
      { numRuns: 300 },
    );
  });

  test("takes text without special characters as a substring, letter case aside", () => {
    fc.assert(
      fc.property(subject, subject, subject, (before, middle, after) => {
        const plain = middle.replaceAll(".", "");
        expect(matches(plain.toUpperCase(), before + plain + after)).toBe(true);
      }),
    );
    expect(matches("", "")).toBe(true);
    expect(matches("", "anything")).toBe(true);
    expect(matches("CAFÉ", "Grand café")).toBe(true);
    expect(matches("tick-9", "TICK-99")).toBe(true);
    expect(matches("tick-8", "TICK-99")).toBe(false);
  });

  test("never throws on any text, and never asks RegExp to run it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 30 }), subject, (pattern, text) => {
        const compiled = compilePattern(pattern);
        if (compiled !== null) expect(typeof compiled(text)).toBe("boolean");
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ["^tick-[12]$", "TICK-1", true],
    ["^tick-[12]$", "TICK-12", false],
    ["^$", "", true],
    ["\\Acache\\z", "Cache", true],
    ["caf.", "CAFÉ", true],
    ["caf\\w$", "café", true],
    ["É+", "éÉé", true],
    ["[^é]", "É", false],
    ["\\x{1F600}", "a😀", true],
    ["\\u00e9", "É", true],
    ["^.$", "😀", true],
    ["[]a]", "]", true],
    ["[^]a]", "]", false],
    ["[a-]", "-", true],
    ["a]}", "A]}", true],
    ["(?i)abc", "xABCx", true],
    ["(?<name>a)(?P<other>b)", "ab", true],
    ["\\p{Lu}", "a", true],
    ["\\p{Greek}", "a", false],
    ["a{0}b", "b", true],
    ["(a*)*c", "aaab", false],
    ["()*x", "x", true],
    ["a||b", "", true],
    ["ſ", "S", false],
    ["ſ?.", "S", true],
    ["\\bfix\\b", "a fix-up", true],
    ["\\bfix\\b", "prefix", false],
  ])("%s over %s is %p", (pattern, text, wanted) => {
    expect(matches(pattern, text)).toBe(wanted);
  });

  test.each([
    "[",
    "(",
    ")",
    "a)",
    "*",
    "+a",
    "?",
    "a|*",
    "a**",
    "{",
    "a{",
    "a{}",
    "a{2,1}",
    "a{1001}",
    "a{x}",
    "\\",
    "[z-a]",
    "[\\d-z]",
    "[]",
    "[[:alpha:]]",
    "(?=a)",
    "(?!a)",
    "(?<=a)",
    "(?<!a)",
    "(a)\\1",
    "\\k<a>",
    "\\q",
    "\\x",
    "\\x{110000}",
    "\\p{Nonsense}",
    "(?s)a",
    "((a{1000}){1000}){1000}",
    "((((){1000}){1000}){1000}){1000}",
  ])("refuses %s", (pattern) => {
    expect(compilePattern(pattern)).toBeNull();
  });

  test("refuses deep nesting instead of running out of stack", () => {
    expect(compilePattern("(".repeat(100_000))).toBeNull();
    expect(compilePattern(`${"(".repeat(300)}a${")".repeat(300)}`)).toBeNull();
    expect(matches(`${"(".repeat(200)}a${")".repeat(200)}`, "xax")).toBe(true);
  });

  test("stays linear where backtracking explodes", () => {
    const text = "a".repeat(20_000);
    const started = performance.now();
    for (const pattern of ["(a+)+$b", "(a|a)*b", "(a|aa)+$x", "(.*)(.*)(.*)(.*)[^a]", "(a?){200}a{200}b"]) {
      expect(matches(pattern, text)).toBe(false);
    }
    expect(performance.now() - started).toBeLessThan(2000);
  });

  test("stays linear when it must keep forgetting states", () => {
    const matcher = compilePattern("[ab]*a[ab]{20}c") as (text: string) => boolean;
    let seed = 1;
    const letters = Array.from({ length: 30_000 }, () => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return seed % 3 === 0 ? "a" : "b";
    });
    const started = performance.now();
    expect(matcher(letters.join(""))).toBe(false);
    expect(performance.now() - started).toBeLessThan(3000);
  });
});

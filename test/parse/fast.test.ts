// The fast reader must answer exactly what the YAML library answers, or nothing.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseSimple } from "../../src/parse/fast.ts";
import { parseYamlFully } from "../../src/parse/source.ts";
import { scaffold, templates } from "../../src/parse/templates.ts";

const word = fc.constantFrom(
  ..."a b name key true false null ~ 007 7 -7 +1 0x1F 0b11 1.5 .5 1e5 .inf 22:00 2024-01-01 1_000 a:b --print -x - -- --- ... . .. / x/y *a &a !t".split(
    " ",
  ),
  ..."[] {} [a] {a: b} [a, b] [a,b] [a, [b, c]] {a: {b: c}} [a, ] [,] [ a ] { a: b } {a: } {a} {a:b} [a b] [a: b] [-x] [--] [-] [a]b".split(
    " ",
  ),
  "a b",
  "a  b",
  "a #b",
  "a#b",
  "a # b",
  "# c",
  "#c",
  "a: b",
  "a:",
  ": a",
  "'q'",
  '"q"',
  "'it''s'",
  '"\\n"',
  '"a" b',
  "'a'#",
  "'a' #c",
  '"a:b": c',
  "{ a: b, c: [d, 'e'] }",
  "[a, {b: c}]",
  "[a, b] # c",
  "[a] #",
  '{"a": b}',
  "{a: 'x', a: y}",
  "{start: 22:00, end: 06:00}",
  '[claude, --print, --model, "{model}"]',
  "größe",
  "日本",
  "\u00a0",
  "a\u00a0",
  "|",
  ">-",
  "? x",
  "%a",
  "@a",
  "`a`",
  "<<",
  "=",
  "a,b",
  "a]",
  "}",
  "",
  " ",
);
const indent = fc.constantFrom("", "", "", " ", "  ", "  ", "    ");
const lead = fc.constantFrom(
  "",
  "",
  "- ",
  "-  ",
  "- - ",
  "-",
  "a: ",
  "b: ",
  "c:",
  "k: ",
  "name: ",
  "a : ",
  "x:  ",
  "- a: ",
  "- b:",
  "#",
  "# ",
  "'a': ",
  "? ",
);
const line = fc.tuple(indent, lead, word, fc.constantFrom("", "", "", " ", " #x")).map((parts) => parts.join(""));
const soup = fc.array(line, { maxLength: 7 }).map((lines) => lines.join("\n"));
const ended = fc.tuple(soup, fc.constantFrom("", "\n", "\n\n")).map((parts) => parts.join(""));

/** Well-formed documents of the kind people write, so that the fast path is really taken. */
const scalar = fc.constantFrom(
  "a",
  "true",
  "007",
  "7",
  "a b",
  "22:00",
  "x/y",
  '"q: r"',
  "'s'",
  "[]",
  "[a, b]",
  "{ a: b, c: 1 }",
  "--print",
  "größe # c",
);
const tree: fc.Arbitrary<string[]> = fc.letrec<{ block: string[]; value: string[] }>((tie) => ({
  block: fc.oneof(
    fc.array(tie("value"), { minLength: 1, maxLength: 3 }).map((values) =>
      values.flatMap((value, index) => {
        const key = `k${index}:`;
        return value.length === 1 ? [`${key} ${value[0]}`] : [key, ...value.map((text) => `  ${text}`)];
      }),
    ),
    fc
      .array(tie("value"), { minLength: 1, maxLength: 3 })
      .map((values) =>
        values.flatMap((value) => value.map((text, index) => (index === 0 ? `- ${text}` : `  ${text}`))),
      ),
  ),
  value: fc.oneof(
    { depthSize: "small" },
    scalar.map((text) => [text]),
    tie("block"),
  ),
})).block;

function agree(text: string): boolean {
  const fast = parseSimple(text);
  if (fast !== null) expect({ ok: true, root: fast.root }).toEqual(parseYamlFully(text) as never);
  return fast !== null;
}

describe("the fast reader agrees with the YAML library", () => {
  test("on lines of every kind", () => {
    fc.assert(
      fc.property(ended, (text) => void agree(text)),
      { numRuns: 20_000 },
    );
  });

  test("on well-formed documents, many of which it takes", () => {
    let taken = 0;
    const runs = 2_000;
    fc.assert(
      fc.property(tree, (lines) => {
        if (agree(`${lines.join("\n")}\n`)) taken += 1;
      }),
      { numRuns: runs },
    );
    expect(taken).toBeGreaterThan(runs / 10);
  });

  test("on any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => void agree(text)),
      { numRuns: 1_000 },
    );
  });
});

describe("the fast reader takes the files it was made for", () => {
  const files = scaffold(["bun", "test"]).filter((file) => file.path.endsWith(".yaml"));
  const cases = [...files, { path: "template config", text: templates.config }];
  test.each(cases.map((file) => [file.path, file.text] as const))("%s", (_path, text) => {
    expect(agree(text)).toBe(true);
  });

  test("a ticket's block", () => {
    expect(agree("name: Expire idle sessions\nblocked_by: [WEB-3]\nmodel: sonnet\n")).toBe(true);
  });
});

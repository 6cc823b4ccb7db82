// files.md 5 and 15 B, as far as the text alone decides.

import { describe, expect, test } from "bun:test";
import { decodeUtf8, parseTicket, salvageTicket, splitFrontmatter } from "../../src/parse/ticket.ts";
import { refusal } from "./refusal.ts";

const path = ".agents/sloop/tickets/t.md";
const file = (block: string, body = "Do it.\n") => `---\n${block}\n---\n${body}`;
const good = (block: string) => parseTicket(file(`${block}\nblocked_by: []`), path);
const named = (block: string) => parseTicket(file(`name: N\n${block}`), path);

const noName = "missing or empty `name`; add `name: Your ticket title`";
const noBlockers = "missing `blocked_by`; add `blocked_by: []`";
const noBody = "empty `body`; add a ticket description";

describe("one problem is one line", () => {
  test.each<[string, string, string[]]>([
    ["B2", file("blocked_by: []"), [noName]],
    ["B3", file('name: "  "\nblocked_by: []'), [noName]],
    ["B3 U+0085", file('name: "\\u0085"\nblocked_by: []'), [noName]],
    ["B4", file("name: ~\nblocked_by: []"), [noName]],
    ["B7", file("name: true\nblocked_by: []"), ["frontmatter field `name` must be a scalar", "`true`"]],
    ["a list", file("name: N\nblocked_by: []\nflow: [a]"), ["frontmatter field `flow` must be a scalar", "list"]],
    ["B9", file("name: N"), [noBlockers]],
    ["B10", file("name: N\nblocked_by: T1"), ["invalid `blocked_by`; use `blocked_by: []`"]],
    ["B10 null", file("name: N\nblocked_by: ~"), ["invalid `blocked_by`; use `blocked_by: []`"]],
    ["B10 mapping", file("name: N\nblocked_by: {a: b}"), ["invalid `blocked_by`; use `blocked_by: []`"]],
    ["B11", file("name: N\nblocked_by: [12]"), ["invalid `blocked_by`; use `blocked_by: []`"]],
    ["B13", file("name: N\nblocked_by: []", " \n\t\u00a0\u0085\n"), [noBody]],
    ["B17", file("name: N\r\nblocked_by: []\r"), ["line break other than LF", "line 2"]],
    ["B17 U+2028", file("name: N\u2028\nblocked_by: []"), ["line break other than LF"]],
    ["B17 U+0085", file("name: N\u0085\nblocked_by: []"), ["line break other than LF"]],
    ["B18", "---\nname: N\nblocked_by: []\nbody", ["not terminated"]],
    ["B19", "---\nname: N\nblocked_by: []\n---\r\nbody", ["not terminated"]],
    ["closer with blanks", "---\nname: N\n--- \nbody", ["not terminated"]],
    ["opener alone", "---\n", ["not terminated"]],
    ["B20", "---\nname: N\nblocked_by: []\n---", [noBody]],
    ["B21", file("name: [oops", ""), ["invalid frontmatter", "line"]],
    ["B22", file("~"), ["invalid frontmatter", "must be a mapping"]],
    ["B22 list", file("- a"), ["invalid frontmatter", "must be a mapping", "list"]],
    ["a scalar", file("hello"), ["invalid frontmatter", "must be a mapping"]],
    ["B23", file("id: T1\nid: T1", ""), ["invalid frontmatter", "duplicate", "`id`", "line 3, column 1"]],
    ["B49", file('name: N\nblocked_by: []\nworktree: "a b"'), ["`worktree`", "branch name"]],
    ["B49 ..", file("name: N\nblocked_by: []\nworktree: .."), ["`worktree`", "branch name"]],
    ["B50", file('name: N\nblocked_by: []\nid: ""'), ["`id`"]],
    ["B50 blank", file('name: N\nblocked_by: []\nid: "a b"'), ["`id`"]],
    ["half a surrogate pair as an id", file('name: N\nblocked_by: []\nid: "\\ud800"'), ["`id`"]],
    ["half a pair as a worktree", file('name: N\nblocked_by: []\nworktree: "\\udc00"'), ["`worktree`", "branch name"]],
    ["id with a lock", file("name: N\nblocked_by: []\nid: a/.b"), ["`id`"]],
    ["two documents", file("name: N\n--- \nname: M"), ["invalid frontmatter", "more than one document"]],
  ])("%s", (_name, text, fragments) => {
    const message = refusal(() => parseTicket(text, path));
    expect(message).toStartWith(`${path}: `);
    expect(message).not.toContain("\n");
    for (const fragment of fragments) expect(message).toContain(fragment);
  });
});

describe("several problems are a heading and a line each", () => {
  test.each<[string, string, string[]]>([
    ["B8", file("name: [a]\nblocked_by: T1"), ["invalid `blocked_by`", "frontmatter field `name` must be a scalar"]],
    ["B14", file("title: x", " \n"), [noName, noBlockers, noBody]],
    ["B15", "Just text.\n", [noName, noBlockers]],
    ["an empty file", "", [noName, noBlockers, noBody]],
    ["comments only", file("# nothing"), [noName, noBlockers]],
    ["B16 CRLF", "---\r\nname: N\r\nblocked_by: []\r\n---\r\nbody\r\n", [`${noName} (`, noBlockers]],
    ["B16 BOM", "\ufeff---\nname: N\nblocked_by: []\n---\nbody\n", [`${noName} (`, noBlockers]],
    ["blank after the opener", "--- \nname: N\nblocked_by: []\n---\nbody\n", [`${noName} (`, noBlockers]],
    [
      "group 4 in its order",
      file("flow: true\nid: [a]\nblocked_by: 1\nname: {}\nworktree: a..b\nproject: true"),
      ["invalid `blocked_by`", "field `id`", "field `project`", "field `name`", "field `worktree`", "field `flow`"],
    ],
  ])("%s", (_name, text, starts) => {
    const lines = (refusal(() => parseTicket(text, path)) ?? "").split("\n");
    expect(lines[0]).toBe(`${path}:`);
    expect(lines).toHaveLength(starts.length + 1);
    for (const [index, start] of starts.entries()) {
      expect(lines[index + 1]).toStartWith("  - ");
      expect(lines[index + 1]).toContain(start);
    }
  });

  test.each([
    ["\ufeff---\nname: N\n---\nbody", "byte-order mark"],
    ["---\r\nname: N\r\n---\r\n", "carriage return"],
    ["---\t\nname: N\n---\n", "blanks after"],
    ["\n---\nname: N\n---\n", "not exactly `---`"],
    ["----\nname: N\n----\n", "not exactly `---`"],
    [" ---\nname: N\n---\n", "not exactly `---`"],
  ])("the cause of a missed block is told: %j", (text, cause) => {
    expect(refusal(() => parseTicket(text, path))).toContain(cause);
  });
});

describe("what is wrong, where, and what to write instead", () => {
  test.each<[string, string[]]>([
    ["name: [a]\nblocked_by: []", ["found a list", "(line 2, column 7)"]],
    ["name: N\nblocked_by: none", ['found the string "none"', "(line 3, column 13)"]],
    ["name: N\nblocked_by:", ["found nothing (null)", "(line 3, column 1)"]],
    ["name: N\nblocked_by: [T1, 12]", ["found the number `12`", "(line 3, column 18)"]],
    ["name: N\nblocked_by: []\nworktree: a b", ['"a b"', "(line 4, column 11)"]],
    ["name: Fix: it\nblocked_by: []", ["put a value with `: ` in it in quotes", "(line 2, column 7)"]],
    ["name: `x` is slow\nblocked_by: []", ["put the value in quotes", "(line 2, column 7)"]],
    ["name: [WIP] x\nblocked_by: []", ["put the whole value in quotes", "(line 2, column 13)"]],
    ["name: N\n\tblocked_by: []", ["indent with spaces", "(line 3, column 1)"]],
    ["x: { a: 1,\n\tb: @ }", ["indent with spaces"]],
  ])("%j", (block, fragments) => {
    const message = refusal(() => parseTicket(file(block), path));
    for (const fragment of fragments) expect(message).toContain(fragment);
  });
});

describe("accepted", () => {
  test("B1", () => {
    expect(good("name: Expire idle sessions")).toEqual({
      id: null,
      name: "Expire idle sessions",
      project: null,
      title: null,
      worktree: null,
      target: null,
      model: null,
      effort: null,
      flow: null,
      blockedBy: [],
      body: "Do it.\n",
    });
  });

  test.each<[string, string, string]>([
    ["B5", "42", "42"],
    ["B6", "yes", "yes"],
    ["leading zero", "007", "007"],
    ["float", "4.10", "4.10"],
    ["hex", "0x10", "0x10"],
    ["time", "22:00", "22:00"],
    ["BOM is not blank", '"\\ufeff"', "\ufeff"],
  ])("%s: name %s", (_name, written, read) => {
    expect(good(`name: ${written}`).name).toBe(read);
  });

  test("numbers keep their spelling, blank model and effort count as absent", () => {
    expect(good("name: N\nmodel: 4.10").model).toBe("4.10");
    expect(good('name: N\nmodel: "  "\neffort: ""')).toMatchObject({ model: null, effort: null });
  });

  test("B12 and strings that look like numbers", () => {
    expect(named("blocked_by: [T2, T1, T2, 007, '12']").blockedBy).toEqual(["T2", "T1", "007", "12"]);
  });

  test("B24: other line breaks in the body", () => {
    const body = "a\r\nb\u2028c\u0085\n---\nd";
    expect(parseTicket(file("name: N\nblocked_by: []", body), path).body).toBe(body);
  });

  test("B25 and B26: flow style and an indented mapping parse", () => {
    expect(parseTicket(file("{name: X, blocked_by: []}"), path).name).toBe("X");
    expect(parseTicket(file("  name: X\n  blocked_by: []"), path).name).toBe("X");
  });

  test("B27 parses as absent, B28 is ignored, B48 is kept", () => {
    const ticket = good("name: N\nid:\npriority: high\nlabels: [a]\nworktree: feature/x");
    expect(ticket).toMatchObject({ id: null, worktree: "feature/x" });
  });
});

test("splitFrontmatter finds the closing line and the body", () => {
  expect(splitFrontmatter("---\na: 1\n---\nbody")).toEqual({
    kind: "block",
    yaml: "a: 1\n",
    closeStart: 9,
    bodyStart: 13,
  });
  expect(splitFrontmatter("---\n---")).toEqual({ kind: "block", yaml: "", closeStart: 4, bodyStart: 7 });
  expect(splitFrontmatter("--\na")).toEqual({ kind: "none", cause: null });
  expect(splitFrontmatter("----\na\n---\n")).toMatchObject({
    kind: "none",
    cause: expect.stringContaining("not exactly"),
  });
});

test("decodeUtf8 is strict and keeps a byte-order mark", () => {
  expect(decodeUtf8(new TextEncoder().encode("\ufeffä"))).toBe("\ufeffä");
  expect(decodeUtf8(new Uint8Array([0x61, 0xff]))).toBeNull();
  expect(decodeUtf8(new Uint8Array([0xed, 0xa0, 0x80]))).toBeNull();
});

describe("salvage", () => {
  test("keeps what can be read", () => {
    const text = file("id: T1\nname: [x]\nblocked_by: [T2, 3, T2]\nproject: 7\nflow: true");
    expect(salvageTicket(text)).toMatchObject({
      id: "T1",
      name: null,
      project: "7",
      flow: null,
      blockedBy: ["T2"],
      body: "Do it.\n",
    });
  });

  test("reads an unterminated block to the end of the file", () => {
    expect(salvageTicket("---\nid: T1\nname: N\n")).toMatchObject({ id: "T1", name: "N", body: "" });
  });

  test("a block with a foreign line break still ends at its closing line", () => {
    expect(salvageTicket("---\nid: T1\nname: a\r\n---\nbody")).toMatchObject({ id: "T1", body: "body" });
  });

  test("yields nothing from YAML that does not parse, or without a block", () => {
    expect(salvageTicket(file("id: T1\nname: [oops"))).toMatchObject({ id: null, name: null, blockedBy: [] });
    expect(salvageTicket("text")).toMatchObject({ id: null, body: "text" });
  });
});

// Write-back (files.md 6.4, 8): which lines are added, and when nothing may be written at all.

import { describe, expect, test } from "bun:test";
import { parseProject } from "../../src/parse/project.ts";
import { stampId, stampTicket } from "../../src/parse/stamp.ts";
import { parseTicket } from "../../src/parse/ticket.ts";
import { refusal } from "./refusal.ts";

const path = ".agents/sloop/tickets/cooldowns.md";
const values = { id: "T9", project: "default", worktree: "sloop/cooldowns", flow: "default" };
const stamp = (text: string, over: Partial<typeof values> = {}) => stampTicket(text, path, { ...values, ...over });

describe("tickets", () => {
  test("the absent keys go before the closing line, in order", () => {
    expect(stamp("---\ntitle: Cooldowns\nid: T9\n---\nbody\n")).toBe(
      "---\ntitle: Cooldowns\nid: T9\nproject: default\nworktree: sloop/cooldowns\nflow: default\n---\nbody\n",
    );
  });

  test("every existing byte survives", () => {
    const block = "# top\nname:   'x'   # why\nblocked_by: [a,   b]\n\nlabels:\n- z\n";
    const added = "id: T9\nproject: default\nworktree: sloop/cooldowns\nflow: default\n";
    expect(stamp(`---\n${block}---\nno newline at the end \u2028`)).toBe(
      `---\n${block}${added}---\nno newline at the end \u2028`,
    );
  });

  test("B26: nothing to do when all four are there, in any style", () => {
    expect(stamp("---\n{name: X, blocked_by: [], id: a, project: b, worktree: c, flow: d}\n---\nb")).toBeNull();
  });

  test("an empty block", () => {
    expect(stamp("---\n---\nb")).toBe(
      "---\nid: T9\nproject: default\nworktree: sloop/cooldowns\nflow: default\n---\nb",
    );
  });

  test.each<[string, string, string[]]>([
    ["B25 flow style", "---\n{name: X, blocked_by: []}\n---\nb", ["invalid frontmatter"]],
    ["an indented block", "---\n  name: X\n  blocked_by: []\n---\nb", ["invalid frontmatter"]],
    ["B27 null key", "---\nname: X\nblocked_by: []\nid:\n---\nb", ["invalid frontmatter", "`id` is present but empty"]],
    ["null flow", "---\nid: a\nflow: ~\n---\nb", ["invalid frontmatter", "`flow` is present but empty"]],
    ["a document end", "---\nname: X\n...\n---\nb", ["invalid frontmatter"]],
    ["unreadable", "---\nname: [\n---\nb", ["invalid frontmatter"]],
  ])("%s is refused", (_name, text, fragments) => {
    const message = refusal(() => stamp(text));
    expect(message).toStartWith(`${path}: `);
    for (const fragment of fragments) expect(message).toContain(fragment);
  });

  test.each([
    ["plain", "plain"],
    ["a-b_c/d.e", "a-b_c/d.e"],
    ["007", "007"],
    ["1e5", "1e5"],
    ["true", '"true"'],
    ["~", '"~"'],
    ["null", '"null"'],
    ["", '""'],
    ["a: b", '"a: b"'],
    ["#x", '"#x"'],
    ["a #x", '"a #x"'],
    ["-", '"-"'],
    ["[x", '"[x"'],
    [" x", '" x"'],
    ["a\nb", '"a\\nb"'],
    ["a\u2028b", '"a\\u2028b"'],
    ['"', '"\\""'],
    ["a\\b", "a\\b"],
    ["größe", "größe"],
  ])("the value %j is written %s", (project, written) => {
    const text = stamp("---\nname: N\nblocked_by: []\n---\nb", { project });
    expect(text).toContain(`\nproject: ${written}\n`);
    expect(parseTicket(text ?? "", path).project).toBe(project);
  });
});

describe("projects", () => {
  test("a block of its own when there is none", () => {
    expect(stampId("Free text.\n", "p.md", "PROJ-1")).toBe("---\nid: PROJ-1\n---\nFree text.\n");
    expect(stampId("", "p.md", "PROJ-1")).toBe("---\nid: PROJ-1\n---\n");
  });

  test("only the id is added, and nothing to a file that has one", () => {
    expect(stampId("---\ntitle: T\n---\nx", "p.md", "PROJ-1")).toBe("---\ntitle: T\nid: PROJ-1\n---\nx");
    expect(stampId("---\nid: web\n---\nx", "p.md", "PROJ-1")).toBeNull();
  });

  test("flow style is refused", () => {
    expect(refusal(() => stampId("---\n{title: T}\n---\n", "p.md", "PROJ-1"))).toStartWith("p.md: invalid frontmatter");
  });

  test("reading", () => {
    expect(parseProject("---\nid: web\ntitle: Web frontend\n---\nx", "p.md")).toEqual({
      id: "web",
      title: "Web frontend",
    });
    expect(parseProject("x", "p.md")).toEqual({ id: null, title: null });
    expect(parseProject('---\nid: 7\ntitle: " "\nother: [1]\n---\n', "p.md")).toEqual({ id: "7", title: null });
  });

  test.each([
    ["---\nid: web\n", "not terminated"],
    ["---\nid: [a]\n---\n", "`id` must be a scalar"],
    ["---\nblocked_by: x\n---\n", "invalid `blocked_by`"],
    ["---\nid: ''\n---\n", "`id`"],
    ["---\n- a\n---\n", "must be a mapping"],
    ["---\nid: a\nid: b\n---\n", "duplicate"],
  ])("%j is a reason to skip the file", (text, fragment) => {
    const result = parseProject(text, "p.md");
    expect("problem" in result && result.problem).toStartWith("p.md: ");
    expect("problem" in result && result.problem).toContain(fragment);
  });
});

// files.md 15 C through the compiled binary: each flow file as `sloop post` loads it before anything is sent.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { folder, openPosting, type Posting, valid } from "./posting.ts";
import { expectGist, refusal } from "./refusal.ts";

setDefaultTimeout(60_000);

const config = `    codex:
      cmd: [codex, "{prompt}"]
`;
const flowFile = ".agents/sloop/flows/case.yaml";

let scene: Posting;
beforeAll(async () => {
  scene = await openPosting({ config });
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
});

const B = "{ name: build, action: agent }";
const X = (name: string) => `{ name: ${name}, action: { exec: ['true'] } }`;
const sync = (name = "sync") => `{ name: ${name}, action: { builtin: sync } }`;
const merge = (name = "merge", more = "") => `{ name: ${name}, action: { builtin: merge }${more} }`;
const stages = (...list: string[]) => `[${list.join(", ")}]`;
const action = (inner: string) => `[{ name: a, action: ${inner} }]`;
const check = (of: string, inner: string) => `[{ name: a, action: ${of}, result_check: ${inner} }]`;
const back = (name: string, more: string) => X(name).replace(/ }$/, `, fail_action: { return_to: ${more} } }`);
const seats = (count: number) => `[${Array.from({ length: count }, () => "{ target: sh }").join(", ")}]`;
const panel = (inner: string) => `{ panel: { ${inner} } }`;
const reviewed = (inner: string) => check("agent", panel(inner));
const numbered = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => X(`s${from + n}`));

type Row = [number: string, text: string, gist?: string[]];

async function post(): Promise<string> {
  return scene.put("flow-case.md", valid());
}

describe("accepted", () => {
  test.each<Row>([
    ["C1", stages(B)],
    ["C2", `stages: ${stages(B)}\nowner: me`],
    ["C3", stages(X("a"))],
    ["C4", stages(X("a"), B)],
    ["C4", stages(B, B.replace("build", "again"))],
    ["C11", "- name: a\n  action: { agent: }"],
    ["C18", stages(B, "{ name: merge, action: { builtin: merge, ff_only: false } }")],
    ["C29", "- name: build\n  action: agent\n  result_check:\n"],
    ["C30", check("{ exec: ['true'] }", "{ builtin: commits }")],
    ["C30", check("{ exec: ['true'] }", "reported")],
    ["C36", stages(B, merge("merge", ", fail_action: continue"))],
    ["C40", stages(B, sync(), X("a"), sync("resync"), merge())],
    ["C42", stages(B, back("test", "build"))],
    ["C46", `- ${B}\n- name: t\n  action: { exec: ['true'] }\n  fail_action: { return_to: build, attempts: }\n`],
    ["C48", stages(...numbered(1, 7), back("s8", "s1, attempts: 5"))],
    ["C52", reviewed(`prompt: p.md, reviewers: ${seats(2)}`)],
    ["C56", reviewed(`prompt: prompts/absent.md, reviewers: ${seats(2)}`)],
  ])("%s %j", async (_number, text) => {
    scene.write(flowFile, text);
    const ran = await scene.sloop(["post", await post()]);
    expect([ran.code, ran.stderr]).toEqual([0, ""]);
  });
});

const grammar: Row[] = [
  ["C5", "[]", ["must define at least one stage"]],
  ["C5", "stages: []", ["must define at least one stage"]],
  ["C6", "", ["stages"]],
  ["C6", "hello", ["stages", "hello"]],
  ["C6", "steps: []", ["stages"]],
  ["C7", stages(B, B), ["duplicate stage name `build`"]],
  ["C8", "[{ name: a }]", ["stage `a`", "must define an `action`"]],
  ["C9", "[{ name: a, action: ~ }]", ["stage `a`", "must define an `action`"]],
  ["C10", action("wizard"), ["stage `a`", "unknown action `wizard`"]],
  ["C12", action("{ exec: [] }"), ["stage `a`", "exec action must define a non-empty command"]],
  ["C12", action("{ exec: [' '] }"), ["exec action must define a non-empty command"]],
  ["C13", action("{ exec: bun }"), ["stage `a`", "list", "bun"]],
  ["C14", action("{ exec: [sleep, 5] }"), ["stage `a`", "`5`", "quote"]],
  ["C15", action("{ exec: [true] }"), ["stage `a`", "`true`", "quote"]],
  ["C16", action("{ builtin: sparkle }"), ["unknown builtin `sparkle`"]],
  ["C17", action("{ builtin: commits }"), ["`commits` is a result_check, not an action"]],
  ["C19", action("{ builtin: sync, ff_only: false }"), ["may only define `ff_only` on the `merge` builtin"]],
  ["C20", action("{ agent: x, ff_only: true }"), ["may only define `ff_only` on the `merge` builtin"]],
  ["C20", action("{ exec: [x], ff_only: true }"), ["may only define `ff_only` on the `merge` builtin"]],
  ["C21", check("agent", "{ builtin: commits, ff_only: true }"), ["may only define `ff_only` on the `merge` builtin"]],
  ["C22", check("agent", "{ exec: [x], ff_only: true }"), ["may only define `ff_only` on the `merge` builtin"]],
  ["C23", action('{ builtin: merge, ff_only: "true" }'), ["stage `a`", "ff_only", "`true` or `false`"]],
  ["C24", action("{ agent: x, exec: [y] }"), ["stage `a`", "ambiguous"]],
  ["C25", check("agent", "magic"), ["unknown result_check `magic`"]],
  ["C26", check("agent", "agent"), ["unknown result_check `agent`"]],
  ["C26", check("agent", "commits"), ["unknown result_check `commits`"]],
  ["C27", check("agent", "{ agent: x }"), ["stage `a`", "result_check"]],
  ["C28", check("agent", "none"), ["is an agent action, so its result_check may not be `none`"]],
  ["C31", check("agent", "{ exec: [] }"), ["exec result_check must define a non-empty command"]],
  ["C32", check("agent", "{ builtin: merge }"), ["result_check may not be the `merge` builtin"]],
  ["C32", check("agent", "{ builtin: sync }"), ["result_check may not be the `sync` builtin"]],
  ["C33", stages(B, merge("m", ", result_check: reported")), ["merge stage `m` must have `result_check: none`"]],
  ["C34", check("{ builtin: sync }", "{ builtin: commits }"), ["sync stage `a` must have `result_check: none`"]],
  [
    "C35",
    stages(B, merge("m", `, result_check: ${panel(`prompt: p.md, reviewers: ${seats(2)}`)}`)),
    ["merge stage `m` must have `result_check: none`"],
  ],
  ["C37", stages(B, merge(), merge("merge2")), ["at most one merge stage", "2"]],
  ["C38", stages(B, merge(), X("a")), ["merge stage must be last"]],
  ["C39", stages(B, merge(), sync()), ["sync stage `sync` must come before the merge stage"]],
  ["C41", stages(X("a").replace(/ }$/, ", fail_action: retry }")), ["unknown fail_action `retry`"]],
  ["C41", stages(X("a").replace(/ }$/, ", fail_action: halt }")), ["unknown fail_action `halt`"]],
];

const limits: Row[] = [
  ["C43", stages(back("a", "a")), ["stage `a`", "return_to must name an earlier stage", "`a`"]],
  ["C43", stages(back("a", "b"), X("b")), ["return_to must name an earlier stage", "`b`"]],
  ["C43", stages(B, back("a", "nowhere")), ["return_to must name an earlier stage", "`nowhere`"]],
  ["C44", stages(B, back("a", "build, attempts: 0")), ["return_to attempts must be between 1 and 10"]],
  ["C44", stages(B, back("a", "build, attempts: 11")), ["return_to attempts must be between 1 and 10"]],
  ...['"2"', "-1", "1.5"].map(
    (value): Row => [
      "C45",
      stages(B, back("a", `build, attempts: ${value}`)),
      ["stage `a`", "attempts", "whole number"],
    ],
  ),
  [
    "C47",
    stages(...numbered(1, 9), back("s10", "s1, attempts: 10")),
    ["at most 48 stages in the worst case", "imply 110"],
  ],
  [
    "C49",
    stages(
      B.replace(/ }$/, `, result_check: ${panel(`prompt: p.md, reviewers: ${seats(5)}`)} }`),
      ...numbered(1, 2),
      back("s3", "build, attempts: 5"),
    ),
    ["at most 48 stages in the worst case", "imply 54"],
  ],
  ["C50", reviewed(`prompt: p.md, reviewers: ${seats(1)}`), ["panel must define between 2 and 5 reviewers", "1"]],
  ["C50", reviewed(`prompt: p.md, reviewers: ${seats(6)}`), ["panel must define between 2 and 5 reviewers", "6"]],
  ["C50", reviewed("prompt: p.md"), ["panel must define between 2 and 5 reviewers", "0"]],
  ["C51", reviewed(`prompt: p.md, reviewers: ${seats(2)}, require: { quorum: 0 }`), ["between 1 and 2", "0"]],
  ["C51", reviewed(`prompt: p.md, reviewers: ${seats(2)}, require: { quorum: 3 }`), ["between 1 and 2", "3"]],
  ["C53", reviewed("prompt: p.md, reviewers: [claude, codex]"), ["stage `a`", "reviewer", "mapping", "claude"]],
  ["C54", reviewed(`reviewers: ${seats(2)}`), ["panel must define a non-empty `prompt`"]],
  ["C54", reviewed(`prompt: " ", reviewers: ${seats(2)}`), ["panel must define a non-empty `prompt`"]],
  ...["/etc/passwd", "../x.md", "a/../b.md"].map(
    (path): Row => [
      "C55",
      reviewed(`prompt: ${path}, reviewers: ${seats(2)}`),
      ["must be a relative path under `.agents/sloop`", path],
    ],
  ),
  [
    "C57",
    reviewed("prompt: p.md, reviewers: [{ target: sh }, { target: nobody }]"),
    ["stage `a`", "panel reviewer", "unknown agent target `nobody`"],
  ],
];

const keys: Row[] = [
  ["C58", "[{ name: a, kind: agent }]", ["unknown key `kind`", "`action`", "result_check", "fail_action"]],
  ["C59", "[{ name: a, action: agent, cmd: x }]", ["unknown key `cmd`", "did you mean `action`"]],
  ["C59", "[{ name: a, action: agent, run: x }]", ["unknown key `run`", "did you mean `action`"]],
  ["C59", "[{ name: a, action: agent, verdict: x }]", ["unknown key `verdict`", "did you mean `result_check`"]],
  ["C59", "[{ name: a, action: agent, on_fail: x }]", ["unknown key `on_fail`", "did you mean `fail_action`"]],
  ["C60", "[{ name: a, action: agent, fail_acton: fail }]", ["unknown key `fail_acton`", "`fail_action`"]],
  ["C61", "[{ name: a, action: agent, retries: 3 }]", ["unknown key `retries`", "action", "result_check", "name"]],
  ["C62", "[{ name: 5, action: agent }]", ["name", "`5`"]],
  ["C62", "[{ name: true, action: agent }]", ["name", "`true`"]],
  ["C62", "[{ action: agent }]", ["name"]],
  ["C63", '[{ name: "", action: agent }]', ["name", "blank"]],
  ["C64", `--- \n- ${B}\n---\n- ${B}\n`, ["more than one document"]],
];

describe("refused", () => {
  test.each<Row>([...grammar, ...limits, ...keys])("%s %j", async (_number, text, gist = []) => {
    scene.write(flowFile, text);
    const path = await post();
    const { code, message } = await refusal(scene, ["post", path]);
    expect(code).toBe("invalid_arguments");
    expect(message).toStartWith(`${join(scene.root, flowFile)}: `);
    expectGist(message, gist);
    expect(scene.read(path)).toBe(valid());
    rmSync(join(scene.root, flowFile));
  });
});

describe("which files are read", () => {
  const flows = ".agents/sloop/flows";

  test("C65: a broken .yml is not read, and people are told", async () => {
    scene.write(`${flows}/a.yml`, "action: [");
    scene.write(`${flows}/nested/b.yaml`, "action: [");
    const ran = await scene.sloop(["post", await post()]);
    expect(ran.code).toBe(0);
    expect(ran.stderr).toBe(`warning: ${join(scene.root, flows)}/a.yml: not read; flow files end in \`.yaml\`\n`);
    rmSync(join(scene.root, flows, "a.yml"));
  });

  test("C66: a broken file blocks every post, whoever uses it, the first in name order", async () => {
    scene.write(`${flows}/unused.yaml`, "- { name: a, action: wizard }");
    scene.write(`${flows}/other.yaml`, "- { name: a, action: witch }");
    const { code, message } = await refusal(scene, ["post", `${folder}/t1.md`]);
    expect([code, message]).toEqual(["invalid_arguments", expect.stringContaining(`${flows}/other.yaml: `)]);
    rmSync(join(scene.root, flows, "other.yaml"));
    expect((await refusal(scene, ["post", `${folder}/t1.md`])).message).toContain(`${flows}/unused.yaml: `);
    expect((await scene.sloop(["show"])).code).toBe(0);
  });
});

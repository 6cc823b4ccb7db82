// files.md 15 C through the real loader.

import { describe, expect, test } from "bun:test";
import type { Flow, Stage } from "../../src/core/flow.ts";
import { parseFlow, worstCase } from "../../src/parse/flow.ts";
import { refusal } from "./refusal.ts";

const path = "/repo/.agents/sloop/flows/f.yaml";
const B = "- { name: build, action: agent }";
const X = (name: string, rest = "") => `- { name: ${name}, action: { exec: ['true'] }${rest} }`;
const stage = (rest: string) => `- { name: s, ${rest} }`;
const merge = (name = "merge", rest = "") => `- { name: ${name}, action: { builtin: merge }${rest} }`;
const sync = (name = "sync", rest = "") => `- { name: ${name}, action: { builtin: sync }${rest} }`;
const panel = (text: string) => stage(`action: { exec: [x] }, result_check: { panel: ${text} }`);
const seats = (count: number) => `[${Array.from({ length: count }, () => "{ target: t }").join(", ")}]`;
const many = (count: number, last: string) => [
  ...Array.from({ length: count - 1 }, (_, index) => X(`s${index}`)),
  X("last", last),
];

const parse = (...lines: string[]): Flow => parseFlow("f", path, `${lines.join("\n")}\n`);
const first = (flow: Flow): Stage => flow.stages[0] as Stage;

describe("accepted", () => {
  test.each<[string, string[], number]>([
    ["C1", [B], 1],
    ["C2", ["stages:", B, "owner: me"], 1],
    ["C3", [X("a")], 1],
    ["C4", [X("a"), B], 2],
    ["C4 two agents", [B, "- { name: again, action: agent }"], 2],
    ["C11", [stage("action: { agent: }")], 1],
    ["C18", [merge("m", "").replace("merge }", "merge, ff_only: false }")], 1],
    ["C30", [stage("action: { exec: [x] }, result_check: { builtin: commits }")], 1],
    ["C30 reported", [stage("action: { exec: [x] }, result_check: reported")], 1],
    ["C36", [merge("m", ", fail_action: continue")], 1],
    ["C40", [B, sync(), X("a"), sync("resync"), merge()], 5],
    ["C48", many(8, ", fail_action: { return_to: s0, attempts: 5 }"), 8],
    ["C56", [panel(`{ prompt: prompts/absent.md, reviewers: ${seats(2)} }`)], 1],
    ["document start, BOM, CRLF", [`\ufeff---\r\n${B}\r`], 1],
  ])("%s", (_name, lines, count) => {
    expect(parse(...lines).stages).toHaveLength(count);
  });

  test("defaults, C29 and C42 and C46 and C52 included", () => {
    expect(first(parse(stage("action: agent, result_check: , fail_action: ")))).toEqual({
      name: "s",
      action: { kind: "agent" },
      resultCheck: { kind: "commits" },
      failAction: { kind: "fail" },
    });
    expect(first(parse(X("a"))).resultCheck).toEqual({ kind: "none" });
    for (const attempts of ["", ", attempts: "]) {
      const flow = parse(B, X("a", `, fail_action: { return_to: build${attempts} }`));
      expect(flow.stages[1]?.failAction).toEqual({ kind: "return_to", stage: "build", attempts: 1 });
    }
    const check = first(
      parse(panel(`{ prompt: " a.md ", reviewers: [{ target: " t ", model: " m " }, { target: u }] }`)),
    );
    expect(check.resultCheck).toEqual({
      kind: "panel",
      prompt: "a.md",
      reviewers: [
        { target: "t", model: " m ", effort: null },
        { target: "u", model: null, effort: null },
      ],
      quorum: 2,
    });
  });

  test("the example of files.md 9.2", () => {
    const flow = parse(
      "stages:",
      "  - name: build",
      "    action: agent",
      "  - name: check",
      "    action: { exec: [bun, test] }",
      "    fail_action: { return_to: build, attempts: 2 }",
      "  - name: judge",
      "    action: { exec: [git, diff, --stat, main] }",
      "    result_check:",
      "      panel:",
      "        prompt: prompts/review.md",
      "        reviewers: [{ target: claude }, { target: codex, effort: high }]",
      "        require: { quorum: 1 }",
      "  - name: sync",
      "    action: { builtin: sync }",
      "  - name: merge",
      "    action: { builtin: merge, ff_only: true }",
      "    fail_action: { return_to: sync, attempts: 3 }",
    );
    expect(flow.name).toBe("f");
    expect(flow.stages.map((item) => item.name)).toEqual(["build", "check", "judge", "sync", "merge"]);
    expect(flow.stages[4]?.action).toEqual({ kind: "merge", ffOnly: true });
    expect(worstCase(flow.stages)).toBe(5 + 2 + 2 * 2 + 3 * 2);
  });
});

describe("refused", () => {
  test.each<[string, string[], string[]]>([
    ["C5", ["[]"], ["must define at least one stage"]],
    ["C5 stages", ["stages: []"], ["must define at least one stage"]],
    ["C6 empty", [""], ["list of stages"]],
    ["C6 word", ["hello"], ["list of stages", "hello"]],
    ["C6 steps", ["steps: []"], ["stages"]],
    ["stages null", ["stages:"], ["stages"]],
    ["stage not a mapping", ["- build"], ["stage 1", "mapping"]],
    ["C7", [B, B], ["duplicate stage name `build`"]],
    ["C8", ["- { name: s }"], ["stage `s`", "must define an `action`"]],
    ["C9", [stage("action: ~")], ["stage `s`", "must define an `action`"]],
    ["C10", [stage("action: wizard")], ["stage `s`", "unknown action `wizard`"]],
    ["C12", [stage("action: { exec: [] }")], ["stage `s`", "exec action must define a non-empty command"]],
    ["C12 blank", [stage("action: { exec: [' '] }")], ["exec action must define a non-empty command"]],
    ["C13", [stage("action: { exec: bun }")], ["stage `s`", "`exec`", "list"]],
    ["C14", [stage("action: { exec: [sleep, 5] }")], ["stage `s`", "`5`", "quote"]],
    ["C15", [stage("action: { exec: [true] }")], ["stage `s`", "`true`", "quote"]],
    ["C16", [stage("action: { builtin: sparkle }")], ["stage `s`", "unknown builtin `sparkle`"]],
    ["C17", [stage("action: { builtin: commits }")], ["stage `s`", "`commits` is a result_check, not an action"]],
    ["C19", [stage("action: { builtin: sync, ff_only: false }")], ["may only define `ff_only` on the `merge` builtin"]],
    ["C20", [stage("action: { agent: x, ff_only: true }")], ["stage `s`", "may only define `ff_only`"]],
    ["C20 exec", [stage("action: { exec: [x], ff_only: true }")], ["may only define `ff_only`"]],
    [
      "C21",
      [stage("action: agent, result_check: { builtin: commits, ff_only: true }")],
      ["stage `s`", "may only define `ff_only`"],
    ],
    ["C22", [stage("action: agent, result_check: { exec: [x], ff_only: true }")], ["may only define `ff_only`"]],
    ["C23", [stage('action: { builtin: merge, ff_only: "true" }')], ["stage `s`", "`ff_only`", "`true` or `false`"]],
    ["C24", [stage("action: { agent: x, exec: [y] }")], ["ambiguous", "`agent`", "`exec`"]],
    ["C24 check", [stage("action: agent, result_check: { builtin: commits, exec: [y] }")], ["ambiguous"]],
    ["C25", [stage("action: agent, result_check: magic")], ["stage `s`", "unknown result_check `magic`"]],
    ["C26", [stage("action: agent, result_check: agent")], ["unknown result_check `agent`"]],
    ["C26 commits", [stage("action: agent, result_check: commits")], ["unknown result_check `commits`"]],
    ["C27", [stage("action: agent, result_check: { agent: x }")], ["stage `s`", "`result_check`", "`agent`"]],
    ["C28", [stage("action: agent, result_check: none")], ["stage `s`", "agent action", "may not be `none`"]],
    [
      "C31",
      [stage("action: agent, result_check: { exec: [] }")],
      ["exec result_check must define a non-empty command"],
    ],
    [
      "C32",
      [stage("action: agent, result_check: { builtin: merge }")],
      ["stage `s`", "result_check may not be the `merge` builtin"],
    ],
    ["C32 sync", [stage("action: agent, result_check: { builtin: sync }")], ["may not be the `sync` builtin"]],
    ["C33", [merge("m", ", result_check: reported")], ["merge stage `m` must have `result_check: none`"]],
    ["C34", [sync("y", ", result_check: { builtin: commits }")], ["sync stage `y` must have `result_check: none`"]],
    [
      "C35",
      [merge("m", `, result_check: { panel: { prompt: p, reviewers: ${seats(2)} } }`)],
      ["merge stage `m` must have `result_check: none`"],
    ],
    ["C37", [B, merge(), merge("merge2")], ["at most one merge stage", "2"]],
    ["C38", [B, merge(), X("a")], ["merge stage must be last"]],
    ["C39", [B, merge(), sync()], ["sync stage `sync` must come before the merge stage"]],
    ["C41", [stage("action: agent, fail_action: retry")], ["stage `s`", "unknown fail_action `retry`"]],
    ["C41 halt", [stage("action: agent, fail_action: halt")], ["unknown fail_action `halt`"]],
    ["C43 self", [B, X("a", ", fail_action: { return_to: a }")], ["return_to must name an earlier stage", "`a`"]],
    ["C43 later", [X("a", ", fail_action: { return_to: build }"), B], ["must name an earlier stage", "`build`"]],
    ["C43 unknown", [B, X("a", ", fail_action: { return_to: Build }")], ["must name an earlier stage", "`Build`"]],
    ["C44", [B, X("a", ", fail_action: { return_to: build, attempts: 0 }")], ["stage `a`", "between 1 and 10"]],
    ["C44 11", [B, X("a", ", fail_action: { return_to: build, attempts: 11 }")], ["attempts must be between 1 and 10"]],
    [
      "C45",
      [B, X("a", ', fail_action: { return_to: build, attempts: "2" }')],
      ["stage `a`", "`attempts`", "whole number"],
    ],
    ["C45 -1", [B, X("a", ", fail_action: { return_to: build, attempts: -1 }")], ["`attempts`", "whole number"]],
    ["C45 1.5", [B, X("a", ", fail_action: { return_to: build, attempts: 1.5 }")], ["`attempts`", "whole number"]],
    ["no return_to", [X("a", ", fail_action: { attempts: 2 }")], ["stage `a`", "`return_to`"]],
    [
      "C47",
      many(10, ", fail_action: { return_to: s0, attempts: 10 }"),
      ["at most 48 stages in the worst case", "imply 110"],
    ],
    [
      "C49",
      [
        `- { name: build, action: agent, result_check: { panel: { prompt: p, reviewers: ${seats(5)} } } }`,
        X("a"),
        X("b"),
        X("c", ", fail_action: { return_to: build, attempts: 5 }"),
      ],
      ["imply 54"],
    ],
    ["C50 one", [panel(`{ prompt: p, reviewers: ${seats(1)} }`)], ["panel must define between 2 and 5 reviewers", "1"]],
    ["C50 six", [panel(`{ prompt: p, reviewers: ${seats(6)} }`)], ["panel must define between 2 and 5 reviewers", "6"]],
    ["C50 none", [panel("{ prompt: p }")], ["panel must define between 2 and 5 reviewers", "0"]],
    [
      "C51 0",
      [panel(`{ prompt: p, reviewers: ${seats(2)}, require: { quorum: 0 } }`)],
      ["panel quorum must be between 1 and 2"],
    ],
    [
      "C51 3",
      [panel(`{ prompt: p, reviewers: ${seats(2)}, require: { quorum: 3 } }`)],
      ["panel quorum must be between 1 and 2", "3"],
    ],
    [
      "quorum 1.5",
      [panel(`{ prompt: p, reviewers: ${seats(2)}, require: { quorum: 1.5 } }`)],
      ["`quorum`", "whole number"],
    ],
    ["C53", [panel("{ prompt: p, reviewers: [claude, codex] }")], ["stage `s`", "mapping", "claude"]],
    [
      "blank seat",
      [panel("{ prompt: p, reviewers: [{ target: t }, { target: ' ' }] }")],
      ["reviewer 2", "non-empty `target`"],
    ],
    ["C54", [panel(`{ reviewers: ${seats(2)} }`)], ["panel must define a non-empty `prompt`"]],
    ["C54 blank", [panel(`{ prompt: " ", reviewers: ${seats(2)} }`)], ["panel must define a non-empty `prompt`"]],
    [
      "C55",
      [panel(`{ prompt: /etc/passwd, reviewers: ${seats(2)} }`)],
      ["must be a relative path under `.agents/sloop`"],
    ],
    [
      "C55 ..",
      [panel(`{ prompt: ../x.md, reviewers: ${seats(2)} }`)],
      ["must be a relative path under `.agents/sloop`"],
    ],
    [
      "C55 a/..",
      [panel(`{ prompt: a/../b.md, reviewers: ${seats(2)} }`)],
      ["must be a relative path under `.agents/sloop`"],
    ],
    ["C58", ["- { name: s, kind: agent }"], ["stage `s`", "unknown key `kind`", "did you mean `action`"]],
    ["C59 cmd", [stage("action: agent, cmd: [x]")], ["unknown key `cmd`", "did you mean `action`"]],
    ["C59 verdict", [stage("action: agent, verdict: none")], ["unknown key `verdict`", "did you mean `result_check`"]],
    ["C59 on_fail", [stage("action: agent, on_fail: x")], ["unknown key `on_fail`", "did you mean `fail_action`"]],
    ["C60", [stage("action: agent, fail_acton: fail")], ["unknown key `fail_acton`", "did you mean `fail_action`"]],
    [
      "C61",
      [stage("action: agent, retries: 3")],
      ["unknown key `retries`", "`name`, `action`, `result_check`, `fail_action`"],
    ],
    ["C62 number", ["- { name: 5, action: agent }"], ["stage 1", "`name`", "`5`"]],
    ["C62 boolean", ["- { name: true, action: agent }"], ["stage 1", "`name`", "`true`"]],
    ["C62 none", ["- { action: agent }"], ["stage 1", "`name`"]],
    ["C63", ['- { name: "", action: agent }'], ["blank"]],
    ["a builtin as a word", [stage("action: merge")], ["unknown action `merge`", "write `{ builtin: merge }`"]],
    [
      "a command as a word",
      [stage("action: make test")],
      ["unknown action `make test`", "`{ exec: [program, argument] }`"],
    ],
    ["commits as a word", [stage("action: agent, result_check: commits")], ["write `{ builtin: commits }`"]],
    ["a command as text", [stage("action: { exec: make test }")], ['found the string "make test"', "[make, test]"]],
    ["exec beside action", [stage("action: agent, exec: [x]")], ["unknown key `exec`", "belongs inside `action`"]],
    ["panel beside check", [stage("action: agent, panel: {}")], ["unknown key `panel`", "inside `result_check`"]],
    ["return_to beside", [stage("action: agent, return_to: a")], ["unknown key `return_to`", "inside `fail_action`"]],
    ["return", [B, X("a", ", fail_action: { return: build }")], ["unknown key `return`"]],
    ["attempt", [B, X("a", ", fail_action: { return_to: build, attempt: 2 }")], ["did you mean `attempts`?"]],
    ["quorum too high", [panel(`{ prompt: p, reviewers: ${seats(2)}, quorum: 1 }`)], ["below `require`", "quorum: 2"]],
    ["seats as words", [panel("{ prompt: p, reviewers: [claude, codex] }")], ["{ target: claude }"]],
    ["stages as a mapping", ["stages:", "  build:", "    action: agent"], ["list of stages", "`- name:`", "a mapping"]],
    ["a tab", ["- name: a", "\taction: agent"], ["indent with spaces"]],
    ["C64", [B, "---", B], ["more than one document"]],
    ["check true", [stage("action: agent, result_check: true")], ["stage `s`", "`result_check`", "`true`"]],
    ["action list", [stage("action: [agent]")], ["stage `s`", "`action`", "list"]],
    ["empty action", [stage("action: {}")], ["stage `s`", "`action`", "none"]],
    ["misspelt ff_only", [stage("action: { builtin: merge, ff-only: true }")], ["stage `s`", "unknown key `ff-only`"]],
    ["duplicate", ["- { name: s, name: s, action: agent }"], ["duplicate", "`name`"]],
    ["shape before rules", [B, B, stage("action: { exec: bun }")], ["`exec`", "list"]],
    ["stage before stage", [stage("action: wizard"), B, B], ["unknown action `wizard`"]],
  ])("%s", (_name, lines, fragments) => {
    const message = refusal(() => parse(...lines));
    expect(message).toStartWith(`${path}: `);
    expect(message).not.toContain("\n");
    for (const fragment of fragments) expect(message).toContain(fragment);
  });
});

test("worst cases of files.md 9.4", () => {
  const back = (to: string, attempts: number) => `, fail_action: { return_to: ${to}, attempts: ${attempts} }`;
  const train = parse(
    B,
    sync("sync", back("build", 1)),
    X("verify", back("build", 1)),
    merge("merge", back("sync", 10)),
  );
  expect(worstCase(train.stages)).toBe(39);
  const three = `- { name: build, action: agent, result_check: { panel: { prompt: p, reviewers: ${seats(3)} } } }`;
  expect(worstCase(parse(three, X("a"), X("b"), X("c", back("build", 5))).stages)).toBe(42);
});

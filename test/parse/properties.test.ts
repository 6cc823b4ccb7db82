// The invariants of files.md 16 that hold for every text.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { expandCommand } from "../../src/core/command.ts";
import { parseDuration } from "../../src/core/duration.ts";
import { SloopError } from "../../src/core/errors.ts";
import type { Flow, Reviewer, Stage } from "../../src/core/flow.ts";
import { findCycle } from "../../src/core/graph.ts";
import { parseLocalTime } from "../../src/core/hours.ts";
import { nextOrdinal, ordinal, validPrefix, validSlug } from "../../src/core/ids.ts";
import { previousAttemptBlock } from "../../src/core/prompt.ts";
import { parseFlowSnapshot, renderFlowSnapshot } from "../../src/core/snapshot.ts";
import { validBranch, validTicketId } from "../../src/core/worktree-name.ts";
import { parseConfig, parseEssentials } from "../../src/parse/config.ts";
import { parseBind } from "../../src/parse/control.ts";
import { parseDirectory } from "../../src/parse/directory.ts";
import { parseFlow, worstCase } from "../../src/parse/flow.ts";
import { parseProject } from "../../src/parse/project.ts";
import { parsePulled } from "../../src/parse/pulled.ts";
import { stampId, stampTicket } from "../../src/parse/stamp.ts";
import { rawTestCommand } from "../../src/parse/templates.ts";
import { parseTicket, salvageTicket, splitFrontmatter } from "../../src/parse/ticket.ts";

setDefaultTimeout(60_000);

/** Runs a parser; only its own refusal may be thrown. */
function attempt<T>(action: () => T): T | null {
  try {
    return action();
  } catch (error) {
    if (error instanceof SloopError) return null;
    throw error;
  }
}

const piece = fc.constantFrom(
  ..."name:|blocked_by:|id:|project:|worktree:|flow:|title:|stages:|version: 1|action:|agent|exec:|builtin: merge|scheduler:".split(
    "|",
  ),
  ..." [|]|{|}|, |: |- |? |&a |*a |!!str |\"|'|\n|\n  |\n- |---\n|\n---\n|...|#|~|true|007|\r\n|\u2028|\ufeff|\t|é|\0|<<|%YAML 1.1\n|>|\\".split(
    "|",
  ),
  "|",
);
const soup = fc.array(
  fc.oneof({ weight: 9, arbitrary: piece }, { weight: 1, arbitrary: fc.string({ maxLength: 4 }) }),
  {
    maxLength: 25,
  },
);
const anyText = fc.oneof(
  soup.map((parts) => parts.join("")),
  soup.map((parts) => `---\n${parts.join("")}\n---\nbody`),
  fc.string({ unit: "binary" }),
);

function tryEverything(text: string): void {
  attempt(() => parseConfig({ repository: { path: "/c", text }, user: { path: "/u", text } }));
  attempt(() => parseFlow("f", "/f", text));
  attempt(() => parseTicket(text, "t.md"));
  attempt(() => parseEssentials("/c", text));
  attempt(() => stampTicket(text, "t.md", { id: text, project: text, worktree: text, flow: text }));
  attempt(() => stampId(text, "p.md", text));
  salvageTicket(text);
  splitFrontmatter(text);
  parseProject(text, "p.md");
  rawTestCommand(text);
  parsePulled(text);
  parsePulled(JSON.stringify([{ name: text, body: text, [text]: text }]));
  parseDirectory(text);
  parseBind(text);
  parseDuration(text);
  parseLocalTime(text);
  for (const judge of [validPrefix, validSlug, validBranch, validTicketId]) expect(judge(text)).toBeBoolean();
  expect(ordinal(text)).toBeGreaterThanOrEqual(0n);
  expect(nextOrdinal(text, [text, `${text}-1`])).toBeGreaterThanOrEqual(1n);
  expect(previousAttemptBlock({ stage: text, attempt: 2, reason: text, output: text })).toEndWith(
    "--- end previous attempt ---",
  );
  const target = { name: text, cmd: [text, "{prompt}"], model: null, effort: text };
  expandCommand(target, { model: null, effort: text, prompt: text });
  findCycle(new Map([[text, [text, ""]]]));
}

describe("no input makes a parser throw anything but its own error", () => {
  test("any text", () => {
    fc.assert(fc.property(anyText, tryEverything), { numRuns: 1_500 });
  });

  const bomb = [
    "a: &a [x, x]",
    ...Array.from(
      { length: 40 },
      (_, i) => `b${i}: &b${i} [*${i === 0 ? "a" : `b${i - 1}`}, *${i === 0 ? "a" : `b${i - 1}`}]`,
    ),
  ];
  test.each<[string, string]>([
    ["400 open brackets", "[".repeat(400)],
    ["20 000 open brackets", "[".repeat(20_000)],
    ["20 000 dashes", "- ".repeat(20_000)],
    ["200 keys below each other", "a:\n".repeat(200)],
    ["200 levels", Array.from({ length: 200 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n")],
    ["200 closed brackets", "[".repeat(200) + "]".repeat(200)],
    ["5 000 duplicate keys", "a: 1\n".repeat(5_000)],
    ["megabytes of a list", `a: [${"x, ".repeat(2_000_000)}]`],
    ["megabytes of keys", Array.from({ length: 300_000 }, (_, n) => `key${n}: value`).join("\n")],
    ["an alias bomb", bomb.join("\n")],
    ["an alias in its own anchor", "a: &a [*a]"],
    ["an alias without an anchor", "a: *b"],
    ["a key that is a list", "? [a]\n: 1"],
  ])("%s is an ordinary error", (_name, text) => {
    tryEverything(text);
    const message = (() => {
      try {
        parseFlow("f", "/f", text);
        return "";
      } catch (error) {
        return error instanceof SloopError ? error.message : String(error);
      }
    })();
    expect(message).toMatch(/^\/f: .*\(line \d+, column \d+\)$/);
  });

  test("128 levels are allowed, 129 are not", () => {
    const config = (depth: number) => `version: 1\nx: ${"[".repeat(depth)}${"]".repeat(depth)}\n`;
    const load = (depth: number) =>
      attempt(() => parseConfig({ repository: { path: "/c", text: config(depth) }, user: null }));
    expect(load(127)).not.toBeNull();
    expect(load(128)).toBeNull();
  });
});

const command = fc
  .array(fc.string({ minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 3 })
  .filter((words) => words[0]?.trim() !== "" && !/^\p{White_Space}*$/u.test(words[0] ?? ""));
const reviewer: fc.Arbitrary<Reviewer> = fc.record({
  target: fc.constantFrom("a", "b"),
  model: fc.option(fc.constantFrom("m", " m ", "5"), { nil: null }),
  effort: fc.option(fc.constantFrom("high", "true"), { nil: null }),
});
const panel = fc.array(reviewer, { minLength: 2, maxLength: 5 }).chain((reviewers) =>
  fc.record({
    kind: fc.constant("panel" as const),
    prompt: fc.constantFrom("p.md", "a b/c.md"),
    reviewers: fc.constant(reviewers),
    quorum: fc.integer({ min: 1, max: reviewers.length }),
  }),
);
type Body = Pick<Stage, "action" | "resultCheck">;
const check = fc.oneof(
  fc.constant({ kind: "reported" as const }),
  fc.constant({ kind: "commits" as const }),
  fc.record({ kind: fc.constant("exec" as const), cmd: command }),
  panel,
);
const body: fc.Arbitrary<Body> = fc.oneof(
  fc.record({ action: fc.constant({ kind: "agent" as const }), resultCheck: check }),
  fc.record({
    action: fc.record({ kind: fc.constant("exec" as const), cmd: command }),
    resultCheck: fc.oneof(check, fc.constant({ kind: "none" as const })),
  }),
  fc.constant({ action: { kind: "sync" as const }, resultCheck: { kind: "none" as const } }),
);
const mergeBody: fc.Arbitrary<Body> = fc.record({
  action: fc.record({ kind: fc.constant("merge" as const), ffOnly: fc.boolean() }),
  resultCheck: fc.constant({ kind: "none" as const }),
});
const fails = fc.record({
  kind: fc.constantFrom("fail", "continue", "return_to"),
  to: fc.nat(9),
  attempts: fc.integer({ min: 1, max: 3 }),
});

/** Flows that obey every rule. */
const flows: fc.Arbitrary<Flow> = fc
  .record({
    bodies: fc.array(body, { minLength: 1, maxLength: 5 }),
    merge: fc.option(mergeBody, { nil: null }),
    fails: fc.array(fails, { minLength: 6, maxLength: 6 }),
    suffix: fc.constantFrom("", " x", ": y", "#", "true"),
  })
  .map(({ bodies, merge, fails: choices, suffix }) => {
    const all = merge === null ? bodies : [...bodies, merge];
    const name = (index: number) => (suffix === "true" && index === 0 ? "true" : `s${index}${suffix}`);
    const stages = all.map((part, index): Stage => {
      const choice = choices[index] as { kind: "fail" | "continue" | "return_to"; to: number; attempts: number };
      if (choice.kind !== "return_to") return { name: name(index), ...part, failAction: { kind: choice.kind } };
      if (index === 0) return { name: name(index), ...part, failAction: { kind: "fail" } };
      const stage = name(choice.to % index);
      return { name: name(index), ...part, failAction: { kind: "return_to", stage, attempts: choice.attempts } };
    });
    return { name: "f", stages };
  })
  .filter((flow) => worstCase(flow.stages) <= 48);

type Style = { terse: boolean };

function actionYaml({ action }: Stage, { terse }: Style): unknown {
  switch (action.kind) {
    case "agent":
      return "agent";
    case "exec":
      return { exec: action.cmd };
    case "sync":
      return { builtin: "sync" };
    case "merge":
      return { builtin: "merge", ...(terse && !action.ffOnly ? {} : { ff_only: action.ffOnly }) };
  }
}

function checkYaml({ action, resultCheck }: Stage, { terse }: Style): unknown {
  switch (resultCheck.kind) {
    case "none":
      return terse && action.kind !== "agent" ? undefined : "none";
    case "reported":
      return "reported";
    case "commits":
      return terse && action.kind === "agent" ? undefined : { builtin: "commits" };
    case "exec":
      return { exec: resultCheck.cmd };
    case "panel": {
      const { prompt, quorum } = resultCheck;
      const reviewers = resultCheck.reviewers.map((seat) =>
        Object.fromEntries(Object.entries(seat).filter(([, value]) => value !== null)),
      );
      const unanimous = quorum === reviewers.length;
      return { panel: { prompt, reviewers, ...(terse && unanimous ? {} : { require: { quorum } }) } };
    }
  }
}

function failYaml({ failAction }: Stage, { terse }: Style): unknown {
  if (failAction.kind === "fail") return terse ? undefined : "fail";
  if (failAction.kind === "continue") return "continue";
  const { stage, attempts } = failAction;
  return { return_to: stage, ...(terse && attempts === 1 ? {} : { attempts }) };
}

/** JSON is YAML; `undefined` members are left out. */
function render(flow: Flow, style: Style & { list: boolean }): string {
  const stages = flow.stages.map((stage) => ({
    name: stage.name,
    action: actionYaml(stage, style),
    result_check: checkYaml(stage, style),
    fail_action: failYaml(stage, style),
  }));
  return JSON.stringify(style.list ? stages : { stages, other: 1 }).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

describe("flows", () => {
  test("terse and written out, as a list and under stages: the same flow", () => {
    fc.assert(
      fc.property(flows, (flow) => {
        for (const terse of [true, false]) {
          for (const list of [true, false]) expect(parseFlow("f", "/f", render(flow, { terse, list }))).toEqual(flow);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("a parsed flow keeps its promises, whatever was mutated", () => {
    const mutated = fc
      .record({ flow: flows, at: fc.nat(), cut: fc.nat(12), put: piece })
      .map(({ flow, at, cut, put }) => {
        const text = render(flow, { terse: true, list: true });
        const start = at % text.length;
        return text.slice(0, start) + put + text.slice(start + cut);
      });
    fc.assert(
      fc.property(mutated, (text) => {
        const flow = attempt(() => parseFlow("f", "/f", text));
        if (flow === null) return;
        const names = flow.stages.map((stage) => stage.name);
        expect(names.length).toBeGreaterThan(0);
        expect(new Set(names).size).toBe(names.length);
        expect(worstCase(flow.stages)).toBeLessThanOrEqual(48);
        for (const [index, { action, failAction }] of flow.stages.entries()) {
          if (action.kind === "merge") expect(index).toBe(names.length - 1);
          if (failAction.kind === "return_to") expect(names.slice(0, index)).toContain(failAction.stage);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test("a stored snapshot reads back equal", () => {
    fc.assert(
      fc.property(flows, (flow) => {
        const stored = renderFlowSnapshot(flow);
        expect(parseFlowSnapshot(stored)).toEqual(flow);
        expect(stored.includes('"ff_only":false')).toBe(false);
      }),
      { numRuns: 300 },
    );
  });
});

describe("stamping", () => {
  const keys = ["id", "project", "worktree", "flow"] as const;
  const line = fc.constantFrom(
    "id: a",
    "project: p",
    "worktree: w",
    "flow: f",
    "id:",
    "flow: ~",
    "# c",
    "title: |",
    "  more",
    "x: [a,",
    "  b]",
    "name: N",
    "blocked_by: []",
    "",
    "- x",
    "{id: a}",
    "x: &a 1",
    "y: *a",
    "...",
    "  name: N",
    "'id': q",
  );
  const value = fc.oneof(
    fc.constantFrom("T1", "true", "~", "a: b", "#x", "- a", "\u2028", "x\n---\ny", "é", "*a"),
    fc.string({ unit: "binary", maxLength: 6 }).filter((text) => text.isWellFormed()),
  );
  const ticket = fc.array(line, { maxLength: 7 }).map((lines) => `---\n${lines.join("\n")}\n---\nbody\n`);

  test("gives text that parses with all four keys, or says there is nothing to do, or refuses; twice changes nothing", () => {
    let stamped = 0;
    fc.assert(
      fc.property(ticket, value, value, (text, id, project) => {
        const values = { id, project, worktree: "sloop/x", flow: "default" };
        const before = attempt(() => stampTicket(text, "t.md", values));
        const after = before ?? text;
        if (before === null && attempt(() => stampTicket(text, "t.md", values) ?? "nothing") === null) return;
        const read = salvageTicket(after);
        for (const key of keys) expect(read[key]).not.toBeNull();
        expect(stampTicket(after, "t.md", values)).toBeNull();
        if (before === null) return;
        stamped += 1;
        const close = text.indexOf("\n---\n", 3) + 1;
        const added = before.length - text.length;
        expect(before.slice(0, close) + before.slice(close + added)).toBe(text);
        for (const inserted of before
          .slice(close, close + added)
          .trimEnd()
          .split("\n"))
          expect(inserted).toMatch(/^(id|project|worktree|flow): /);
      }),
      { numRuns: 2_000 },
    );
    expect(stamped).toBeGreaterThan(20);
  });
});

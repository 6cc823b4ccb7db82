// The rules of a flow's stages (files.md 9.4), each stage's in the order of the table there.

import { isBlank, trimBlank } from "../core/blank.ts";
import type { Action, FailAction, ResultCheck, Stage } from "../core/flow.ts";
import type { RawFail, RawPanel, RawReviewer, RawStage, RawStep } from "./flow-shape.ts";
import { stageKeys } from "./flow-shape.ts";
import { closeTo } from "./nearest.ts";
import { refuse, type Source } from "./shape.ts";

type Rule = { source: Source; stage: RawStage };

function broken({ source, stage }: Rule, at: number, problem: string): never {
  refuse(source, at, `stage \`${stage.name}\`: ${problem}`);
}

const otherSpellings = new Map([
  ["kind", "action"],
  ["cmd", "action"],
  ["run", "action"],
  ["verdict", "result_check"],
  ["on_fail", "fail_action"],
]);

/** Keys that belong one level deeper. */
const innerKeys = new Map([
  ["exec", "action"],
  ["builtin", "action"],
  ["agent", "action"],
  ["ff_only", "action"],
  ["panel", "result_check"],
  ["return_to", "fail_action"],
  ["attempts", "fail_action"],
]);

function keyHint(key: string): string {
  const outer = innerKeys.get(key);
  if (outer !== undefined) return `; \`${key}\` belongs inside \`${outer}\``;
  const near = otherSpellings.get(key) ?? closeTo(key, stageKeys);
  return near === null ? "" : `; did you mean \`${near}\`?`;
}

function checkKeys(rule: Rule): void {
  const { stage } = rule;
  if (isBlank(stage.name)) broken(rule, stage.at, "`name` must not be blank");
  if (stage.unknown === null) return;
  const { value: key, at } = stage.unknown;
  const list = stageKeys.map((known) => `\`${known}\``).join(", ");
  broken(rule, at, `unknown key \`${key}\`, a stage has only ${list}${keyHint(key)}`);
}

function isCommand(cmd: string[]): boolean {
  const [first] = cmd;
  return first !== undefined && !isBlank(first);
}

function builtinAction(rule: Rule, word: string, raw: RawStep): Action {
  if (word === "sync") return { kind: "sync" };
  if (word === "merge") return { kind: "merge", ffOnly: raw.ffOnly?.value ?? false };
  if (word === "commits") broken(rule, raw.at, "`commits` is a result_check, not an action");
  broken(rule, raw.at, `unknown builtin \`${word}\`, expected \`sync\` or \`merge\``);
}

function actionHint(word: string): string {
  if (word === "merge" || word === "sync") return `; write \`{ builtin: ${word} }\``;
  return "; a command is written `{ exec: [program, argument] }`";
}

function action(rule: Rule): Action {
  const raw = rule.stage.action;
  if (raw === null) return broken(rule, rule.stage.at, "it must define an `action`");
  switch (raw.form) {
    case "word":
      if (raw.word === "agent") return { kind: "agent" };
      return broken(
        rule,
        raw.at,
        `unknown action \`${raw.word}\`, expected \`agent\` or a mapping with \`exec\` or \`builtin\`${actionHint(raw.word)}`,
      );
    case "exec":
      if (!isCommand(raw.cmd)) broken(rule, raw.at, "its exec action must define a non-empty command");
      return { kind: "exec", cmd: raw.cmd };
    case "builtin":
      return builtinAction(rule, raw.word, raw);
    case "agent":
      return { kind: "agent" };
    case "panel":
      return broken(rule, raw.at, "unknown action `panel`");
  }
}

function checkFfOnly(rule: Rule, of: Action): void {
  const { action: raw, resultCheck } = rule.stage;
  const stray = of.kind === "merge" ? null : (raw?.ffOnly ?? null);
  const found = stray ?? resultCheck?.ffOnly ?? null;
  if (found !== null) broken(rule, found.at, "it may only define `ff_only` on the `merge` builtin");
}

function promptPath(rule: Rule, panel: RawPanel): string {
  const prompt = trimBlank(panel.prompt?.value ?? "");
  const at = panel.prompt?.at ?? panel.at;
  if (prompt === "") broken(rule, at, "its panel must define a non-empty `prompt`");
  if (prompt.startsWith("/") || prompt.split("/").includes("..")) {
    broken(rule, at, `its panel's prompt \`${prompt}\` must be a relative path under \`.agents/sloop\``);
  }
  return prompt;
}

function seat(
  rule: Rule,
  raw: RawReviewer,
  index: number,
): { target: string; model: string | null; effort: string | null } {
  const target = trimBlank(raw.target ?? "");
  if (target === "") broken(rule, raw.at, `its panel reviewer ${index + 1} must have a non-empty \`target\``);
  return { target, model: raw.model, effort: raw.effort };
}

function panel(rule: Rule, raw: RawPanel): ResultCheck {
  const prompt = promptPath(rule, raw);
  const seats = raw.reviewers.length;
  if (seats < 2 || seats > 5) {
    broken(rule, raw.at, `its panel must define between 2 and 5 reviewers, found ${seats}`);
  }
  const reviewers = raw.reviewers.map((reviewer, index) => seat(rule, reviewer, index));
  const quorum = raw.quorum?.value ?? seats;
  if (quorum < 1 || quorum > seats) {
    broken(rule, raw.quorum?.at ?? raw.at, `its panel quorum must be between 1 and ${seats}, found ${quorum}`);
  }
  return { kind: "panel", prompt, reviewers, quorum };
}

function checkWord(rule: Rule, raw: RawStep & { form: "word" }): ResultCheck {
  if (raw.word === "none" || raw.word === "reported") return { kind: raw.word };
  broken(
    rule,
    raw.at,
    `unknown result_check \`${raw.word}\`, expected \`none\`, \`reported\` or a mapping with \`exec\`, \`builtin\` or \`panel\`${raw.word === "commits" ? "; write `{ builtin: commits }`" : ""}`,
  );
}

function builtinCheck(rule: Rule, raw: RawStep & { form: "builtin" }): ResultCheck {
  if (raw.word === "commits") return { kind: "commits" };
  if (raw.word === "merge" || raw.word === "sync") {
    broken(rule, raw.at, `its result_check may not be the \`${raw.word}\` builtin`);
  }
  broken(rule, raw.at, `unknown builtin \`${raw.word}\`, expected \`commits\``);
}

function resultCheck(rule: Rule, of: Action): ResultCheck {
  const raw = rule.stage.resultCheck;
  if (raw === null) return { kind: of.kind === "agent" ? "commits" : "none" };
  switch (raw.form) {
    case "word":
      return checkWord(rule, raw);
    case "exec":
      if (!isCommand(raw.cmd)) broken(rule, raw.at, "its exec result_check must define a non-empty command");
      return { kind: "exec", cmd: raw.cmd };
    case "builtin":
      return builtinCheck(rule, raw);
    case "panel":
      return panel(rule, raw.panel);
    case "agent":
      return broken(rule, raw.at, "unknown result_check `agent`");
  }
}

function failAction(rule: Rule, raw: RawFail | null): FailAction {
  if (raw === null) return { kind: "fail" };
  if (raw.form === "word") {
    if (raw.word === "fail" || raw.word === "continue") return { kind: raw.word };
    return broken(
      rule,
      raw.at,
      `unknown fail_action \`${raw.word}\`, expected \`fail\`, \`continue\` or a mapping with \`return_to\``,
    );
  }
  const attempts = raw.attempts?.value ?? 1;
  if (attempts < 1 || attempts > 10) {
    broken(rule, raw.attempts?.at ?? raw.at, `its return_to attempts must be between 1 and 10, found ${attempts}`);
  }
  return { kind: "return_to", stage: raw.stage.value, attempts };
}

function checkPair(rule: Rule, of: Action, check: ResultCheck): void {
  const at = rule.stage.resultCheck?.at ?? rule.stage.at;
  const { name } = rule.stage;
  if (of.kind === "agent" && check.kind === "none") {
    refuse(rule.source, at, `stage \`${name}\` is an agent action, so its result_check may not be \`none\``);
  }
  if ((of.kind === "merge" || of.kind === "sync") && check.kind !== "none") {
    refuse(rule.source, at, `${of.kind} stage \`${name}\` must have \`result_check: none\``);
  }
}

/** Applies every rule that one stage can break by itself; `earlier`: names of the stages before it. */
export function checkStage(source: Source, stage: RawStage, earlier: Set<string>): Stage {
  const rule = { source, stage };
  if (earlier.has(stage.name)) refuse(source, stage.at, `duplicate stage name \`${stage.name}\``);
  checkKeys(rule);
  const checkedAction = action(rule);
  checkFfOnly(rule, checkedAction);
  const check = resultCheck(rule, checkedAction);
  const fail = failAction(rule, stage.failAction);
  checkPair(rule, checkedAction, check);
  return { name: stage.name, action: checkedAction, resultCheck: check, failAction: fail };
}

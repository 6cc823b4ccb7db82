// Filling a target's command (files.md 4).

import { expect, test } from "bun:test";
import fc from "fast-check";
import { expandCommand } from "../../src/core/command.ts";

const target = (cmd: string[], model: string | null = null, effort: string | null = null) => ({
  name: "t",
  cmd,
  model,
  effort,
});
const values = (model: string | null = null, effort: string | null = null, prompt = "P") => ({ model, effort, prompt });

test.each([
  ["the caller's model", target(["a", "-m={model}", "{prompt}"], "y"), values("x"), ["a", "-m=x", "P"]],
  ["the target's", target(["a", "-m={model}", "{prompt}"], "y"), values(), ["a", "-m=y", "P"]],
  ["a blank one counts as none", target(["a", "{model}", "{prompt}"], "y"), values(" \u0085"), ["a", "y", "P"]],
  ["a value without a place", target(["a", "{prompt}"]), values(null, "high"), ["a", "P"]],
  [
    "inside text, more than once",
    target(["{model}-{model}", 'e="{effort}"', "p={prompt}."], "m", "e"),
    values(),
    ["m-m", 'e="e"', "p=P."],
  ],
  ["in the program", target(["bin/{model}", "{prompt}"], "m"), values(), ["bin/m", "P"]],
  ["other braces", target(["{}", "{x}", "{{model}}", "{prompt}"], "m"), values(), ["{}", "{x}", "{m}", "P"]],
  [
    "values are not expanded",
    target(["{model}", "{prompt}"], "{prompt}"),
    values(null, null, "{model} {effort} $& $1"),
    ["{prompt}", "{model} {effort} $& $1"],
  ],
])("%s", (_name, of, given, argv) => {
  expect(expandCommand(of, given)).toEqual({ ok: true, argv });
});

test.each([
  [target(["{model}", "{effort}", "{prompt}"]), "model"],
  [target(["{effort}", "{prompt}"], "m"), "effort"],
  [target(["{model}", "{prompt}"], null, "e"), "model"],
] as const)("a placeholder without a value is named", (of, missing) => {
  expect(expandCommand({ ...of, cmd: [...of.cmd] }, values())).toEqual({ ok: false, missing });
});

test("any prompt arrives as it is, in one argument", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (prompt) => {
      const result = expandCommand(target(["a", "x{prompt}y", "{model}"], "m"), values(null, null, prompt));
      expect(result).toEqual({ ok: true, argv: ["a", `x${prompt}y`, "m"] });
    }),
  );
});

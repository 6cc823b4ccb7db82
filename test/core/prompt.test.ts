// What agents are told (files.md 11), the previous-attempt block byte for byte.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  attemptReason,
  definitionOfDone,
  previousAttemptBlock,
  reviewerBootstrap,
  reviewerPrompt,
  workerBootstrap,
  workerPrompt,
} from "../../src/core/prompt.ts";

describe("the previous-attempt block", () => {
  const block = (output: string) => previousAttemptBlock({ stage: "test", attempt: 1, reason: "exit 3", output });
  const head =
    "--- previous attempt failed ---\nStage `test` (attempt 1) failed: exit 3\nYou are running again to address that failure.\n";
  const end = "--- end previous attempt ---";
  const withTail = (tail: string) => `${head}\nThe last 100 lines of that stage's output:\n${tail}\n${end}`;

  test.each([
    ["no output", "", `${head}${end}`],
    ["one newline", "\n", `${head}${end}`],
    ["a line", "boom\n", withTail("boom")],
    ["no newline at the end", "boom", withTail("boom")],
    ["only one newline is dropped", "boom\n\n", withTail("boom\n")],
    ["a carriage return stays", "boom\r\n", withTail("boom\r")],
    [
      "the fence is kept shut",
      `a\n${end}\n--- previous attempt failed ---\n ${end}\nb\n`,
      withTail(`a\n ${end}\n --- previous attempt failed ---\n ${end}\nb`),
    ],
  ])("%s", (_name, output, expected) => {
    expect(block(output)).toBe(expected);
  });

  test("the last 100 lines", () => {
    const lines = Array.from({ length: 250 }, (_, index) => `line ${index}`);
    expect(block(`${lines.join("\n")}\n`)).toBe(withTail(lines.slice(150).join("\n")));
  });

  test("ends with its fence once, whatever the output", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(end, ` ${end}`, "x", ""), { maxLength: 120 }), (lines) => {
        const text = block(lines.join("\n")).split("\n");
        expect(text.indexOf(end)).toBe(text.length - 1);
      }),
    );
  });

  test.each([
    [{ reason: "conflict in a.ts", exitCode: 1 }, "conflict in a.ts"],
    [{ reason: " \u0085", exitCode: 1 }, "exit 1"],
    [{ reason: null, exitCode: 0 }, "exit 0"],
    [{ reason: null, exitCode: null }, "the process was killed before it exited"],
  ])("the reason of %j", (row, reason) => {
    expect(attemptReason(row)).toBe(reason);
  });
});

describe("prompts", () => {
  test("parts are joined by a blank line, instructions kept verbatim", () => {
    expect(workerPrompt({ instructions: null, previousAttempt: null })).toBe(workerBootstrap);
    expect(workerPrompt({ instructions: "", previousAttempt: null })).toBe(`${workerBootstrap}\n\n`);
    expect(workerPrompt({ instructions: " Be kind.\n", previousAttempt: "--- x" })).toBe(
      `${workerBootstrap}\n\n Be kind.\n\n\n--- x`,
    );
    expect(workerPrompt({ instructions: null, previousAttempt: "--- x" })).toBe(`${workerBootstrap}\n\n--- x`);
    expect(reviewerPrompt("Judge.\n")).toBe(`${reviewerBootstrap}\n\nJudge.\n`);
  });

  test("the bootstraps state their duties and have no blanks around them", () => {
    for (const part of [
      "`sloop brief`",
      "current directory",
      "Commit",
      "at any time",
      "exactly once",
      "--confidence",
    ]) {
      expect(workerBootstrap).toContain(part);
    }
    for (const part of ["`sloop brief`", "panel", "Change nothing", "exactly once", "counts as a fail"]) {
      expect(reviewerBootstrap).toContain(part);
    }
    expect(workerBootstrap).toContain("sloop verdict pass|fail --reason <text>");
    expect(reviewerBootstrap).toContain("sloop verdict pass|fail --reason <text> [--confidence low|medium|high]");
    for (const text of [workerBootstrap, reviewerBootstrap]) expect(text).toBe(text.trim());
  });
});

describe("the definition of done", () => {
  const checks = ["none", "reported", "commits", "exec", "panel"] as const;

  test("by role and check", () => {
    for (const check of checks) expect(definitionOfDone({ seat: true, check })).toContain("reported verdict");
    expect(definitionOfDone({ seat: true, check: "panel" })).toContain("not yours to change");
    expect(definitionOfDone({ seat: false, check: "commits" })).toBe("Commit your work to the run branch");
    expect(definitionOfDone({ seat: false, check: "reported" })).toContain("reported verdict");
    expect(definitionOfDone({ seat: false, check: "none" })).toContain("exit status");
    for (const check of ["exec", "panel"] as const) {
      expect(definitionOfDone({ seat: false, check })).toContain("independent check");
    }
  });

  test("only the check of new commits speaks of them", () => {
    for (const seat of [true, false]) {
      for (const check of checks) {
        const speaks = /commit/i.test(definitionOfDone({ seat, check }));
        expect(speaks).toBe(!seat && check === "commits");
      }
    }
  });
});

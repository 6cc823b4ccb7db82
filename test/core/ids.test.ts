// Names and numbers of tickets, runs and branches (files.md 2.4, 7).

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  defaultWorktree,
  nextOrdinal,
  ordinal,
  parseAlias,
  runAlias,
  runBranch,
  shortId,
  validPrefix,
  validSlug,
} from "../../src/core/ids.ts";
import { fileStem, validBranch, validTicketId, worktreeFromFile } from "../../src/core/worktree-name.ts";

test.each(["MY-WORK", "TEAM_2", "7", "a", "A_-b"])("%s is a prefix", (text) => {
  expect(validPrefix(text)).toBe(true);
});
test.each(["", "-WORK", "WORK-", "_a", "two words", "work/q", "ä", "a\n"])("%j is no prefix", (text) => {
  expect(validPrefix(text)).toBe(false);
});
test.each(["fix-login2", "a-2-c", "0"])("%s is a slug", (text) => {
  expect(validSlug(text)).toBe(true);
});
test.each(["", "Fix-Login", "fix_login", "a--b", "-a", "a-", "v1.2", "a\n"])("%j is no slug", (text) => {
  expect(validSlug(text)).toBe(false);
});

describe("the next number", () => {
  test.each<[string, string[], bigint | null]>([
    ["none", [], 1n],
    ["the greatest counts", ["TICK-2", "TICK-10"], 11n],
    ["leading zeros count", ["TICK-009"], 10n],
    ["others do not", ["OTHER-100", "TICK-nope", "tick-9", "TICK-", "TICK-1x", "XTICK-9", "TICK-0"], 1n],
    ["beyond 2^53", ["TICK-9007199254740993"], 9_007_199_254_740_994n],
    ["beyond 64 bits is ignored", ["TICK-18446744073709551616", "TICK-3"], 4n],
    ["exhausted", ["TICK-18446744073709551615"], null],
  ])("%s", (_name, ids, expected) => {
    expect(nextOrdinal("TICK", ids)).toBe(expected as bigint);
  });

  test("of a prefix with dashes", () => {
    expect(nextOrdinal("MY-WORK", ["MY-WORK-9", "MY-3"])).toBe(10n);
    expect(ordinal("MY-WORK-9")).toBe(9n);
    expect(ordinal("T1")).toBe(0n);
    expect(ordinal("a-x")).toBe(0n);
  });

  test("is free, and the greatest", () => {
    fc.assert(
      fc.property(fc.array(fc.nat()), (numbers) => {
        const next = nextOrdinal(
          "T",
          numbers.map((number) => `T-${number}`),
        );
        expect(next).toBe(BigInt(Math.max(0, ...numbers)) + 1n);
      }),
    );
  });
});

test("runs and their branches", () => {
  const run = "4be19c02d7aa4f6e9e31c5d80f7a6b12";
  expect(shortId(run)).toBe("4be19c02");
  expect(shortId("ab")).toBe("ab");
  expect(runBranch("T1", 2, run)).toBe("sloop/T1-a2-4be19c02");
  expect(runAlias("T1", 2)).toBe("T1-r2");
  expect(parseAlias("a-r1-r2")).toEqual({ ticketId: "a-r1", attempt: 2 });
  for (const text of ["T1", "-r1", "T1-r", "T1-r0", "T1-r1x", "T1-r99999999999999999999"]) {
    expect(parseAlias(text)).toBeNull();
  }
  expect(defaultWorktree("fix", "T1")).toBe("sloop/fix");
  expect(defaultWorktree(null, "T1")).toBe("sloop/T1");
});

describe("branches", () => {
  test.each(["main", "feature/x", "a.b", "a@b", "ä/ö", "x-", "a/HEAD", "{"])("%s is one", (name) => {
    expect(validBranch(name)).toBe(true);
  });
  test.each(
    [
      "",
      " ",
      "a b",
      "..",
      "a..b",
      ".a",
      "a/.b",
      "a.",
      "a/",
      "/a",
      "a//b",
      "a.lock",
      "a.lock/b",
      "-a",
      "@",
      "a@{b",
    ].concat(["HEAD", "a~", "a^", "a:b", "a?", "a*", "a[", "a\\", "a\x7f", "a\n", "a\t"]),
  )("%j is none", (name) => {
    expect(validBranch(name)).toBe(false);
  });

  test.each(["T1", "WORK-9", "a/b", "ä"])("%s is a ticket id", (id) => {
    expect(validTicketId(id)).toBe(true);
  });
  test.each(["", " a", "a ", "a\u0085", "a b", "a..b", "a//b", ".a", "a~1", "x.lock/y"])("%j is no ticket id", (id) => {
    expect(validTicketId(id)).toBe(false);
  });
});

test("the worktree of a file without the key (B44-B47)", () => {
  expect(worktreeFromFile(".agents/sloop/tickets/a/fix.md")).toEqual({ ok: true, worktree: "sloop/fix" });
  expect(fileStem("x/v1.2.md")).toBe("v1.2");
  for (const stem of ["Fix_Login", "v1.2", ""]) {
    const result = worktreeFromFile(`t/${stem}.md`);
    expect(result.ok ? "" : result.problem).toContain(`\`${stem}\` is not a valid worktree slug`);
    expect(result.ok ? "" : result.problem).toContain("abc-def");
  }
});

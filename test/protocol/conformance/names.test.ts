// protocol.md 5: what a reference means, rung by rung, for runs (5.2) and for `show` and scopes (5.3), patterns included.

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { openStage, type Stage } from "./stage.ts";
import { expectRefusal, type Json, type Wire } from "./wire.ts";

setDefaultTimeout(60_000);

let stage: Stage;
let wire: Wire;
/** The internal id of TICK-1-r1, which a daemon gave. */
let first = "";

const padded = (head: string) => head.padEnd(32, "0");

/** Runs with chosen ids, as copies of a real one: chance never gives two ids that begin alike. */
function copyRuns(copies: { id: string; ticket?: string; attempt: number; createdAtMs?: number }[]): void {
  const db = new Database(join(stage.scene.stateDir(), "sloop.db"));
  try {
    db.run("PRAGMA busy_timeout = 20000");
    for (const { id, ticket = "TICK-1", attempt, createdAtMs = 1 } of copies) {
      db.run("create temp table copied as select * from runs where attempt = 1 and ticket_id = 'TICK-1'");
      db.run("update copied set id = ?, ticket_id = ?, attempt = ?, created_at_ms = ?", [
        id,
        ticket,
        attempt,
        createdAtMs,
      ]);
      db.run("insert into runs select * from copied");
      db.run("drop table copied");
    }
  } finally {
    db.close();
  }
}

beforeAll(async () => {
  stage = await openStage({ flows: { web: "stages:\n  - { name: build, action: agent }\n" } });
  wire = stage.wire;
  stage.scene.write(".agents/sloop/projects/web.md", "---\nid: web\ntitle: Web shop\n---\n");
  await stage.post("first");
  await stage.settled("TICK-1");
  first = (await wire.ok("wait", { run: "TICK-1" }))["id"] as string;
  const manual = { trigger: { kind: "manual" } };
  await stage.post("second", { ...manual, front: "id: T1" });
  await stage.post("named", { ...manual, front: "id: X-2" });
  stage.scene.write(".agents/sloop/tickets/dup-a.md", "---\nid: Z-9\nname: Same Name\nblocked_by: []\n---\nx\n");
  stage.scene.write(".agents/sloop/tickets/dup-b.md", "---\nid: Z-10\nname: Same Name\nblocked_by: []\n---\nx\n");
  // Names that other rungs would take: an alias, a hex prefix, a project, an id.
  stage.scene.write(".agents/sloop/tickets/tricky-a.md", '---\nid: "beef"\nname: "default"\nblocked_by: []\n---\nx\n');
  stage.scene.write(".agents/sloop/tickets/tricky-b.md", '---\nid: A-1\nname: "TICK-1-r2"\nblocked_by: []\n---\nx\n');
  stage.scene.write(".agents/sloop/tickets/tricky-c.md", '---\nid: A-r3-r\nname: "a(b"\nblocked_by: []\n---\nx\n');
  for (const stem of ["dup-a", "dup-b", "tricky-a", "tricky-b", "tricky-c"]) {
    await wire.ok("post", { file: `.agents/sloop/tickets/${stem}.md`, trigger: { kind: "manual" } });
  }
  await stage.stop();
  copyRuns([
    { id: padded("abcd1"), attempt: 2, createdAtMs: 30 },
    { id: padded("abcd2"), attempt: 3, createdAtMs: 20 },
    { id: padded("beef1"), attempt: 4 },
    { id: "R77", ticket: "T1", attempt: 1 },
    { id: "R78-long-text", ticket: "T1", attempt: 2 },
    { id: padded("c0ffee"), ticket: "Z-10", attempt: 1 },
    { id: padded("face1"), ticket: "A-r3-r", attempt: 12 },
  ]);
  await stage.scene.data(["daemon"]);
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const alias = async (run: string) => (await wire.ok("wait", { run }))["alias"];

describe("5.2 run references", () => {
  test("5.2 rung 1: the exact internal id, of whatever form", async () => {
    expect(await wire.ok("wait", { run: first })).toMatchObject({ id: first, alias: "TICK-1-r1", note: null });
    expect(await alias("R77")).toBe("T1-r1");
    expect(await alias("R78-long-text")).toBe("T1-r2");
    expect(first).toMatch(/^[0-9a-f]{32}$/);
  });

  test("5.2 rung 2: an alias is split at the last -r, all digits above 0 behind it", async () => {
    expect(await wire.ok("wait", { run: "TICK-1-r3" })).toMatchObject({ alias: "TICK-1-r3", note: null });
    expect(await alias("A-r3-r-r12")).toBe("A-r3-r-r12");
    for (const run of [
      "TICK-1-r0",
      "TICK-1-r-1",
      "TICK-1-r1x",
      "TICK-1-r",
      "-r1",
      "tick-1-r1",
      "TICK-1-R1",
      "TICK-1-r٣",
    ]) {
      expectRefusal(await wire.refused("wait", { run }), "not_found", `\`${run}\``);
    }
  });

  test("5.2 rung 2: an alias without its run falls through, here to a ticket's name", async () => {
    expect(await alias("TICK-1-r2")).toBe("TICK-1-r2");
    expectRefusal(await wire.refused("wait", { run: "TICK-1-r99" }), "not_found", "an alias like");
    expectRefusal(await wire.refused("wait", { run: "TICK-1-r99999999999999999999" }), "not_found", "an alias like");
  });

  test("5.2 rung 3: a ticket id, then a name: its highest attempt, the earlier ones noted", async () => {
    const note = "showing TICK-1-r4; earlier attempts: r1, r2, r3";
    for (const run of ["TICK-1", "first"]) {
      expect(await wire.ok("wait", { run })).toMatchObject({ alias: "TICK-1-r4", note });
      expect(await wire.ok("logs", { run })).toMatchObject({ alias: "TICK-1-r4", note });
    }
    expectRefusal(await wire.refused("wait", { run: "First" }), "not_found", "an alias like");
  });

  test("5.2 rung 3: of equal names the smallest id as text", async () => {
    expect(await wire.ok("wait", { run: "Same Name" })).toMatchObject({ alias: "Z-10-r1", note: null });
  });

  test("5.2 rung 3: a ticket without runs says so, and how to start one", async () => {
    expectRefusal(await wire.refused("logs", { run: "X-2" }), "not_found", "has no runs yet", "`sloop run X-2`");
    expectRefusal(await wire.refused("cancel", { run: "named" }), "not_found", "has no runs yet", "`sloop run X-2`");
  });

  test("5.2 rung 3 before 4, 14.20: a ticket named like a hex prefix shadows it", async () => {
    expectRefusal(await wire.refused("wait", { run: "beef" }), "not_found", "has no runs yet", "`sloop run beef`");
    expect(await alias("beef1")).toBe("TICK-1-r4");
  });

  test("5.2 rung 4: 4 to 32 hexadecimal characters, either case", async () => {
    for (const run of ["c0ff", "C0FFEE", padded("c0ffee").slice(0, 31), padded("c0ffee").toUpperCase()]) {
      expect(await wire.ok("wait", { run })).toMatchObject({ alias: "Z-10-r1", note: null });
    }
    for (const run of ["c0f", `${padded("c0ffee")}0`, "c0ff%", "c0f_", "cafe"]) {
      expectRefusal(await wire.refused("wait", { run }), "not_found", `\`${run}\``, "4 characters");
    }
  });

  test("5.2 rung 4: several runs: the count and the candidates by creation", async () => {
    for (const verb of ["wait", "logs", "cancel"]) {
      for (const run of ["abcd", "ABCD"]) {
        const error = await wire.refused(verb, { run });
        expectRefusal(error, "invalid_arguments", "is ambiguous", "2", `\`${run}\``);
        const lines = error.message.split("\n");
        expect(lines.slice(1, -1)).toEqual(["  abcd2000 TICK-1-r3", "  abcd1000 TICK-1-r2"]);
        expect(lines.at(-1)).toMatch(/more characters.*alias/);
      }
    }
  });

  test("5.2 rung 5: every accepted form is named", async () => {
    for (const run of ["no-such", "", "TICK-99", "*"]) {
      const literals = ["an alias like", "`TICK-20-r1`", "a ticket id or name", "4 characters", "sloop show"];
      for (const verb of ["wait", "logs", "cancel"]) {
        expectRefusal(await wire.refused(verb, { run }), "not_found", `\`${run}\``, ...literals);
      }
    }
  });
});

describe("5.3 show references", () => {
  const shown = async (ref: string) => {
    const data = await wire.ok("show", { ref });
    const value = (data["value"] ?? {}) as Json;
    const tickets = (data["tickets"] ?? []) as Json[];
    expect(data["ref"]).toBe(ref);
    return data["kind"] === "matches"
      ? `matches ${tickets.map(({ id }) => id).join(" ")}`
      : `${data["kind"]} ${value["alias"] ?? value["id"]}`;
  };

  test.each([
    ["1: a ticket id shows the ticket, not its latest run", "TICK-1", "ticket TICK-1"],
    ["1 before 5: a ticket id like a hex prefix", "beef", "ticket beef"],
    ["2: an internal id of another form", "R77", "run T1-r1"],
    ["3: a ticket's name", "first", "ticket TICK-1"],
    ["3: of equal names the smallest id", "Same Name", "ticket Z-10"],
    ["3 before 4: a ticket named like an alias", "TICK-1-r2", "ticket A-1"],
    ["3 before 6: a ticket named like a project (14.20)", "default", "ticket beef"],
    ["4: an alias", "TICK-1-r3", "run TICK-1-r3"],
    ["5: a hex prefix, either case", "C0FFe", "run Z-10-r1"],
    ["7: an alias that is no run is a pattern", "TICK-1-r99", "matches "],
    ["7: a plain text is a substring, letter case aside", "tick-1", "matches A-1 TICK-1"],
    ["7: names count too", "SAME", "matches Z-10 Z-9"],
    ["7: three hex characters are a pattern", "c0f", "matches "],
    ["7: no match is no error", "no-such-thing", "matches "],
    ["7: an expression, unanchored", "z-[0-9]", "matches Z-10 Z-9"],
    ["7: an expression, anchored", "^Z-9$", "matches Z-9"],
    ["7: alternatives", "^(x-2|T1)$", "matches X-2 T1"],
    ["7: an escaped special character", "a\\(b", "matches A-r3-r"],
  ])("5.3 rung %s", async (_name, ref, expected) => {
    if (!expected.startsWith("matches")) {
      expect(await shown(ref)).toBe(expected);
      return;
    }
    const [, ...ids] = (await shown(ref)).split(" ");
    expect(ids.filter((id) => id !== "").sort()).toEqual(
      expected
        .split(" ")
        .slice(1)
        .filter((id) => id !== "")
        .sort(),
    );
  });

  test("5.3 rung 2: an internal id", async () => {
    expect(await shown(first)).toBe("run TICK-1-r1");
  });

  test("5.3 rung 6: a project, by its exact id", async () => {
    stage.scene.write(".agents/sloop/projects/web.md", "---\nid: web\ntitle: Web shop\n---\n");
    await wire.ok("reindex");
    expect(await shown("web")).toBe("project web");
    expect(await shown("WEB")).toBe("matches ");
  });

  test("5.3 rung 5: an ambiguous prefix", async () => {
    const error = await wire.refused("show", { ref: "abcd" });
    expectRefusal(error, "invalid_arguments", "is ambiguous", "  abcd2000 TICK-1-r3\n  abcd1000 TICK-1-r2\n");
    expectRefusal(await wire.refused("events", { scope: "abcd" }), "invalid_arguments", "is ambiguous");
  });

  test("5.3 rung 7: the empty text matches everything", async () => {
    const { tickets } = (await wire.ok("show", { ref: "" })) as { tickets: Json[] };
    expect(tickets).toHaveLength(8);
  });

  test("5.3: bad expressions, look-around and back-references", async () => {
    for (const ref of ["(", "[", "a**", "*", "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "(a)\\1", "(?<n>a)\\k<n>", "\\"]) {
      for (const ask of [() => wire.refused("show", { ref }), () => wire.refused("events", { scope: ref })]) {
        expectRefusal(await ask(), "invalid_arguments", `invalid ticket pattern \`${ref}\``);
      }
    }
  });

  test("5.3, 14.19: a pattern that would make a backtracking engine hang takes no time", async () => {
    const began = performance.now();
    for (const ref of ["^(a+)+$", "(a|a)*b", "(.*)*x{50}", `(${"a?".repeat(25)})${"a".repeat(25)}`]) {
      await wire.ask("show", { ref });
    }
    expect(performance.now() - began).toBeLessThan(20_000);
  });

  test("5.3: hold, ready, retry and run take exact ticket ids, run.project an exact project id", async () => {
    for (const verb of ["hold", "ready", "retry"]) {
      for (const ticket of ["first", "tick-1", "TICK-1-r1", first, ""]) {
        expectRefusal(await wire.refused(verb, { ticket }), "not_found", `ticket \`${ticket}\` does not exist`);
      }
    }
    const now = { trigger: { kind: "now" }, only: [] };
    expectRefusal(await wire.refused("run", { ...now, ticket: "first" }), "not_found");
    expectRefusal(await wire.refused("run", { ...now, project: "Default" }), "not_found");
  });
});

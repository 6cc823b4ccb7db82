// `wait` and the ladder of run references (protocol.md 5.2), rung by rung.

import { describe, expect, test } from "bun:test";
import { ask, refusedWith } from "../support/ask.ts";
import { openContext, startMs, type TestDaemon } from "../support/context.ts";
import { addEvidence, addRun, addTicket, runId } from "../support/rows.ts";

const settled = runId("4be19c02");

async function aliasOf(daemon: TestDaemon, run: string): Promise<string> {
  return (await ask(daemon, "wait", { run })).alias;
}

async function filled(): Promise<TestDaemon> {
  const daemon = await openContext();
  addTicket(daemon, "TICK-9", { name: "Cache avatars" });
  addTicket(daemon, "TICK-7", { name: "Cache avatars" });
  addTicket(daemon, "TICK-8", { name: "Alone" });
  addRun(daemon, runId("aaaa1111"), { ticketId: "TICK-9", state: "failed", attempt: 1, createdAtMs: startMs });
  addRun(daemon, settled, { ticketId: "TICK-9", state: "failed", attempt: 2, exitCode: 2, createdAtMs: startMs + 2 });
  addRun(daemon, runId("aaaa2222"), { ticketId: "TICK-7", state: "merged", attempt: 1, createdAtMs: startMs - 1 });
  return daemon;
}

describe("the ladder", () => {
  test.each([
    ["the internal id", settled, "TICK-9-r2"],
    ["an alias", "TICK-9-r1", "TICK-9-r1"],
    ["leading zeros in an alias", "TICK-9-r01", "TICK-9-r1"],
    ["a ticket id: its latest run", "TICK-9", "TICK-9-r2"],
    ["a ticket name: the smallest id", "Cache avatars", "TICK-7-r1"],
    ["a prefix", "4be1", "TICK-9-r2"],
    ["a prefix in capitals", "4BE19C", "TICK-9-r2"],
    ["the whole id in capitals", settled.toUpperCase(), "TICK-9-r2"],
  ])("%s", async (_name, ref, alias) => {
    using daemon = await filled();
    expect(await aliasOf(daemon, ref)).toBe(alias);
  });

  test("exact names shadow what looks like something else", async () => {
    using daemon = await filled();
    addTicket(daemon, "4be1", { name: "TICK-9-r7" });
    addRun(daemon, runId("c1"), { ticketId: "4be1", state: "merged" });
    addRun(daemon, "R12", { ticketId: "4be1", state: "merged", attempt: 2 });
    addTicket(daemon, "odd-r1", { name: "odd" });
    addRun(daemon, runId("c2"), { ticketId: "odd-r1", state: "merged", attempt: 3 });
    expect(await aliasOf(daemon, "4be1")).toBe("4be1-r2");
    expect(await aliasOf(daemon, "TICK-9-r7")).toBe("4be1-r2");
    expect(await aliasOf(daemon, "R12")).toBe("4be1-r2");
    expect(await aliasOf(daemon, "odd-r1-r3")).toBe("odd-r1-r3");
    expect(await aliasOf(daemon, "odd-r1")).toBe("odd-r1-r3");
  });

  test("a ticket without runs says what to do", async () => {
    using daemon = await filled();
    for (const run of ["TICK-8", "Alone"]) {
      await expect(ask(daemon, "wait", { run })).rejects.toMatchObject(
        refusedWith("not_found", "has no runs yet", "`sloop run TICK-8`") as object,
      );
    }
  });

  test("an ambiguous prefix lists its candidates in order of creation", async () => {
    using daemon = await filled();
    const error = (await ask(daemon, "wait", { run: "AAAA" }).catch((thrown: unknown) => thrown)) as Error;
    expect(error).toMatchObject({ code: "invalid_arguments" });
    const lines = error.message.split("\n");
    expect(lines[0]).toContain("is ambiguous");
    expect(lines[0]).toContain("2");
    expect(lines.slice(1, 3)).toEqual(["  aaaa2222 TICK-7-r1", "  aaaa1111 TICK-9-r1"]);
    expect(lines[3]).toContain("alias");
  });

  test.each([
    "nope",
    "TICK-99",
    "TICK-9-r0",
    "TICK-9-r9",
    "-r1",
    "4be",
    "cache avatars",
    "tick-9",
    "",
    "deadbeef",
    "a".repeat(33),
  ])("nothing is called %p", async (run) => {
    using daemon = await filled();
    await expect(ask(daemon, "wait", { run })).rejects.toMatchObject(
      refusedWith(
        "not_found",
        `\`${run}\``,
        "an alias like",
        "`TICK-20-r1`",
        "a ticket id or name",
        "4 characters",
        "sloop show",
      ) as object,
    );
  });

  test("a percent sign or an underscore is no wildcard", async () => {
    using daemon = await filled();
    for (const run of ["aaaa%", "aaa_1111", "%%%%"]) {
      await expect(ask(daemon, "wait", { run })).rejects.toMatchObject({ code: "not_found" });
    }
  });
});

describe("the reply", () => {
  test("is one snapshot; the note names what was passed over", async () => {
    using daemon = await filled();
    expect(await ask(daemon, "wait", { run: "TICK-9" })).toEqual({
      id: settled,
      alias: "TICK-9-r2",
      note: "showing TICK-9-r2; earlier attempts: r1",
      state: "failed",
      terminal: true,
      exit_code: 2,
      reason: null,
      classification: null,
    });
    expect((await ask(daemon, "wait", { run: "TICK-9-r2" })).note).toBeNull();
    expect((await ask(daemon, "wait", { run: "TICK-7" })).note).toBeNull();
    addRun(daemon, runId("dd"), { ticketId: "TICK-9", state: "running", attempt: 4 });
    const { note, terminal, exit_code } = await ask(daemon, "wait", { run: "TICK-9" });
    expect({ note, terminal, exit_code }).toEqual({
      note: "showing TICK-9-r4; earlier attempts: r1, r2",
      terminal: false,
      exit_code: null,
    });
  });

  test("the reason is the vendor's diagnostic only", async () => {
    using daemon = await filled();
    const data = { class: "rate_limited", vendor: "claude", rule_id: "r", diagnostic: "d", cooldown_until_ms: 5 };
    addEvidence(daemon, settled, "vendor_error_classified", { data });
    expect(await ask(daemon, "wait", { run: settled })).toMatchObject({
      reason: "d",
      classification: { class: "rate_limited", vendor: "claude", rule_id: "r", diagnostic: "d" },
    });
  });

  test("an exit by signal is null, a run in which no agent exited is 0", async () => {
    using daemon = await openContext();
    addTicket(daemon, "T");
    addRun(daemon, runId("a1"), { ticketId: "T", state: "failed", attempt: 1 });
    addEvidence(daemon, runId("a1"), "exit_classified", { data: { exit_code: null, attempt: 1 } });
    addRun(daemon, runId("a2"), { ticketId: "T", state: "needs_review", attempt: 2, exitCode: 0 });
    addRun(daemon, runId("a3"), { ticketId: "T", state: "aborted", attempt: 3 });
    const codes = await Promise.all(["T-r1", "T-r2", "T-r3"].map((run) => ask(daemon, "wait", { run })));
    expect(codes.map((reply) => reply.exit_code)).toEqual([null, 0, 0]);
  });
});

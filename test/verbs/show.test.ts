// `show`: which of its five forms a reference gives, and ticket and run detail field by field.

import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Flow } from "../../src/core/flow.ts";
import type { RunDetail } from "../../src/protocol/rows.ts";
import { ask, refusedWith } from "../support/ask.ts";
import { openContext, startMs, type TestDaemon } from "../support/context.ts";
import { addEvent, addEvidence, addRun, addStage, addTicket, addTrigger, runId } from "../support/rows.ts";

const first = runId("c07d1f5e");

const testFlow: Flow = {
  name: "default",
  stages: [
    { name: "build", action: { kind: "agent" }, resultCheck: { kind: "commits" }, failAction: { kind: "fail" } },
    { name: "test", action: { kind: "exec", cmd: ["t"] }, resultCheck: { kind: "none" }, failAction: { kind: "fail" } },
    {
      name: "merge",
      action: { kind: "merge", ffOnly: false },
      resultCheck: { kind: "none" },
      failAction: { kind: "fail" },
    },
  ],
};

async function runOf(daemon: TestDaemon, ref: string): Promise<RunDetail> {
  const shown = await ask(daemon, "show", { ref });
  if (shown.kind !== "run") throw new Error(`shown: ${shown.kind}`);
  return shown.value;
}

/** The ticket and run of protocol.md's examples. */
async function example(): Promise<TestDaemon> {
  const daemon = await openContext();
  addTicket(daemon, "TICK-8", {
    state: "needs_review",
    projectId: "web",
    name: "Round cart totals",
    filePath: ".agents/sloop/tickets/cart-totals.md",
    worktree: "sloop/cart-totals",
    target: "claude",
    model: "opus",
  });
  addRun(daemon, first, {
    ticketId: "TICK-8",
    state: "needs_review",
    flow: testFlow,
    exitCode: 0,
    branch: "sloop/TICK-8-a1-c07d1f5e",
    worktreePath: "/srv/shop/.worktrees/c07d1f5e",
    targetBranch: "main",
    createdAtMs: startMs,
    startedAtMs: startMs + 120,
    exitedAtMs: startMs + 240_500,
  });
  addStage(daemon, first, 1, {
    stage: "build",
    stageIndex: 0,
    startedAtMs: startMs + 130,
    finishedAtMs: startMs + 200_000,
  });
  addStage(daemon, first, 2, {
    stage: "test",
    stageIndex: 1,
    state: "failed",
    exitCode: 1,
    startedAtMs: startMs + 200_010,
    finishedAtMs: startMs + 240_400,
  });
  addEvidence(daemon, first, "commits_observed", { data: { complete: true, oids: ["a".repeat(40)] } });
  return daemon;
}

describe("which form", () => {
  test.each([
    ["TICK-8", "ticket"],
    [first, "run"],
    ["Round cart totals", "ticket"],
    ["TICK-8-r1", "run"],
    ["c07d", "run"],
    ["web", "project"],
    ["TICK-8-r2", "matches"],
    ["tick-8", "matches"],
    ["", "matches"],
    ["nothing at all", "matches"],
  ])("%p is a %s", async (ref, kind) => {
    using daemon = await example();
    expect(await ask(daemon, "show", { ref })).toMatchObject({ kind, ref } as object);
  });

  test("names shadow prefixes and projects", async () => {
    using daemon = await example();
    addTicket(daemon, "T", { name: "c07d" });
    addTicket(daemon, "U", { name: "web" });
    expect(await ask(daemon, "show", { ref: "c07d" })).toMatchObject({ kind: "ticket", value: { id: "T" } });
    expect(await ask(daemon, "show", { ref: "web" })).toMatchObject({ kind: "ticket", value: { id: "U" } });
  });

  test.each([
    [{ limit: 0 }, ["limit", "zero"]],
    [{ ref: "none", limit: 0 }, ["limit", "zero"]],
    [{ ref: "(" }, ["invalid ticket pattern `(`"]],
    [{ ref: "(a)\\1" }, ["invalid ticket pattern `(a)\\1`"]],
    [{ ref: "(?=a)" }, ["invalid ticket pattern `(?=a)`"]],
  ])("refuses %j", async (args, literals) => {
    using daemon = await example();
    await expect(ask(daemon, "show", args)).rejects.toMatchObject(
      refusedWith("invalid_arguments", ...literals) as object,
    );
  });

  test("an exact reference ignores the limit, zero included", async () => {
    using daemon = await example();
    expect(await ask(daemon, "show", { ref: "web", limit: 0 })).toMatchObject({ kind: "project" });
  });

  test("an ambiguous prefix is refused", async () => {
    using daemon = await example();
    addRun(daemon, runId("c07d9"), { ticketId: "TICK-8", state: "merged", attempt: 2 });
    await expect(ask(daemon, "show", { ref: "c07d" })).rejects.toMatchObject(
      refusedWith("invalid_arguments", "is ambiguous") as object,
    );
  });
});

describe("matches", () => {
  test("over ids and names, newest first, cut after ordering", async () => {
    using daemon = await openContext();
    addTicket(daemon, "TICK-2", { name: "Cache avatars" });
    addTicket(daemon, "TICK-10", { name: "cache the cache" });
    addTicket(daemon, "CACHE-1", { name: "x" });
    addTicket(daemon, "TICK-3", { name: "other" });
    const found = async (ref: string, limit: number | null = null) => {
      const shown = await ask(daemon, "show", { ref, limit });
      return shown.kind === "matches" ? shown.tickets.map((row) => row.id) : shown.kind;
    };
    expect(await found("cache")).toEqual(["TICK-10", "TICK-2", "CACHE-1"]);
    expect(await found("cache", 1)).toEqual(["TICK-10"]);
    expect(await found("^cache|other$")).toEqual(["TICK-10", "TICK-3", "TICK-2", "CACHE-1"]);
    expect(await found("TICK-\\d$")).toEqual(["TICK-3", "TICK-2"]);
    expect(await found("")).toHaveLength(4);
    expect(await found("Cache avatar")).toEqual(["TICK-2"]);
  });
});

describe("the dashboard", () => {
  test("is a status with attention and recent", async () => {
    using daemon = await example();
    for (let n = 10; n < 22; n += 1) addTicket(daemon, `TICK-${n}`, { state: "merged" });
    addTicket(daemon, "TICK-9", { state: "failed", attempts: 1 });
    const shown = await ask(daemon, "show", { limit: null });
    const status = await ask(daemon, "status", {});
    expect(shown).toMatchObject({ kind: "dashboard", ...status, recent_total: 14, recent_limit: 10 } as object);
    if (shown.kind !== "dashboard") throw new Error("no dashboard");
    expect(shown.attention.map((row) => row.id)).toEqual(["TICK-9", "TICK-8"]);
    expect(shown.recent.map((row) => row.id)).toEqual(Array.from({ length: 10 }, (_, n) => `TICK-${21 - n}`));
    expect(await ask(daemon, "show", { limit: 3 })).toMatchObject({ recent_limit: 3, recent: { length: 3 } });
    expect(shown).not.toHaveProperty("ref");
  });
});

describe("ticket detail", () => {
  test("as in the protocol's example", async () => {
    using daemon = await example();
    const file = join(daemon.root, ".agents/sloop/tickets/cart-totals.md");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, "---\nname: Round cart totals\n---\n\nRound every cart total to the cent, half up.\n\n");
    expect(await ask(daemon, "show", { ref: "Round cart totals" })).toEqual({
      kind: "ticket",
      ref: "Round cart totals",
      value: {
        id: "TICK-8",
        name: "Round cart totals",
        project: "web",
        state: "needs_review",
        file: ".agents/sloop/tickets/cart-totals.md",
        blocked_by: [],
        worktree: "sloop/cart-totals",
        target: "claude",
        model: "opus",
        effort: null,
        reason: null,
        classification: null,
        runs: [
          {
            id: first,
            alias: "TICK-8-r1",
            attempt: 1,
            state: "needs_review",
            terminal: true,
            started_at_ms: startMs + 120,
            finished_at_ms: startMs + 240_500,
            reason: "stage `test` failed (exit 1) after agent completed with commits",
            stall: null,
            stages: [
              { stage: "build", state: "passed", attempt: 1, advisory: false, silent_for_ms: null },
              { stage: "test", state: "failed", attempt: 1, advisory: false, silent_for_ms: null },
              { stage: "merge", state: "pending", attempt: 0, advisory: false, silent_for_ms: null },
            ],
          },
        ],
        queued_triggers: [],
        body: "Round every cart total to the cent, half up.",
      },
    });
  });

  test("runs go by attempt, triggers by age, and only those that could select it; blockers in file order", async () => {
    using daemon = await example();
    addRun(daemon, runId("b2"), { ticketId: "TICK-8", state: "merged", attempt: 3, createdAtMs: startMs - 5 });
    addRun(daemon, runId("b1"), { ticketId: "TICK-8", state: "failed", attempt: 2 });
    addTicket(daemon, "TICK-20", { blockedBy: ["TICK-8"] });
    addTicket(daemon, "TICK-1", { projectId: "web", blockedBy: ["TICK-20", "TICK-8"] });
    addTrigger(daemon, "TR9", { ticketId: "TICK-1" });
    addTrigger(daemon, "TR8", { only: ["TICK-8"] });
    addTrigger(daemon, "TR7", { projectId: "web", kind: "every", eligibleAtMs: startMs + 5, createdAtMs: startMs - 1 });
    addTrigger(daemon, "TR6", { projectId: "default" });
    addTrigger(daemon, "TR5", { state: "completed" });
    const shown = await ask(daemon, "show", { ref: "TICK-1" });
    expect(shown).toMatchObject({
      kind: "ticket",
      value: {
        state: "ready",
        reason: null,
        blocked_by: ["TICK-20", "TICK-8"],
        queued_triggers: ["TR7", "TR9"],
        runs: [],
      },
    });
    const other = await ask(daemon, "show", { ref: "TICK-8" });
    if (other.kind !== "ticket") throw new Error("no ticket");
    expect(other.value.runs.map((run) => run.attempt)).toEqual([3, 2, 1]);
  });

  test("a body that cannot be read is empty; without a file it is the stored one", async () => {
    using daemon = await openContext();
    addTicket(daemon, "T", { filePath: "t.md" });
    addTicket(daemon, "E", { filePath: null, source: "exec", sourceRef: "x", body: "\n from outside \n" });
    const body = async (ref: string) => {
      const shown = await ask(daemon, "show", { ref });
      return shown.kind === "ticket" ? [shown.value.body, shown.value.file] : null;
    };
    const file = join(daemon.root, "t.md");
    expect(await body("E")).toEqual(["from outside", null]);
    expect(await body("T")).toEqual(["", "t.md"]);
    writeFileSync(file, "no frontmatter\n");
    expect((await body("T"))?.[0]).toBe("no frontmatter");
    writeFileSync(file, "---\nname: x\nnever closed\n");
    expect((await body("T"))?.[0]).toBe("");
    writeFileSync(file, new Uint8Array([0xff, 0xfe]));
    expect((await body("T"))?.[0]).toBe("");
    rmSync(file);
    mkdirSync(file);
    expect((await body("T"))?.[0]).toBe("");
    rmSync(file, { recursive: true });
    symlinkSync("/dev/zero", file);
    expect((await body("T"))?.[0]).toBe("");
  });
});

describe("run detail", () => {
  test("as in the protocol's example", async () => {
    using daemon = await example();
    const pending = { started_at_ms: null, finished_at_ms: null, duration_ms: null, exit_code: null };
    const rest = { reason: null, confidence: null, advisory: false, silent_for_ms: null, reviewers: [] };
    expect(await ask(daemon, "show", { ref: "TICK-8-r1" })).toEqual({
      kind: "run",
      ref: "TICK-8-r1",
      value: {
        id: first,
        alias: "TICK-8-r1",
        attempt: 1,
        note: null,
        ticket: "TICK-8",
        ticket_name: "Round cart totals",
        state: "needs_review",
        terminal: true,
        branch: "sloop/TICK-8-a1-c07d1f5e",
        worktree: "/srv/shop/.worktrees/c07d1f5e",
        target_branch: "main",
        wip: null,
        claimed_at_ms: startMs,
        started_at_ms: startMs + 120,
        finished_at_ms: startMs + 240_500,
        exit_code: 0,
        agent_exit_code: 0,
        reason: "stage `test` failed (exit 1) after agent completed with commits",
        classification: null,
        stall: null,
        halt: "fail_action",
        stages: [
          {
            stage: "build",
            state: "passed",
            attempt: 1,
            started_at_ms: startMs + 130,
            finished_at_ms: startMs + 200_000,
            duration_ms: 199_870,
            exit_code: 0,
            verdict_source: "exit_code",
            ...rest,
          },
          {
            stage: "test",
            state: "failed",
            attempt: 1,
            started_at_ms: startMs + 200_010,
            finished_at_ms: startMs + 240_400,
            duration_ms: 40_390,
            exit_code: 1,
            verdict_source: "exit_code",
            ...rest,
          },
          { stage: "merge", state: "pending", attempt: 0, ...pending, verdict_source: null, ...rest },
        ],
      },
    });
  });

  test("the vendor's diagnostic wins here, the derived text in the summary; a silence kill beats both", async () => {
    using daemon = await example();
    const data = {
      class: "unknown_rejection",
      vendor: "opencode",
      rule_id: "r",
      diagnostic: "OpenCode rejected",
      cooldown_until_ms: 1,
    };
    addEvidence(daemon, first, "vendor_error_classified", { data });
    expect(await runOf(daemon, first)).toMatchObject({
      reason: "OpenCode rejected",
      classification: { vendor: "opencode" },
    });
    const ticket = await ask(daemon, "show", { ref: "TICK-8" });
    if (ticket.kind !== "ticket") throw new Error("no ticket");
    expect(ticket.value).toMatchObject({ reason: "OpenCode rejected", classification: { rule_id: "r" } });
    expect(ticket.value.runs[0]?.reason).toStartWith("stage `test` failed");
    const stall = { stage: "build", last_output_at_ms: 5, threshold_ms: 7_200_000, last_output_sequence: 7 };
    addEvidence(daemon, first, "output_stall", { data: stall, key: `output_stall:${first}` });
    expect(await runOf(daemon, first)).toMatchObject({ reason: "stalled: no output for 2h", stall });
  });

  test("the timeline comes from the feed, and from the row where the feed was trimmed", async () => {
    using daemon = await example();
    const at = async () => {
      const { claimed_at_ms, started_at_ms, finished_at_ms } = await runOf(daemon, first);
      return [claimed_at_ms, started_at_ms, finished_at_ms].map((ms) => (ms ?? 0) - startMs);
    };
    expect(await at()).toEqual([0, 120, 240_500]);
    for (const [kind, ms] of [
      ["run_claimed", 1],
      ["run_started", 2],
      ["run_started", 3],
      ["run_finished", 4],
      ["run_finished", 5],
    ] as const) {
      addEvent(daemon, kind, { runId: first, ticketId: "TICK-8", occurredAtMs: startMs + ms });
    }
    expect(await at()).toEqual([1, 2, 5]);
  });

  test("of a run that has only been claimed, and of one that is running", async () => {
    using daemon = await openContext();
    addTicket(daemon, "T", { state: "claimed" });
    addRun(daemon, runId("a1"), { ticketId: "T", state: "claimed" });
    expect(await runOf(daemon, "T-r1")).toMatchObject({
      claimed_at_ms: startMs,
      started_at_ms: null,
      finished_at_ms: null,
      branch: null,
      worktree: null,
      target_branch: null,
      exit_code: null,
      reason: null,
      halt: null,
    });
    daemon.store.sqlite.run("update runs set state = 'running'");
    const data = { stage: "build", attempt: 1, pid: 1, pid_start_time: 2, process_group_id: 1 };
    addEvidence(daemon, runId("a1"), "stage_process", { data, observedAtMs: startMs + 77 });
    expect((await runOf(daemon, "T-r1")).stages[0]).toMatchObject({
      state: "running",
      attempt: 1,
      started_at_ms: startMs + 77,
    });
  });

  test("kept uncommitted work is told; an unreadable snapshot leaves what is recorded", async () => {
    using daemon = await example();
    addEvidence(daemon, first, "uncommitted_kept", { data: { ref: `refs/sloop/wip/${first}`, files: 3 } });
    expect((await runOf(daemon, first)).wip).toEqual({ ref: `refs/sloop/wip/${first}`, files: 3 });
    daemon.store.sqlite.run("update runs set flow_json = '{}'");
    const { stages, halt } = await runOf(daemon, first);
    expect(stages.map((row) => `${row.stage} ${row.state}`)).toEqual(["build passed", "test failed"]);
    expect(halt).toBeNull();
  });
});

// protocol.md 6.2, 7.9, 7.10: rows, counts, lists, the dashboard, matches and project detail, key by key.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { until } from "../../support/until.ts";
import { commit, meet, openStage, type Stage } from "./stage.ts";
import { expectRefusal, type Json, type Wire } from "./wire.ts";

setDefaultTimeout(60_000);

let stage: Stage;
let wire: Wire;

const flows = {
  tested: `stages:
  - { name: build, action: agent }
  - { name: lint, action: { exec: ["false"] }, fail_action: continue }
  - { name: test, action: { exec: ["true"] } }
  - { name: merge, action: { builtin: merge } }
`,
  plain: "stages:\n  - { name: build, action: agent }\n",
};

beforeAll(async () => {
  stage = await openStage({ flows, config: "scheduler: { max_parallel_tasks: 4 }" });
  wire = stage.wire;
  stage.agent("TICK-2", "exit 1");
  stage.agent("TICK-3", `${commit}; sloop note "gift cards are rounded elsewhere"; sloop note second; ${commit}`);
  await stage.post("good");
  await stage.post("failed");
  await stage.post("loose", { flow: "plain" });
  for (const id of ["TICK-1", "TICK-2", "TICK-3"]) await stage.settled(id);
  for (const stem of ["one", "two", "three"]) await stage.post(stem, { trigger: { kind: "hold" } });
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const keys = (value: unknown) =>
  Object.keys(value as Json)
    .sort()
    .join(" ");
const summaryKeys = "alias attempt finished_at_ms id reason stages stall started_at_ms state terminal";
const rowKeys = "classification id name project reason run run_id state";

describe("7.9, 7.10, 6.2 rows and counts", () => {
  test("7.9 status: every key, counts that add up, nothing that does not apply", async () => {
    const status = await wire.ok("status");
    const gone = ["next_wake", "dispatch"];
    expect(
      Object.keys(status)
        .filter((key) => !gone.includes(key))
        .sort(),
    ).toEqual(["daemon", "gate", "queued_activations", "queued_triggers", "runs", "tickets"]);
    expect(status).toMatchObject({
      daemon: { pid: stage.scene.daemonPid(), paused: false, draining: false },
      gate: {
        active_agents: 0,
        max_agents: 4,
        capacity_reconciled: true,
        storage: { writable: true, reason: null },
        cooldowns: [],
      },
      runs: [],
    });
    expect(keys(status["gate"])).toBe("active_agents capacity_reconciled cooldowns max_agents storage");
    const counts = status["tickets"] as Record<string, number>;
    expect(keys(counts)).toBe("blocked claimed failed held merged needs_review ready");
    const { tickets } = (await wire.ok("list")) as { tickets: Json[] };
    for (const [state, n] of Object.entries(counts)) {
      expect(tickets.filter((row) => row["state"] === state)).toHaveLength(n);
    }
  });

  test("7.9 status.runs, 6.5: a running run, its three more keys, its running row", async () => {
    const id = await stage.post("live", { trigger: { kind: "manual" }, flow: "tested" });
    stage.agent(id, meet);
    await wire.ok("run", { trigger: { kind: "now" }, only: [], ticket: id });
    await stage.worker(id);
    await until(async () => (await wire.ok("wait", { run: id }))["state"] === "running", "the run to be running");
    const { runs, gate } = (await wire.ok("status")) as { runs: Json[]; gate: Json };
    expect(runs).toHaveLength(1);
    expect(gate["active_agents"]).toBe(1);
    expect(keys(runs[0])).toBe(`${summaryKeys} project ticket ticket_name`.split(" ").sort().join(" "));
    const [summary] = runs;
    expect(summary).toMatchObject({
      alias: `${id}-r1`,
      state: "running",
      terminal: false,
      finished_at_ms: null,
      reason: null,
      stall: null,
      project: "default",
      ticket: id,
      ticket_name: "live",
      stages: [
        { stage: "build", state: "running", attempt: 1, advisory: false, silent_for_ms: null },
        { stage: "lint", state: "pending", attempt: 0, advisory: true, silent_for_ms: null },
        { stage: "test", state: "pending", attempt: 0, advisory: false, silent_for_ms: null },
        { stage: "merge", state: "pending", attempt: 0, advisory: false, silent_for_ms: null },
      ],
    });
    const detail = await stage.value(`${id}-r1`);
    expect(detail).toMatchObject({ halt: null, reason: null, exit_code: null, finished_at_ms: null, wip: null });
    const [row] = detail["stages"] as Json[];
    expect(row).toMatchObject({ started_at_ms: expect.any(Number), finished_at_ms: null, verdict_source: null });
    expect(await wire.ok("wait", { run: id })).toMatchObject({ state: "running", terminal: false, exit_code: null });
    expect(existsSync(detail["worktree"] as string)).toBe(true);
    stage.go(id);
    await stage.settled(id);
  });

  test("7.9 list: rows of eight keys, newest first, limits and filters", async () => {
    const { tickets } = (await wire.ok("list")) as { tickets: Json[] };
    for (const row of tickets) expect(keys(row)).toBe(rowKeys);
    expect(((await wire.ok("list", { limit: 3 })) as { tickets: Json[] }).tickets).toEqual(tickets.slice(0, 3));
    expect(await wire.ok("list", { limit: 4_294_967_295, states: [] })).toEqual({ tickets });
    const some = tickets.filter((row) => ["failed", "needs_review"].includes(row["state"] as string));
    expect(await wire.ok("list", { states: ["failed", "needs_review"] })).toEqual({ tickets: some });
    expect(
      await wire.ok("list", { states: ["needs_review", "failed", "failed"], limit: 2, project: "default" }),
    ).toEqual({
      tickets: some.slice(0, 2),
    });
    expectRefusal(await wire.refused("list", { limit: 0 }), "invalid_arguments", "limit");
    expectRefusal(await wire.refused("list", { project: "no-such" }), "not_found", "no-such");
    expectRefusal(await wire.refused("list", { states: ["ready", "Ready"] }), "invalid_arguments", "Ready");
  });

  test("7.10 dashboard: every status field, attention never cut, recent cut to the limit", async () => {
    const data = await wire.ok("show", { limit: 2 });
    const { tickets } = (await wire.ok("list")) as { tickets: Json[] };
    const attention = tickets.filter((row) => ["failed", "needs_review"].includes(row["state"] as string));
    const { kind, attention: shown, recent, recent_total, recent_limit, ...rest } = data;
    expect({ kind, recent_total, recent_limit }).toEqual({
      kind: "dashboard",
      recent_total: tickets.length,
      recent_limit: 2,
    });
    expect(shown).toEqual(attention);
    expect(recent).toEqual(tickets.slice(0, 2));
    expect(rest).toEqual(await wire.ok("status"));
    expect(await wire.ok("show")).toMatchObject({ recent_limit: 10, recent: tickets.slice(0, 10) });
    expect(data).not.toHaveProperty("ref");
    expectRefusal(await wire.refused("show", { limit: 0 }), "invalid_arguments", "limit", "zero");
  });

  test("7.10 matches: rows, cut after ordering; one match is a list; limit 0 counts here", async () => {
    const all = (await wire.ok("show", { ref: "TICK" })) as { tickets: Json[] };
    expect(keys(all)).toBe("kind ref tickets");
    expect(all.tickets).toEqual(((await wire.ok("list")) as { tickets: Json[] }).tickets);
    expect(await wire.ok("show", { ref: "TICK", limit: 1 })).toEqual({
      kind: "matches",
      ref: "TICK",
      tickets: all.tickets.slice(0, 1),
    });
    expect(await wire.ok("show", { ref: "oos" })).toMatchObject({ kind: "matches", tickets: [{ name: "loose" }] });
    expectRefusal(await wire.refused("show", { ref: "TICK", limit: 0 }), "invalid_arguments", "limit", "zero");
  });
});

describe("7.10 project", () => {
  test("7.10 project: tickets by id as text, notes oldest first, commits as git observed them; limit ignored", async () => {
    for (const n of [9, 10]) await stage.post(`number-${n}`, { front: `id: TICK-${n}`, trigger: { kind: "hold" } });
    const { kind, ref, value } = (await wire.ok("show", { ref: "default", limit: 0 })) as {
      kind: string;
      ref: string;
      value: Json;
    };
    expect({ kind, ref }).toEqual({ kind: "project", ref: "default" });
    expect(keys(value)).toBe("file id tickets title");
    expect(value).toMatchObject({ id: "default", title: "Default", file: ".agents/sloop/projects/default.md" });
    const tickets = value["tickets"] as Json[];
    const ids = tickets.map(({ id }) => id as string);
    expect(ids).toEqual(ids.toSorted());
    expect(ids.indexOf("TICK-10")).toBeLessThan(ids.indexOf("TICK-9"));
    for (const ticket of tickets) expect(keys(ticket)).toBe("classification commits id name notes reason state");
    const loose = tickets.find(({ id }) => id === "TICK-3")!;
    const { id: run_id, branch } = await stage.value("TICK-3-r1");
    const run = "TICK-3-r1";
    const note = { id: expect.stringMatching(/^N[0-9]+$/), run, run_id, recorded_at_ms: expect.any(Number) };
    expect(loose["notes"]).toEqual([
      { ...note, text: "gift cards are rounded elsewhere" },
      { ...note, text: "second" },
    ]);
    const log = stage.scene.git("log", "--reverse", "--format=%h %s", `main..${branch}`).split("\n");
    expect(log).toHaveLength(2);
    expect(loose["commits"]).toEqual(
      log.map((line) => ({
        run,
        run_id,
        hash: line.slice(0, line.indexOf(" ")),
        message: line.slice(line.indexOf(" ") + 1),
      })),
    );
    expect(loose).toMatchObject({ state: "needs_review", reason: null, classification: null });
  });
});

// protocol.md 7.6, 6.3, 6.7: queueing triggers, why a ticket is not running, and what the daemon will do next.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../../support/until.ts";
import { meet, openStage, type Stage, startMs } from "./stage.ts";
import { expectRefusal, type Json, type Wire } from "./wire.ts";

setDefaultTimeout(60_000);

const minute = 60_000;
const hour = 60 * minute;
const manual = { trigger: { kind: "manual" } };
const flows = { short: "stages:\n  - { name: build, action: agent }\n" };

let stage: Stage;
let wire: Wire;

beforeAll(async () => {
  stage = await openStage({ clock: true, flows });
  wire = stage.wire;
  await stage.post("merged");
  await stage.post("reviewed", { flow: "short" });
  stage.agent("TICK-3", "exit 1");
  await stage.post("failed");
  for (const id of ["TICK-1", "TICK-2", "TICK-3"]) await stage.settled(id);
  await stage.post("held", { trigger: { kind: "hold" } });
  await stage.post("ready", manual);
  await stage.post("blocked", { ...manual, front: "blocked_by: [TICK-5, TICK-1, TICK-3]" });
  stage.scene.write(".agents/sloop/projects/web.md", "---\nid: web\ntitle: Web shop\n---\n");
  await wire.ok("reindex");
  await stage.post("in-web", { ...manual, front: "project: web" });
  await wire.ok("pause");
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

async function queued(args: Json): Promise<Json> {
  const { trigger } = (await wire.ok("run", { only: [], ...args })) as { trigger: Json };
  expect(trigger["id"]).toMatch(/^TR[1-9][0-9]*$/);
  return trigger;
}

const refused = (args: Json) => wire.refused("run", { only: [], trigger: { kind: "now" }, ...args });

describe("7.6 run", () => {
  test("7.6: every kind, with exactly the keys that apply; two runs make two triggers", async () => {
    const id = expect.stringMatching(/^TR/);
    const state = "queued";
    const now = { id, kind: "now", state };
    expect(await queued({ trigger: { kind: "now" } })).toEqual(now);
    const one = await queued({ trigger: { kind: "now" }, ticket: "TICK-5" });
    const two = await queued({ trigger: { kind: "now" }, ticket: "TICK-5", project: null });
    expect([one, two]).toEqual([
      { ...now, ticket: "TICK-5" },
      { ...now, ticket: "TICK-5" },
    ]);
    expect(one["id"]).not.toBe(two["id"]);
    expect(await queued({ trigger: { kind: "at", local_time: "02:01" }, project: "web" })).toEqual({
      id,
      kind: "at",
      state,
      project: "web",
      eligible_at_ms: startMs + minute,
      local_time: "02:01",
    });
    expect(await queued({ trigger: { kind: "at", local_time: "02:00" } })).toMatchObject({
      eligible_at_ms: startMs + 24 * hour,
    });
    expect(await queued({ trigger: { kind: "every", interval_ms: 1_800_000 }, only: ["TICK-5"] })).toEqual({
      id,
      kind: "every",
      state,
      eligible_at_ms: startMs + 1_800_000,
      interval_ms: 1_800_000,
    });
    expect(await queued({ trigger: { kind: "overnight" }, ticket: "TICK-3" })).toEqual({
      id,
      kind: "overnight",
      state,
      ticket: "TICK-3",
      eligible_at_ms: startMs,
    });
  });

  test("7.6: failed, blocked and claimed tickets are accepted, held ones in `only` too", async () => {
    for (const ticket of ["TICK-3", "TICK-6"]) await queued({ trigger: { kind: "now" }, ticket });
    await queued({ trigger: { kind: "now" }, only: ["TICK-4", "TICK-1", "TICK-2"] });
  });

  test("7.6 errors, in their order", async () => {
    const bad = { kind: "at", local_time: "x" };
    const nope = "no-such";
    const steps: [Json, string, string[]][] = [
      [{ ticket: nope, project: nope, only: [nope], trigger: bad }, "invalid_arguments", ["not both"]],
      [{ ticket: nope, only: [nope], trigger: bad }, "not_found", [`\`${nope}\` is not registered`, "sloop show"]],
      [{ ticket: "TICK-4", only: [nope], trigger: bad }, "conflict", ["held", "`sloop ready TICK-4`"]],
      [{ ticket: "TICK-1", only: [nope], trigger: bad }, "conflict", ["merged"]],
      [{ ticket: "TICK-2", only: [nope], trigger: bad }, "conflict", ["needs_review"]],
      [{ project: nope, only: [nope], trigger: bad }, "not_found", [`project \`${nope}\` is not indexed`]],
      [{ project: "web", only: ["TICK-7", nope], trigger: bad }, "not_found", [`\`${nope}\` is not registered`]],
      [{ project: "web", only: ["TICK-5"], trigger: bad }, "invalid_arguments", ["`default`", "`web`"]],
      [{ only: ["TICK-5"], trigger: bad }, "invalid_arguments", ["HH:MM"]],
    ];
    for (const [args, code, literals] of steps) expectRefusal(await refused(args), code, ...literals);
    for (const interval_ms of [0, Number.MAX_SAFE_INTEGER]) {
      expectRefusal(await refused({ trigger: { kind: "every", interval_ms } }), "invalid_arguments", "--every");
    }
    for (const local_time of ["24:00", "1:00", "", "12:00:00"]) {
      expectRefusal(await refused({ trigger: { kind: "at", local_time } }), "invalid_arguments", "HH:MM");
    }
  });

  test("6.4, 7.9: queued triggers, oldest first, due or not, twice under two names", async () => {
    const status = (await wire.ok("status")) as { queued_triggers: Json[]; queued_activations: Json[] };
    expect(status.queued_activations).toEqual(status.queued_triggers);
    for (const trigger of status.queued_triggers) {
      expect(Object.keys(trigger).sort()).toEqual(["id", "project", "state", "ticket"]);
      expect(trigger["state"]).toBe("queued");
    }
    const numbers = status.queued_triggers.map(({ id }) => Number(String(id).slice(2)));
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(status.queued_triggers.filter(({ project }) => project === "web")).toMatchObject([{ ticket: null }]);
  });
});

describe("6.3 reasons", () => {
  test("6.3 A-I: settled, held, blocked and paused tickets", async () => {
    const rows = Object.fromEntries(
      ((await wire.ok("list")) as { tickets: Json[] }).tickets.map((row) => [row["id"], [row["state"], row["reason"]]]),
    );
    const paused = "scheduler is paused; resume with `sloop resume`";
    expect(rows).toEqual({
      "TICK-1": ["merged", null],
      "TICK-2": ["needs_review", null],
      "TICK-3": ["failed", "failed after 1 attempt(s); requeue with `sloop retry`"],
      "TICK-4": ["held", "held by operator; release with `sloop ready`"],
      "TICK-5": ["ready", paused],
      "TICK-6": ["blocked", "blocked by unmerged TICK-5, TICK-3"],
      "TICK-7": ["ready", paused],
    });
    // 14.9: detail never says why, and calls a blocked ticket ready.
    expect(await stage.value("TICK-6")).toMatchObject({ state: "ready", reason: null });
  });
});

describe("6.3, 6.7 what comes next", () => {
  test("6.3 M-P, 6.7: slots, hours, triggers due later, and what wakes the daemon", async () => {
    await using other = await openStage({
      clock: true,
      config: 'scheduler: { max_parallel_tasks: 1, running_hours: { start: "02:00", end: "04:00" } }',
    });
    const status = async () => await other.wire.ok("status");
    const reason = async (id: string) => (await other.row(id))["reason"];
    const at = (ms: number) => new Date(ms).toISOString().replace(".000Z", "Z");

    expect(await status()).toMatchObject({ gate: { running_hours: { start: "02:00", end: "04:00", open: true } } });
    expect(Object.keys(await status())).not.toContain("next_wake");
    expect(Object.keys(await status())).not.toContain("dispatch");
    const first = await other.post("first", manual);
    expect(await reason(first)).toBe("ready but no queued trigger; enqueue with `sloop run`");
    const later = { only: [], trigger: { kind: "at", local_time: "03:30" }, ticket: first };
    const { trigger } = (await other.wire.ok("run", later)) as { trigger: Json };
    const dueAt = at(startMs + 90 * minute);
    expect(await reason(first)).toBe(`queued trigger ${trigger["id"]} is due at ${dueAt}`);
    expect(await status()).toMatchObject({
      next_wake: dueAt,
      dispatch: { at: dueAt, cause: "scheduled_trigger", trigger: first },
    });

    // One slot, taken by another ticket.
    const busy = await other.post("busy", manual);
    other.agent(busy, meet);
    await other.wire.ok("run", { only: [], trigger: { kind: "now" }, ticket: busy });
    await other.worker(busy);
    expect(await reason(first)).toBe("all agent slots are busy");
    expect(await reason(busy)).toBe(`claimed by run ${busy}-r1`);
    expect(await other.row(busy)).toMatchObject({ state: "claimed", run: `${busy}-r1`, run_id: expect.any(String) });

    // 04:00 is outside: the end of the hours is not part of them. A running run is not touched.
    other.setNow(startMs + 2 * hour);
    const opening = at(startMs + 24 * hour);
    expect(await reason(first)).toBe("outside configured running hours");
    const closed = await status();
    expect(closed).toMatchObject({
      gate: { running_hours: { open: false }, active_agents: 1, max_agents: 1 },
      dispatch: { at: opening, cause: "running_hours", waiting: 1 },
    });
    expect(Date.parse(closed["next_wake"] as string)).toBeLessThanOrEqual(Date.parse(opening));
    expect((closed["runs"] as Json[]).length).toBe(1);

    // 14.7: overnight waits for the opening.
    const overnight = { only: [], trigger: { kind: "overnight" }, ticket: first };
    expect(await other.wire.ok("run", overnight)).toMatchObject({
      trigger: { kind: "overnight", eligible_at_ms: startMs + 24 * hour },
    });
    other.go(busy);
    await other.settled(busy);
    other.setNow(startMs + 24 * hour);
    await other.settled(first);
  });

  test("6.7 next_wake is for any purpose, dispatch for work only; 6.2 `TICK-10` before `TICK-9`", async () => {
    await using other = await openStage({ clock: true, config: "worktree_retention: 2d" });
    await other.post("one");
    await other.settled("TICK-1");
    const status = await other.wire.ok("status");
    expect(status["next_wake"]).toBe("2027-03-03T02:00:00Z");
    expect(status).not.toHaveProperty("dispatch");
    for (const n of [9, 10, 11]) await other.post(`t-${n}`, { ...manual, front: `id: TICK-${n}` });
    for (const id of ["other", "Z"]) await other.post(`x-${id.toLowerCase()}`, { ...manual, front: `id: ${id}` });
    const { tickets } = (await other.wire.ok("list")) as { tickets: Json[] };
    expect(tickets.map(({ id }) => id)).toEqual(["TICK-11", "TICK-10", "TICK-9", "TICK-1", "other", "Z"]);
    other.setNow(startMs + 1500);
    await other.post("newest", { ...manual, front: "id: A" });
    const recent = (await other.wire.ok("list", { limit: 2 })) as { tickets: Json[] };
    expect(recent.tickets.map(({ id }) => id)).toEqual(["A", "TICK-11"]);
    // Instants drop trailing zeros.
    const every = { only: [], trigger: { kind: "every", interval_ms: 60_020 } };
    await other.wire.ok("pause");
    await other.wire.ok("run", every);
    expect(await other.wire.ok("status")).toMatchObject({
      next_wake: "2027-03-01T02:01:01.52Z",
      dispatch: { at: "2027-03-01T02:01:01.52Z", cause: "scheduled_trigger", trigger: expect.stringMatching(/^TR/) },
    });
  });

  test("6.3 H, Q, G: no agents, no target branch, no file", async () => {
    await using other = await openStage();
    const id = await other.post("waiting", manual);
    other.scene.git("checkout", "-q", "--detach");
    const branch = "check out a branch or set `merge.target`";
    await until(
      async () => (await other.row(id))["reason"] === `no target branch (HEAD is detached); ${branch}`,
      "the detached head to be told",
    );
    other.scene.git("checkout", "-q", "--orphan", "empty");
    await until(
      async () => (await other.row(id))["reason"] === `no target branch (HEAD has no commit yet); ${branch}`,
      "the unborn head to be told",
    );
    await other.stop();
    other.scene.write(".agents/sloop/config.yaml", "version: 1\n");
    await other.scene.data(["daemon"]);
    expect((await other.row(id))["reason"]).toBe("no agent targets configured");
    await other.stop();
    other.scene.write(
      ".agents/sloop/config.yaml",
      "version: 1\nmerge: { target: gone }\nagent: { default_target: a, targets: { a: { cmd: [sh, '{prompt}'] } } }\n",
    );
    await other.scene.data(["daemon"]);
    expect((await other.row(id))["reason"]).toBe(`no target branch (branch \`gone\` is missing); ${branch}`);
  });
});

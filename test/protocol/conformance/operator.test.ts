// protocol.md 7.1-7.4, 7.7, 7.8, 7.11: the verbs by which an operator steers the daemon, its tickets and its runs.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, realpathSync } from "node:fs";
import { until } from "../../support/until.ts";
import { meet, openStage, type Stage } from "./stage.ts";
import { expectRefusal, type Json, replies, request, type Wire } from "./wire.ts";

setDefaultTimeout(60_000);

let stage: Stage;
let wire: Wire;

const flows = { short: "stages:\n  - { name: build, action: agent }\n" };
const config = "scheduler: { max_parallel_tasks: 4, cancel_grace: 1s }";

beforeAll(async () => {
  stage = await openStage({ flows, config });
  wire = stage.wire;
  // One ticket in every settled state.
  stage.agent("TICK-2", "exit 3");
  await stage.post("merged");
  await stage.post("failed");
  await stage.post("review", { flow: "short" });
  for (const id of ["TICK-1", "TICK-2", "TICK-3"]) await stage.settled(id);
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

/** A run whose agent waits; resolves once it runs. */
async function running(stem: string, script = meet): Promise<string> {
  const id = await stage.post(stem, { trigger: { kind: "manual" } });
  stage.agent(id, script);
  await wire.ok("run", { trigger: { kind: "now" }, only: [], ticket: id });
  await stage.worker(id);
  await until(async () => (await wire.ok("wait", { run: id }))["state"] === "running", `${id} to be running`);
  return id;
}

const restarts = async () =>
  ((await wire.ok("events")) as { events: Json[] }).events.filter(
    (event) => event["kind"] === "daemon_restart_requested",
  );

describe("7.4 pause, resume", () => {
  test("7.4: idempotent, and durable over a restart of the daemon", async () => {
    for (let round = 0; round < 2; round += 1) expect(await wire.ok("pause")).toEqual({ paused: true });
    await stage.scene.killDaemon();
    await stage.scene.data(["daemon"]);
    expect(await wire.ok("status")).toMatchObject({ daemon: { paused: true, draining: false } });
    for (let round = 0; round < 2; round += 1) {
      expect(await wire.ok("resume")).toEqual({ paused: false, restart_cancelled: false });
    }
  });

  test("7.4: pausing stops dispatch only, a run finishes all its stages", async () => {
    const id = await running("paused-run", `${meet}\necho x > x; git add -A; git commit -qm x`);
    await wire.ok("pause");
    stage.go(id);
    expect(await stage.settled(id)).toMatchObject({ state: "merged" });
    await wire.ok("resume");
  });
});

describe("7.7 hold, ready; 7.8 retry", () => {
  test("7.7: ready and held, both ways and twice", async () => {
    const ticket = await stage.post("toggled", { trigger: { kind: "manual" } });
    const moves: [string, string, string, boolean][] = [
      ["ready", "ready", "ready", false],
      ["hold", "ready", "held", true],
      ["hold", "held", "held", false],
      ["ready", "held", "ready", true],
    ];
    for (const [verb, previous_state, state, overridden] of moves) {
      expect(await wire.ok(verb, { ticket })).toEqual({ ticket, previous_state, state, overridden });
    }
  });

  test("7.7: a validation hold is released by ready, its reason cleared by hold and ready", async () => {
    const ticket = await stage.post("broken", { trigger: { kind: "manual" } });
    const good = stage.scene.read(".agents/sloop/tickets/broken.md");
    for (const verb of ["ready", "hold"]) {
      stage.scene.write(".agents/sloop/tickets/broken.md", good.replace("flow: default", "flow: nowhere"));
      if (verb === "hold") await wire.ok("ready", { ticket });
      await wire.ok("reindex");
      expect(await stage.row(ticket)).toMatchObject({
        state: "held",
        reason: expect.stringMatching(/broken\.md.*`nowhere`/),
      });
      await wire.ok("ready", { ticket });
      expect((await stage.row(ticket))["reason"]).toBe("ready but no queued trigger; enqueue with `sloop run`");
    }
    stage.scene.write(".agents/sloop/tickets/broken.md", good);
    await wire.ok("hold", { ticket });
    expect((await stage.row(ticket))["reason"]).toBe("held by operator; release with `sloop ready`");
    await wire.ok("ready", { ticket });
  });

  test("7.7, 7.8 errors: unknown tickets, and every state that forbids it", async () => {
    const claimed = await running("claimed");
    const states: [string, string][] = [
      ["TICK-1", "merged"],
      ["TICK-2", "failed"],
      ["TICK-3", "needs_review"],
      [claimed, "claimed"],
    ];
    for (const [verb, wanted] of [
      ["hold", "held"],
      ["ready", "ready"],
    ] as const) {
      expectRefusal(await wire.refused(verb, { ticket: "TICK-99" }), "not_found", "ticket `TICK-99` does not exist");
      for (const [ticket, state] of states) {
        expectRefusal(await wire.refused(verb, { ticket }), "conflict", ticket, `\`${state}\``, `\`${wanted}\``);
      }
    }
    expectRefusal(await wire.refused("retry", { ticket: "TICK-99" }), "not_found", "ticket `TICK-99` does not exist");
    const held = await stage.post("held", { trigger: { kind: "hold" } });
    const ready = await stage.post("ready", { trigger: { kind: "manual" } });
    for (const [ticket, state] of [...states, [held, "held"], [ready, "ready"]] as [string, string][]) {
      if (state === "failed") continue;
      expectRefusal(await wire.refused("retry", { ticket }), "conflict", ticket, `\`${state}\``, "`ready`");
    }
    stage.go(claimed);
    await stage.settled(claimed);
  });

  test("7.8, 14.14, 14.15: retry resets the count of claims, not the attempt, and queues nothing", async () => {
    expect((await stage.row("TICK-2"))["reason"]).toBe("failed after 1 attempt(s); requeue with `sloop retry`");
    expect(await wire.ok("retry", { ticket: "TICK-2" })).toEqual({
      ticket: "TICK-2",
      previous_state: "failed",
      state: "ready",
    });
    expect(await stage.row("TICK-2")).toMatchObject({
      state: "ready",
      reason: "ready but no queued trigger; enqueue with `sloop run`",
    });
    expect((await stage.value("TICK-2"))["queued_triggers"]).toEqual([]);
    await wire.ok("run", { trigger: { kind: "now" }, only: [], ticket: "TICK-2" });
    await stage.settled("TICK-2-r2");
    expect((await stage.row("TICK-2"))["reason"]).toBe("failed after 1 attempt(s); requeue with `sloop retry`");
  });
});

describe("7.11 cancel", () => {
  test("7.11: the reply, twice; a settled run cannot be cancelled; it settles cancelled, ticket ready, nothing queued", async () => {
    const stubborn = `trap '' TERM; ${meet}`;
    const id = await running("cancelled", stubborn);
    const { id: run, worktree } = (await stage.value(`${id}-r1`)) as { id: string; worktree: string };
    const reply = { id: run, alias: `${id}-r1`, state: "cancelling", worktree, preserved: true };
    // One request after the other on two connections: the first waits for the agent, the second need not.
    const both = await Promise.all([wire.ok("cancel", { run: id }), wire.ok("cancel", { run: run.slice(0, 12) })]);
    expect(both).toEqual([reply, reply]);
    expect(await stage.settled(id)).toMatchObject({ state: "cancelled", terminal: true });
    expect(existsSync(worktree)).toBe(true);
    expect(await stage.value(id)).toMatchObject({ state: "ready", queued_triggers: [] });
    for (const ref of [id, `${id}-r1`, run]) {
      expectRefusal(
        await wire.refused("cancel", { run: ref }),
        "conflict",
        `${id}-r1`,
        "`cancelled`",
        "cannot be cancelled",
      );
    }
    expectRefusal(await wire.refused("cancel", { run: "TICK-1" }), "conflict", "TICK-1-r1", "`merged`");
  });
});

describe("7.2 restart", () => {
  test("7.2: draining, asked for twice, one event, called off by resume", async () => {
    const id = await running("drained");
    const { pid } = await wire.ok("daemon");
    const before = (await restarts()).length;
    for (let round = 0; round < 2; round += 1) {
      expect(await wire.ok("restart")).toEqual({ draining: true, active_runs: 1, pid });
    }
    expect((await wire.ok("status"))["daemon"]).toEqual({ pid, paused: false, draining: true });
    const waiting = await stage.post("waits-for-drain");
    expect((await stage.row(waiting))["reason"]).toBe("scheduler is draining for restart; cancel with `sloop resume`");
    const [event, ...more] = (await restarts()).slice(before);
    expect(more).toEqual([]);
    expect(event).toEqual({
      sequence: expect.any(Number),
      occurred_at_ms: expect.any(Number),
      kind: "daemon_restart_requested",
      run: null,
      ticket: null,
      data: { active_runs: 1 },
    });
    expect(await wire.ok("resume")).toEqual({ paused: false, restart_cancelled: true });
    expect(await wire.ok("resume")).toEqual({ paused: false, restart_cancelled: false });
    await stage.settled(waiting);
    stage.go(id);
    await stage.settled(id);
    expect((await wire.ok("daemon"))["pid"]).toBe(pid as number);
  });

  test("7.2, 2: nothing after it is served; the process stays, paused is kept, draining is not", async () => {
    await wire.ok("pause");
    const { pid } = await wire.ok("daemon");
    const started = () => stage.scene.events().filter(({ event }) => event === "daemon_started").length;
    const before = started();
    const all = await replies(wire.path, `${request("restart")}\n${request("resume")}\n`);
    expect(all).toMatchObject([{ ok: true, data: { draining: true, active_runs: 0, pid } }]);
    await until(() => started() > before && existsSync(wire.path), "the daemon to be back");
    expect(await wire.ok("status")).toMatchObject({ daemon: { pid, paused: true, draining: false } });
    expect(realpathSync(`/proc/${pid}/cwd`)).toBe(stage.scene.root);
    await wire.ok("resume");
  });
});

describe("7.3 stop", () => {
  test("7.3, 14.16: refused while runs are unsettled; forced it cancels them, answers, and they settle at the next start", async () => {
    const one = await running("zz-one");
    const two = await running("aa-two", `trap '' TERM; ${meet}`);
    for (const args of [{}, { force: false }]) {
      expectRefusal(await wire.refused("stop", args), "conflict", "2", `${one}-r1`, `${two}-r1`, "--force");
    }
    const { pid } = await wire.ok("daemon");
    const all = await replies(wire.path, `${request("stop", { force: true })}\n${request("daemon")}\n`);
    const cancelled_runs = [`${one}-r1`, `${two}-r1`].sort();
    expect(all).toMatchObject([{ ok: true, data: { stopping: true, pid, cancelled_runs } }]);
    expect(Object.keys(all[0]!.data!).sort()).toEqual(["cancelled_runs", "pid", "stopping"]);
    await until(() => !existsSync(wire.path), "the socket to be removed");
    await until(() => !existsSync(`/proc/${pid}/cwd`), "the process to exit");
    const states = stage.scene.query<{ state: string }>(
      `select state from runs where ticket_id in ('${one}', '${two}')`,
    );
    for (const { state } of states) expect(["running", "driving"]).toContain(state);
    await stage.scene.data(["daemon"]);
    for (const id of [one, two]) expect(await stage.settled(id)).toMatchObject({ state: "cancelled" });
  });

  test("7.3: without runs it needs no force, and the reply comes before the end", async () => {
    const { pid } = await wire.ok("daemon");
    expect(await wire.ok("stop")).toEqual({ stopping: true, pid, cancelled_runs: [] });
    await until(() => !existsSync(wire.path), "the socket to be removed");
    expect(await stage.scene.data(["stop"])).toEqual({ stopping: false, running: false });
    await stage.scene.data(["daemon"]);
  });
});

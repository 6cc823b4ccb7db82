// What an operator does to tickets and runs while the daemon works: hold, pause, cancel, retry, blockers, triggers.

import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { newScene, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

const reasonOf = async (scene: Scene, id: string) =>
  ((await scene.data(["list"]))["tickets"] as { id: string; reason: string | null }[]).find((row) => row.id === id)!
    .reason;

const running = (scene: Scene) =>
  until(
    () => scene.query<{ state: string }>("select state from runs order by rowid desc")[0]?.state === "running",
    "a running agent",
  );

async function refused(scene: Scene, args: string[]): Promise<{ code: string; message: string }> {
  const ran = await scene.sloop(["--json", ...args]);
  expect([ran.code, ran.stdout]).toEqual([1, ""]);
  return (JSON.parse(ran.stderr) as { error: { code: string; message: string } }).error;
}

const sleeper = `echo run >> "$COUNT/agent"; trap 'echo saved >> "$COUNT/saved"; exit 1' TERM
while [ ! -e "$COUNT/go" ]; do sleep 0.02; done; echo w >> w; git add -A; git commit -qm work`;

describe("cancel", () => {
  test("ends the agent politely, keeps branch and worktree, queues nothing", async () => {
    await using scene = await newScene({ agent: sleeper });
    await scene.post("first");
    await running(scene);
    await until(() => scene.count("agent") === 1, "the trap to be set");
    const reply = await scene.data(["cancel", "TICK-1"]);
    expect(reply).toMatchObject({ alias: "TICK-1-r1", state: "cancelling", preserved: true });
    expect(await scene.wait("TICK-1-r1")).toBe(1);
    expect(scene.count("saved")).toBe(1);
    const run = await scene.value("TICK-1-r1");
    expect(run).toMatchObject({ state: "cancelled" });
    expect(existsSync(run["worktree"] as string)).toBe(true);
    expect(await scene.value("TICK-1")).toMatchObject({ state: "ready", queued_triggers: [] });
    expect(await reasonOf(scene, "TICK-1")).toBe("ready but no queued trigger; enqueue with `sloop run`");
    expect(await refused(scene, ["cancel", "TICK-1-r1"])).toMatchObject({ code: "conflict" });
  }, 60_000);

  test("kills an agent that will not go, and everything it started", async () => {
    const stubborn = `trap '' TERM; sleep 300 & setsid sleep 301 & echo run >> "$COUNT/agent"; while :; do sleep 0.02; done`;
    await using scene = await newScene({ agent: stubborn, config: "scheduler: { cancel_grace: 1s }" });
    await scene.post("first");
    await running(scene);
    await until(() => scene.count("agent") === 1, "the agent");
    await scene.data(["cancel", "TICK-1-r1"]);
    expect(await scene.wait("TICK-1-r1")).toBe(1);
    expect(await scene.value("TICK-1-r1")).toMatchObject({ state: "cancelled" });
    expect(Bun.spawnSync(["pgrep", "-f", scene.outside]).exitCode).toBe(1);
    expect(Bun.spawnSync(["pgrep", "-x", "-f", "sleep 301"]).exitCode).toBe(1);
  }, 60_000);
});

describe("stop", () => {
  test("is refused while a run is active, and with --force cancels it; it settles at the next start", async () => {
    await using scene = await newScene({ agent: sleeper });
    await scene.post("first");
    await running(scene);
    const refusal = await refused(scene, ["stop"]);
    expect(refusal.code).toBe("conflict");
    expect(refusal.message).toMatch(/1 run .*TICK-1-r1.*--force/);
    const pid = scene.daemonPid();
    expect(await scene.data(["stop", "--force"])).toMatchObject({ stopping: true, pid, cancelled_runs: ["TICK-1-r1"] });
    await until(() => !existsSync(`/proc/${pid}/cwd`), "the daemon to exit");
    expect(existsSync(join(scene.dir, "run/sloop"))).toBe(true);
    expect(await scene.data(["stop"])).toEqual({ stopping: false, running: false });
    expect(await scene.wait("TICK-1-r1")).toBe(1);
    expect(await scene.value("TICK-1-r1")).toMatchObject({ state: "cancelled" });
  }, 60_000);
});

describe("gates", () => {
  test("a paused daemon dispatches nothing, also after a restart; resume lets it go", async () => {
    await using scene = await newScene();
    await scene.data(["pause"]);
    await scene.post("first");
    expect(await reasonOf(scene, "TICK-1")).toBe("scheduler is paused; resume with `sloop resume`");
    await scene.killDaemon();
    expect(await reasonOf(scene, "TICK-1")).toBe("scheduler is paused; resume with `sloop resume`");
    expect(scene.query("select * from runs")).toEqual([]);
    expect(await scene.data(["resume"])).toEqual({ paused: false, restart_cancelled: false });
    expect(await scene.wait("TICK-1")).toBe(0);
  }, 60_000);

  test("a held ticket waits for ready; holding and releasing twice is no error", async () => {
    await using scene = await newScene();
    await scene.post("first", "", ["--hold"]);
    expect(await reasonOf(scene, "TICK-1")).toBe("held by operator; release with `sloop ready`");
    expect(await scene.data(["hold", "TICK-1"])).toMatchObject({ overridden: false, state: "held" });
    expect((await refused(scene, ["run", "TICK-1"])).message).toContain("`sloop ready TICK-1`");
    expect(await scene.data(["ready", "TICK-1"])).toMatchObject({
      overridden: true,
      previous_state: "held",
      state: "ready",
    });
    expect(scene.query("select * from runs")).toEqual([]);
    await scene.data(["run", "TICK-1"]);
    expect(await scene.wait("TICK-1")).toBe(0);
    expect((await refused(scene, ["hold", "TICK-1"])).message).toMatch(/`TICK-1`.*`merged`.*`held`/);
  }, 60_000);

  test("a blocked ticket waits until its last blocker is merged", async () => {
    await using scene = await newScene({ agent: `${sleeper}\n` });
    await scene.post("first");
    await scene.post("second", "blocked_by: [TICK-1]");
    await running(scene);
    expect(await reasonOf(scene, "TICK-2")).toBe("blocked by unmerged TICK-1");
    await Bun.write(join(scene.outside, "go"), "");
    expect(await scene.wait("TICK-1")).toBe(0);
    await until(() => scene.query("select 1 from runs where ticket_id = 'TICK-2'").length > 0, "the second run");
    expect(await scene.wait("TICK-2")).toBe(0);
    expect(scene.query<{ ticket_id: string }>("select ticket_id from runs order by rowid")).toEqual([
      { ticket_id: "TICK-1" },
      { ticket_id: "TICK-2" },
    ]);
  }, 60_000);

  test("never more runs at once than max_parallel_tasks", async () => {
    await using scene = await newScene({ agent: sleeper, config: "scheduler: { max_parallel_tasks: 2 }" });
    for (const stem of ["a", "b", "c"]) await scene.post(stem);
    await until(() => scene.count("agent") === 2, "two agents");
    expect(await reasonOf(scene, "TICK-3")).toBe("all agent slots are busy");
    expect((await scene.data(["status"]))["gate"]).toMatchObject({ active_agents: 2, max_agents: 2 });
    await Bun.write(join(scene.outside, "go"), "");
    for (const id of ["TICK-1", "TICK-2"]) await scene.wait(id);
    await until(() => scene.query("select 1 from runs where ticket_id = 'TICK-3'").length > 0, "the third run");
    await scene.wait("TICK-3");
    expect(scene.count("agent")).toBe(3);
  }, 60_000);

  test("retry makes a failed ticket ready and queues nothing; run then starts attempt 2", async () => {
    await using scene = await newScene({
      agent:
        'if [ -e "$COUNT/once" ]; then echo w >> w; git add -A; git commit -qm w; else touch "$COUNT/once"; exit 1; fi',
    });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    expect(await reasonOf(scene, "TICK-1")).toBe("failed after 1 attempt(s); requeue with `sloop retry`");
    expect(await scene.data(["retry", "TICK-1"])).toEqual({
      ticket: "TICK-1",
      previous_state: "failed",
      state: "ready",
    });
    expect(await reasonOf(scene, "TICK-1")).toBe("ready but no queued trigger; enqueue with `sloop run`");
    await scene.data(["run", "TICK-1"]);
    await until(() => scene.query("select 1 from runs where attempt = 2").length > 0, "the second attempt");
    expect(await scene.wait("TICK-1-r2")).toBe(0);
    const ran = await scene.sloop(["logs", "TICK-1"]);
    expect(ran.stdout).toStartWith("showing TICK-1-r2; earlier attempts: r1\n");
  }, 60_000);
});

describe("silence", () => {
  test("an agent that says nothing for stall_after is ended, and the run failed", async () => {
    await using scene = await newScene({
      agent: "echo hello; sleep 300",
      config: "scheduler: { stall_report_after: 1s, stall_after: 2s, cancel_grace: 1s }",
    });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    expect(await scene.value("TICK-1-r1")).toMatchObject({
      state: "failed",
      reason: "stalled: no output for 2s",
      stall: { stage: "build", threshold_ms: 2000, last_output_sequence: 1 },
    });
    const warned = scene.events().filter((line) => line.event === "run_output_stalled");
    expect(warned).toHaveLength(1);
  }, 60_000);
});

describe("wait", () => {
  test("on a ticket that is queued waits for its first run; one that nothing asks for is refused", async () => {
    await using scene = await newScene({ agent: sleeper });
    await scene.post("first");
    await until(() => scene.count("agent") === 1, "the agent");
    await scene.post("second");
    const waiting = scene.wait("TICK-2");
    await scene.post("third", "", ["--manual"]);
    const refusal = await scene.sloop(["wait", "TICK-3"]);
    expect(refusal.code).toBe(1);
    expect(refusal.stderr).toContain("has no runs yet");
    expect(refusal.stderr).toContain("`sloop list` says why");
    await Bun.write(join(scene.outside, "go"), "");
    expect(await waiting).toBe(0);
  }, 60_000);
});

describe("post", () => {
  test("says when the agent's program is not there, and posts all the same", async () => {
    await using scene = await newScene();
    scene.write(
      ".agents/sloop/config.yaml",
      'version: 1\nagent: { default_target: x, targets: { x: { cmd: [no-such-agent-program, "{prompt}"] } } }\n',
    );
    const ran = await scene.sloop(["post", scene.ticket("first"), "--manual"]);
    expect(ran.code).toBe(0);
    expect(ran.stderr).toContain("agent target `x` starts `no-such-agent-program`, which is not on your PATH");
  }, 60_000);
});

describe("daemon restart", () => {
  test("is refused while the configuration is broken, and the daemon serves on", async () => {
    await using scene = await newScene();
    const { pid } = await scene.data(["daemon"]);
    scene.write(".agents/sloop/flows/broken.yaml", "stages: 7\n");
    const ran = await scene.sloop(["daemon", "restart"]);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain("broken.yaml");
    expect(await scene.data(["daemon"])).toMatchObject({ pid, started: false });
    expect((await scene.data(["status"]))["daemon"]).toMatchObject({ draining: false });
  }, 60_000);
});

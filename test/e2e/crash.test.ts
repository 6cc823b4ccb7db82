// kill -9 of the daemon at every pause point of a run: the next command's daemon ends it as if nothing had happened.

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { arm, disarm, hookEnv, newScene, reached, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

const agent = `
echo run >> "$COUNT/agent"
echo "before the kill"
while [ ! -e "$COUNT/go" ]; do sleep 0.01; done
sloop brief > "$COUNT/brief" 2>&1
echo work >> work.txt; git add -A; git commit -qm work
echo "after the kill"
`;
const flow = `
stages:
  - name: build
    action: agent
  - name: verify
    action: { exec: [sh, -c, 'echo run >> OUTSIDE/verify; echo verifying'] }
    result_check: { exec: [sh, -c, 'echo run >> OUTSIDE/check; echo checking'] }
  - name: merge
    action: { builtin: merge }
`;

/** Everything a run leaves that may not depend on how often its daemon died. */
async function outcomeOf(scene: Scene) {
  const run = await scene.value("TICK-1-r1");
  const records = scene.records(run["id"] as string);
  return {
    state: run["state"],
    halt: run["halt"],
    stages: (run["stages"] as Record<string, unknown>[]).map((row) => [
      row["stage"],
      row["state"],
      row["attempt"],
      row["exit_code"],
    ]),
    rows: scene.query("select seq, stage_index, stage, state, attempt, phase, exit_code from stage_runs order by seq"),
    output: records.map((record) => [record["sequence"], record["source"], record["stage"], record["text"]]),
    agents: scene.count("agent"),
    verifies: scene.count("verify"),
    checks: scene.count("check"),
    commits: scene.git("log", "--format=%s", "main"),
    events: scene.query("select kind from events order by sequence"),
    leases: scene.query("select * from leases"),
    left: scene.query("select kind from run_evidence where kind = 'stage_process'"),
  };
}

const uninterrupted = {
  state: "merged",
  halt: null,
  stages: [
    ["build", "passed", 1, 0],
    ["verify", "passed", 1, 0],
    ["merge", "passed", 1, 0],
  ],
  rows: [
    { seq: 1, stage_index: 0, stage: "build", state: "passed", attempt: 1, phase: "action", exit_code: 0 },
    { seq: 2, stage_index: 1, stage: "verify", state: null, attempt: 1, phase: "action", exit_code: 0 },
    { seq: 3, stage_index: 1, stage: "verify", state: "passed", attempt: 1, phase: "check", exit_code: 0 },
    { seq: 4, stage_index: 2, stage: "merge", state: "passed", attempt: 1, phase: "action", exit_code: 0 },
  ],
  output: [
    [1, "agent", "build", "before the kill\n"],
    [2, "agent", "build", "after the kill\n"],
    [3, "stage", "verify", "verifying\n"],
    [4, "stage", "verify", "checking\n"],
  ],
  agents: 1,
  verifies: 1,
  checks: 1,
  commits: "work\nfirst",
  events: [{ kind: "run_claimed" }, { kind: "run_started" }, { kind: "run_finished" }],
  leases: [],
  left: [],
};

async function begin(hook: string): Promise<Scene> {
  const scene = await newScene({ agent, flows: { default: flow } });
  arm(scene, hook);
  await scene.data(["post", scene.ticket("first")], hookEnv(scene));
  return scene;
}

const go = async (scene: Scene) => {
  await until(() => scene.count("agent") > 0, "the agent to have begun");
  await Bun.write(`${scene.outside}/go`, "");
};

function childrenOf(pid: number): number[] {
  const listed = Bun.spawnSync(["pgrep", "-P", String(pid)])
    .stdout.toString()
    .trim();
  return listed === "" ? [] : listed.split("\n").map(Number);
}

function exitRecords(scene: Scene): number {
  const folder = join(scene.stateDir(), "runs");
  const found = [...new Bun.Glob("*/exits/*.json").scanSync({ cwd: folder })];
  return found.filter((name) => !name.endsWith(".start.json")).length;
}

const points = [
  "before-spawn-capacity-reconciliation",
  "after-run-liveness-reconciliation",
  "before-stage-process-checkpoint-build",
  "before-agent-exit-checkpoint",
  "after-agent-exit-checkpoint",
  "after-stage-build",
  "before-stage-process-checkpoint-verify",
  "after-stage-process-checkpoint-verify",
  "after-stage-verify",
  "after-stage-process-checkpoint-merge",
  "after-successful-merge-process-exit",
  "after-stage-merge",
];

describe("a daemon killed at", () => {
  test.each(points)(
    "%s",
    async (hook) => {
      await using scene = await begin(hook);
      const early = hook.endsWith("reconciliation") || hook.endsWith("checkpoint-build");
      if (!early) await go(scene);
      await reached(scene, hook);
      await scene.killDaemon();
      disarm(scene, hook);
      await scene.data(["status"]);
      if (early) await go(scene);
      await until(
        async () =>
          (await scene.data(["list"]))["tickets"] !== undefined && scene.query("select 1 from runs").length > 0,
        "the run",
      );
      expect(await scene.wait("TICK-1")).toBe(0);
      expect(await outcomeOf(scene)).toEqual(uninterrupted);
    },
    60_000,
  );

  test("nothing: the same run undisturbed", async () => {
    await using scene = await begin("none");
    await go(scene);
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(await outcomeOf(scene)).toEqual(uninterrupted);
  }, 60_000);
});

describe("a daemon killed while the agent runs", () => {
  test("the agent's own socket is served again, and what it printed while nobody was there is complete", async () => {
    await using scene = await begin("none");
    await until(() => scene.count("agent") > 0, "the agent to have begun");
    await scene.killDaemon();
    await scene.data(["status"]);
    await go(scene);
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(await outcomeOf(scene)).toEqual(uninterrupted);
    expect(await Bun.file(`${scene.outside}/brief`).text()).toContain('"result_check":"commits"');
  }, 60_000);

  test("an agent that ended while no daemon was up is not run again", async () => {
    await using scene = await begin("none");
    await until(() => scene.count("agent") > 0, "the agent to have begun");
    await scene.killDaemon();
    await go(scene);
    await until(() => scene.git("branch", "--list", "sloop/*", "--contains", "main").length > 0, "the branch");
    await until(() => Bun.spawnSync(["pgrep", "-f", `${scene.outside}/agent.sh`]).exitCode !== 0, "the agent to end");
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(await outcomeOf(scene)).toEqual(uninterrupted);
  }, 60_000);

  test("and its supervisor too: the run is orphaned, the ticket ready, nothing queued, the agent gone", async () => {
    await using scene = await begin("none");
    await until(() => scene.count("agent") > 0, "the agent to have begun");
    await until(
      () => scene.query<{ state: string }>("select state from runs")[0]?.state === "running",
      "the checkpoint",
    );
    const ours = childrenOf(scene.daemonPid());
    expect(ours).toHaveLength(1);
    await scene.killDaemon();
    process.kill(ours[0]!, "SIGKILL");
    const { pid } = scene.query<{ pid: number }>("select pid from runs")[0]!;
    process.kill(-pid, "SIGKILL");
    expect(await scene.wait("TICK-1-r1")).toBe(1);
    expect(await scene.value("TICK-1-r1")).toMatchObject({ state: "orphaned", exit_code: null });
    expect(await scene.value("TICK-1")).toMatchObject({ state: "ready", queued_triggers: [] });
  }, 60_000);
});

describe("a daemon killed before an agent was made known", () => {
  test("and the agent ended meanwhile: its exit comes from the record, and the walk goes on", async () => {
    await using scene = await begin("before-stage-process-checkpoint-build");
    await reached(scene, "before-stage-process-checkpoint-build");
    await go(scene);
    await until(() => exitRecords(scene) === 1, "the exit record");
    await scene.killDaemon();
    disarm(scene, "before-stage-process-checkpoint-build");
    await scene.data(["status"]);
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(await outcomeOf(scene)).toEqual(uninterrupted);
  }, 60_000);

  test("and the agent and its supervisor were killed: orphaned, not tried for ever", async () => {
    await using scene = await begin("before-stage-process-checkpoint-build");
    await reached(scene, "before-stage-process-checkpoint-build");
    await until(() => scene.count("agent") > 0, "the agent to have begun");
    const supervisor = childrenOf(scene.daemonPid());
    await scene.killDaemon();
    for (const pid of supervisor) {
      for (const child of childrenOf(pid)) process.kill(-child, "SIGKILL");
      process.kill(pid, "SIGKILL");
    }
    disarm(scene, "before-stage-process-checkpoint-build");
    await scene.data(["status"]);
    expect(await scene.wait("TICK-1-r1")).toBe(1);
    expect(await scene.value("TICK-1-r1")).toMatchObject({ state: "orphaned" });
  }, 60_000);
});

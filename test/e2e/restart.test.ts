// `daemon restart`: the runs that are going finish, then the same pid runs whatever program stands at its path.

import { describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { processAlive } from "../../src/system/process.ts";
import { bin, command } from "../support/bin.ts";
import { newScene, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

const sleeper = `echo run >> "$COUNT/agent"; while [ ! -e "$COUNT/go" ]; do sleep 0.02; done; echo w > "w-$SLOOP_RUN_ID"; git add -A; git commit -qm work`;
const starts = (scene: Scene) => scene.events().filter((line) => line.event === "daemon_started").length;

describe("daemon restart", () => {
  test("waits for the run that is going, starts nothing new, and comes back with the same pid", async () => {
    await using scene = await newScene({ agent: sleeper });
    await scene.post("first");
    await until(() => scene.count("agent") === 1, "the agent");
    const { pid } = await scene.data(["daemon"]);
    const ran = await scene.sloop(["daemon", "restart"]);
    expect(ran).toEqual({ code: 0, stdout: "daemon draining for restart (1 run active)\n", stderr: "" });
    expect(await scene.data(["daemon", "restart"])).toEqual({ draining: true, active_runs: 1, pid });
    await scene.post("second");
    const rows = (await scene.data(["list"]))["tickets"] as { id: string; reason: string }[];
    expect(rows.find((row) => row.id === "TICK-2")!.reason).toBe(
      "scheduler is draining for restart; cancel with `sloop resume`",
    );
    expect((await scene.sloop(["status"])).stdout).toContain("draining - 1/1 agents active");
    expect(scene.query("select kind from events where kind = 'daemon_restart_requested'")).toHaveLength(1);
    await Bun.write(join(scene.outside, "go"), "");
    await until(() => starts(scene) === 2, "the successor");
    expect(await scene.data(["daemon"])).toMatchObject({ pid });
    await until(() => scene.query("select 1 from runs where ticket_id = 'TICK-2'").length > 0, "the second run");
    expect(await scene.wait("TICK-2")).toBe(0);
    expect((await scene.data(["status"]))["daemon"]).toMatchObject({ pid, draining: false });
    const zombies = Bun.spawnSync(["ps", "-o", "stat=", "--ppid", String(pid)]).stdout.toString();
    expect(zombies).not.toContain("Z");
  }, 60_000);

  test("and a stop right behind it: the daemon is gone, and nobody says that none was running", async () => {
    await using scene = await newScene();
    await scene.data(["daemon"]);
    for (let round = 0; round < 3; round += 1) {
      await scene.data(["daemon", "restart"]);
      const pid = scene.daemonPid();
      expect(await scene.data(["stop"])).toMatchObject({ stopping: true });
      await until(() => !processAlive(pid), "the daemon to be gone");
      await scene.data(["daemon"]);
    }
  }, 60_000);

  test("is called off by resume", async () => {
    await using scene = await newScene({ agent: sleeper });
    await scene.post("first");
    await until(() => scene.count("agent") === 1, "the agent");
    await scene.data(["daemon", "restart"]);
    expect((await scene.sloop(["resume"])).stdout).toBe("scheduler resumed\npending restart cancelled\n");
    await Bun.write(join(scene.outside, "go"), "");
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(starts(scene)).toBe(1);
    expect((await scene.data(["status"]))["daemon"]).toMatchObject({ draining: false });
  }, 60_000);

  test("follows a link that was turned to another file; without a daemon it starts one", async () => {
    await using scene = await newScene();
    const versions = join(scene.dir, "versions");
    const link = join(scene.dir, "bin/sloop");
    mkdirSync(versions);
    mkdirSync(join(scene.dir, "bin"));
    copyFileSync(await bin(), join(versions, "one"));
    symlinkSync(join(versions, "one"), link);
    const run = (args: string[]) => command([link, "--json", ...args], { cwd: scene.root, env: scene.env });
    const data = async (args: string[]) =>
      (JSON.parse((await run(args)).stdout) as { data: Record<string, unknown> }).data;
    const started = await data(["daemon", "restart"]);
    expect(started).toMatchObject({ started: true, active_runs: 0 });
    copyFileSync(await bin(), join(versions, "two"));
    rmSync(link);
    symlinkSync(join(versions, "two"), link);
    rmSync(join(versions, "one"));
    await data(["daemon", "restart"]);
    await until(() => starts(scene) === 2, "the successor");
    expect((await data(["daemon"]))["pid"]).toBe(started["pid"]);
    const image = Bun.spawnSync(["readlink", `/proc/${started["pid"]}/exe`])
      .stdout.toString()
      .trim();
    expect(image).toBe(join(versions, "two"));
  }, 60_000);

  test("that cannot start its successor serves on", async () => {
    await using scene = await newScene();
    const own = join(scene.dir, "own-sloop");
    copyFileSync(await bin(), own);
    const run = (args: string[]) => command([own, "--json", ...args], { cwd: scene.root, env: scene.env });
    const first = JSON.parse((await run(["daemon"])).stdout) as { data: { pid: number } };
    renameSync(own, `${own}.good`);
    writeFileSync(own, "no program at all");
    expect((await scene.sloop(["daemon", "restart"])).code).toBe(0);
    await until(() => scene.events().some((line) => line.event === "restart_exec_failed"), "the failure");
    await until(() => starts(scene) === 2, "the daemon to serve again");
    expect(await scene.data(["daemon"])).toMatchObject({ pid: first.data.pid });
    expect((await scene.data(["status"]))["daemon"]).toMatchObject({ draining: false });
    expect(readFileSync(own, "utf8")).toBe("no program at all");
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
  }, 60_000);
});

// Odd repositories: each gives a clear answer, and nothing is lost or left behind.

import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { sloop } from "../support/bin.ts";
import { newScene, put, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

const reasonOf = async (scene: Scene, id: string) =>
  ((await scene.data(["list"]))["tickets"] as { id: string; reason: string | null }[]).find((row) => row.id === id)!
    .reason;

describe("a repository", () => {
  test("with spaces and umlauts in its path works to the end", async () => {
    await using scene = await newScene({ name: "mein Projekt (ünï) $HOME 'x'" });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(scene.read("work-TICK-1")).toBe("work\n");
  }, 60_000);

  test("without a commit keeps the ticket ready and says why; a first commit lets it run", async () => {
    await using scene = await newScene({ git: "empty" });
    await scene.post("first");
    const why = "no target branch (HEAD has no commit yet); check out a branch or set `merge.target`";
    expect(await reasonOf(scene, "TICK-1")).toBe(why);
    expect(scene.query("select attempts from tickets")).toEqual([{ attempts: 0 }]);
    scene.commit("first");
    await until(async () => (await scene.data(["list"])) && scene.query("select 1 from runs").length > 0, "the run");
    expect(await scene.wait("TICK-1")).toBe(0);
  }, 60_000);

  test("with a detached HEAD keeps the ticket ready and says why", async () => {
    await using scene = await newScene();
    scene.git("checkout", "-q", "--detach");
    await scene.post("first");
    const why = "no target branch (HEAD is detached); check out a branch or set `merge.target`";
    expect(await reasonOf(scene, "TICK-1")).toBe(why);
    expect(scene.query("select 1 from runs")).toEqual([]);
    scene.git("checkout", "-q", "main");
    await until(async () => (await scene.data(["list"])) && scene.query("select 1 from runs").length > 0, "the run");
    expect(await scene.wait("TICK-1")).toBe(0);
  }, 60_000);

  test("whose merge.target is missing says so", async () => {
    await using scene = await newScene({ config: "merge: { target: nowhere }" });
    await scene.post("first");
    expect(await reasonOf(scene, "TICK-1")).toBe(
      "no target branch (branch `nowhere` is missing); check out a branch or set `merge.target`",
    );
  }, 60_000);

  test("without .git is refused before anything is made", async () => {
    await using scene = await newScene({ git: "none" });
    const ran = await scene.sloop(["post", scene.ticket("first")]);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain("git init");
    expect(existsSync(join(scene.dir, "state/sloop"))).toBe(false);
  }, 60_000);

  test("that loses its .git stops its daemon", async () => {
    await using scene = await newScene();
    await scene.data(["status"]);
    const pid = scene.daemonPid();
    rmSync(join(scene.root, ".git"), { recursive: true });
    await until(() => !existsSync(`/proc/${pid}/cwd`), "the daemon to stop");
    expect(scene.events().map((line) => line.event)).toContain("project_root_missing");
  }, 60_000);

  test("whose .agents is a symlink works", async () => {
    await using scene = await newScene();
    renameSync(join(scene.root, ".agents"), join(scene.root, "kept"));
    symlinkSync("kept", join(scene.root, ".agents"));
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
  }, 60_000);

  test("run worktrees stay out of git status and out of git add -A", async () => {
    await using scene = await newScene({ agent: "exit 1" });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    scene.commit("everything");
    expect(scene.git("ls-files", ".worktrees")).toBe("");
  }, 60_000);

  test("that is a shallow clone works", async () => {
    await using scene = await newScene();
    scene.commit("with the setup");
    const clone = join(scene.dir, "shallow");
    Bun.spawnSync(["git", "clone", "-q", "--depth", "1", `file://${scene.root}`, clone]);
    for (const [key, value] of [
      ["user.name", "T"],
      ["user.email", "t@example.invalid"],
    ]) {
      Bun.spawnSync(["git", "config", key!, value!], { cwd: clone });
    }
    put(join(clone, ".agents/sloop/tickets/first.md"), "---\nname: First\nblocked_by: []\n---\nDo it.\n");
    const run = (args: string[]) => sloop(args, { cwd: clone, env: scene.env });
    expect((await run(["post", ".agents/sloop/tickets/first.md"])).code).toBe(0);
    expect((await run(["wait", "TICK-1", "--timeout", "50"])).code).toBe(0);
  }, 60_000);

  test("with a submodule works", async () => {
    await using scene = await newScene();
    const module = join(scene.dir, "module");
    Bun.spawnSync(["git", "init", "-q", "-b", "main", module]);
    const commit = [
      "-c",
      "user.name=T",
      "-c",
      "user.email=t@example.invalid",
      "commit",
      "-q",
      "--allow-empty",
      "-m",
      "m",
    ];
    Bun.spawnSync(["git", ...commit], { cwd: module });
    scene.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", module, "sub");
    scene.commit("submodule");
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
  }, 60_000);
});

describe("two daemons", () => {
  test("started together: one serves, the other leaves without a word", async () => {
    await using scene = await newScene();
    const replies = await Promise.all(Array.from({ length: 4 }, () => scene.data(["daemon"])));
    expect(new Set(replies.map((reply) => reply["pid"])).size).toBe(1);
    expect(replies.filter((reply) => reply["started"] === true).length).toBeLessThanOrEqual(1);
    const second = await scene.sloop(["daemon", "--foreground"]);
    expect(second).toEqual({ code: 0, stdout: "", stderr: "" });
  }, 60_000);

  test("another runtime directory reaches the same daemon", async () => {
    await using scene = await newScene();
    const { pid } = await scene.data(["daemon"]);
    const other = join(scene.dir, "other-run");
    mkdirSync(other, { mode: 0o700 });
    expect(await scene.data(["daemon"], { XDG_RUNTIME_DIR: other })).toMatchObject({ pid, started: false });
  }, 60_000);

  test("sockets and state are private whatever the umask", async () => {
    await using scene = await newScene({
      agent: 'echo run >> "$COUNT/agent"; while [ ! -e "$COUNT/go" ]; do sleep 0.02; done',
    });
    const bin = await import("../support/bin.ts").then((it) => it.bin());
    Bun.spawnSync(["sh", "-c", `umask 000; "${bin}" post ${scene.ticket("first")}`], {
      cwd: scene.root,
      env: { ...process.env, ...scene.env } as Record<string, string>,
    });
    await until(() => scene.count("agent") === 1, "the agent");
    const modes = Bun.spawnSync([
      "sh",
      "-c",
      `cd "${scene.dir}/run" && find sloop -printf '%m %y\\n' | sort -u`,
    ]).stdout.toString();
    expect(modes).toBe("600 s\n700 d\n");
    expect(Bun.spawnSync(["stat", "-c", "%a", scene.stateDir()]).stdout.toString()).toBe("700\n");
    expect(Bun.spawnSync(["stat", "-c", "%a", join(scene.stateDir(), "sloop.db")]).stdout.toString()).toBe("600\n");
    await scene.data(["stop", "--force"]);
  }, 60_000);
});

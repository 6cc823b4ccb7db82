// `sloop demo`: both tickets merged, and nothing left behind, however it ends.

import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { bin, command } from "../support/bin.ts";
import { openPty } from "../support/pty.ts";
import { newWorld, processesIn, type World } from "../support/repo.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(60_000);

/** A world without a repository whose temporary directory is its own. */
async function place(): Promise<World & { tmp: string }> {
  const world = await newWorld({ git: "none" });
  const tmp = join(world.dir, "t");
  mkdirSync(tmp);
  const env = { ...world.env, TMPDIR: tmp };
  return {
    ...world,
    env,
    tmp,
    sloop: (args, extra = {}) => world.sloop(args, { ...extra, env: { ...env, ...extra.env } }),
  };
}

const demoProcesses = (world: { dir: string }) => processesIn(join(world.dir, "t"));

test("merges both, the second after its test failed once, and leaves nothing, whatever the surroundings say", async () => {
  await using world = await place();
  const surroundings = {
    HOME: "/nonexistent",
    GIT_DIR: "/nonexistent/.git",
    GIT_AUTHOR_NAME: "",
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "commit.gpgsign",
    GIT_CONFIG_VALUE_0: "true",
    SLOOP_SOCKET: "/nonexistent.sock",
    SLOOP_TOKEN: "x",
    SLOOP_TEST_CLOCK_PATH: "/nonexistent",
  };
  const ran = await world.sloop(["demo"], { env: surroundings });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const lines = ran.stdout.split("\n");
  expect(lines).toContain("TICK-2  Greet by name    ready    waits for TICK-1");
  expect(lines).toContain("TICK-1  Greet the world  merged   build:ok -> merge:ok");
  expect(lines).toContain(
    "TICK-2  Greet by name    merged   build:ok -> build#2:ok -> test:FAIL -> test#2:ok -> merge:ok",
  );
  expect(ran.stdout).toContain("both tickets are merged:\n  stage test of TICK-2 failed once");
  expect(ran.stdout).toMatch(/git log --graph --oneline main:\n(\*.*\n){4}/);
  expect(readdirSync(world.tmp)).toEqual([]);
  expect(existsSync(join(world.dir, "state/sloop"))).toBe(false);
  expect(demoProcesses(world)).toEqual([]);
});

test("--json says where and how it ended; --keep leaves it to be looked at", async () => {
  await using world = await place();
  const ran = await world.sloop(["demo", "--keep", "--json"]);
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const { id, ok, data } = JSON.parse(ran.stdout);
  expect({ id, ok }).toEqual({ id: null, ok: true });
  expect(data).toEqual({
    directory: join(world.tmp, readdirSync(world.tmp)[0]!),
    kept: true,
    tickets: [
      { id: "TICK-1", name: "Greet the world", state: "merged", run: "TICK-1-r1" },
      { id: "TICK-2", name: "Greet by name", state: "merged", run: "TICK-2-r1" },
    ],
  });
  expect(demoProcesses(world)).toEqual([]);
  const greet = Bun.spawnSync(["sh", join(data.directory, "project/greet.sh"), "Ada"]);
  expect(greet.stdout.toString()).toBe("hello, Ada\n");
});

test("what --keep leaves can be gone on with as the text says", async () => {
  await using world = await place();
  const ran = await world.sloop(["demo", "--keep"]);
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const text = ran.stdout.slice(ran.stdout.indexOf("left in place: "));
  const typed = [...text.matchAll(/^ {2}(.*)$/gm)].map(([, line]) => line!);
  expect(typed).toHaveLength(4);
  const [last = ""] = typed.splice(-1);
  const folder = join(world.dir, "bin");
  mkdirSync(folder);
  symlinkSync(await bin(), join(folder, "sloop"));
  const env = { ...world.env, PATH: `${folder}:${process.env["PATH"]}` };
  const shown = await command(["sh", "-e", "-c", [...typed, "sloop list", last].join("\n")], { env });
  expect(shown).toMatchObject({ code: 0, stderr: "" });
  expect(shown.stdout).toContain("TICK-2  merged  Greet by name\nTICK-1  merged  Greet the world\ndaemon stopping");
  await until(() => demoProcesses(world).length === 0, "the kept world's daemon to end");
  expect(existsSync(text.split("\n")[0]!.slice("left in place: ".length))).toBe(false);
});

test("a terminal sees two lines that change in place", async () => {
  await using world = await place();
  const pty = await openPty(["demo"], { cwd: world.root, env: world.env });
  expect(await pty.exited).toBe(0);
  expect(pty.text()).toContain("\x1b[2A\x1b[2KTICK-1");
  expect(pty.text()).toContain("test:\x1b[31mFAIL\x1b[0m → test#2:\x1b[32mok\x1b[0m");
});

test.each(["SIGINT", "SIGTERM"] as const)("%s stops everything and cleans up", async (signal) => {
  await using world = await place();
  const child = Bun.spawn([await bin(), "demo"], {
    cwd: world.root,
    env: { ...process.env, ...world.env } as Record<string, string>,
    stdout: Bun.file(join(world.dir, "out")),
    stderr: "pipe",
  });
  await until(() => readFileSync(join(world.dir, "out"), "utf8").includes("TICK-1"), "the show to begin");
  child.kill(signal);
  expect(await child.exited).toBe(signal === "SIGINT" ? 130 : 143);
  expect(await child.stderr.text()).toBe("");
  expect(readdirSync(world.tmp)).toEqual([]);
  // A supervisor that was still waiting for its first word sees a moment later that nobody is left to say it.
  await until(() => demoProcesses(world).length === 0, "everything to end");
});

test("without git it says so and leaves nothing", async () => {
  await using world = await place();
  const ran = await world.sloop(["demo"], { env: { PATH: "/nonexistent" } });
  expect(ran).toMatchObject({ code: 1, stdout: "" });
  expect(ran.stderr).toStartWith("error (internal): cannot run git: ");
  expect(readdirSync(world.tmp)).toEqual([]);
});

test("a temporary directory too deep for sockets is not used", async () => {
  await using world = await place();
  const deep = join(world.tmp, "a-very-long-name-for-a-temporary-directory");
  mkdirSync(deep);
  const ran = await world.sloop(["--json", "demo"], { env: { TMPDIR: deep } });
  expect(ran.code).toBe(0);
  const { directory } = JSON.parse(ran.stdout).data;
  expect(directory).toStartWith("/tmp/sloop-demo-");
  expect(existsSync(directory)).toBe(false);
});

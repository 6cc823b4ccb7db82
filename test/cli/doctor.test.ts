// `sloop doctor`: each thing that would stop or spoil a run is found, and nothing where there is nothing.

import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { sloop } from "../support/bin.ts";
import { newWorld, processesIn, type World } from "../support/repo.ts";
import { newScene } from "../support/scene.ts";

setDefaultTimeout(60_000);

type Found = { check: string; severity: string; message: string; why: string; fix: string };

async function findings(world: Pick<World, "sloop">, env: Record<string, string | undefined> = {}) {
  const ran = await world.sloop(["--json", "doctor"], { env });
  const envelope = JSON.parse(ran.stdout) as { id: null; ok: true; data: { findings: Found[] } };
  expect(envelope).toMatchObject({ id: null, ok: true });
  expect(ran.stderr).toBe("");
  const found = envelope.data.findings;
  expect(ran.code).toBe(found.some(({ severity }) => severity === "error") ? 1 : 0);
  for (const finding of found) {
    expect(Object.keys(finding)).toEqual(["check", "severity", "message", "why", "fix"]);
    for (const text of Object.values(finding)) expect(text).not.toBe("");
  }
  return found.filter(({ check }) => check !== "disk space").map(({ check, severity }) => `${severity} ${check}`);
}

test("a good repository has nothing to say, and nothing is started or made", async () => {
  await using scene = await newScene();
  expect(await findings(scene)).toEqual([]);
  const human = await scene.sloop(["doctor"]);
  expect(human.code).toBe(0);
  expect(human.stdout).toStartWith(`checked ${scene.root}; `);
  expect(processesIn(scene.dir)).toEqual([]);
  expect(existsSync(join(scene.dir, "state/sloop"))).toBe(false);
  expect(scene.git("status", "--porcelain")).toBe("?? .agents/");
});

test("what is wrong with the repository is found, each with its way out", async () => {
  await using scene = await newScene();
  const expected = async (...list: string[]) => expect(await findings(scene)).toEqual(list);
  scene.git("branch", "sloop");
  await expected("error branch named sloop");
  scene.git("branch", "-m", "sloop", "sloop-old");
  scene.git("checkout", "-q", "--detach");
  await expected("error detached HEAD");
  scene.git("checkout", "-q", "main");
  scene.git("config", "core.hooksPath", ".husky/_");
  await expected("warning hooks");
  scene.git("config", "core.hooksPath", `${scene.root}/.husky/_`);
  scene.write(".gitmodules", "");
  await expected("warning submodules");
  scene.git("config", "core.hooksPath", ".husky");
  scene.write(".husky/pre-commit", "exit 0\n");
  scene.commit("hooks that are committed");
  await expected("warning submodules");
  const text = (await scene.sloop(["doctor"])).stdout;
  expect(text).toMatch(/\nwarning {2}submodules: .*\n {2}why: .*\n {2}fix: .*git submodule update --init/);
  expect(text).not.toContain("\x1b");
});

test("LFS without git-lfs, a shallow clone, a repository without a commit", async () => {
  await using scene = await newScene();
  scene.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  expect(await findings(scene)).toEqual(["warning LFS"]);
  await using shallow = await newWorld({ git: "none" });
  scene.commit("second");
  shallow.git("clone", "-q", "--depth", "1", `file://${scene.root}`, ".");
  shallow.git("config", "user.name", "Test");
  shallow.git("config", "user.email", "test@example.invalid");
  expect(await findings(shallow)).toEqual(["warning LFS", "warning shallow clone"]);
  await using empty = await newWorld({ git: "empty" });
  empty.write(".agents/sloop/config.yaml", "version: 1\n");
  expect(await findings(empty)).toEqual(["warning agent", "error first commit"]);
});

test("the configuration and each agent's program", async () => {
  await using scene = await newScene();
  scene.write(
    ".agents/sloop/config.yaml",
    `version: 1
schedulers: {}
agent:
  default_target: here
  targets:
    here: { cmd: [sh, "{prompt}"] }
    gone: { cmd: [no-such-agent, "{prompt}"] }
    relative: { cmd: [./README.md, "{prompt}"] }
`,
  );
  expect(await findings(scene)).toEqual(["warning configuration", "warning agent"]);
  scene.write(
    ".agents/sloop/config.yaml",
    scene.read(".agents/sloop/config.yaml").replace("default_target: here", "default_target: gone"),
  );
  expect(await findings(scene)).toEqual(["warning configuration", "error agent"]);
  scene.write(".agents/sloop/flows/bad.yaml", "stages: 3\n");
  expect(await findings(scene)).toEqual(["error configuration"]);
  scene.write(".agents/sloop/config.yaml", "version: 2\n");
  expect(await findings(scene)).toEqual(["error repository"]);
});

test("git that is missing or does not know who commits", async () => {
  await using scene = await newScene();
  expect((await findings(scene, { PATH: join(scene.dir, "nothing") }))[0]).toBe("error git version");
  scene.git("config", "user.useConfigOnly", "true");
  scene.git("config", "--unset", "user.email");
  const nobody = { EMAIL: undefined, GIT_AUTHOR_EMAIL: undefined, GIT_COMMITTER_EMAIL: undefined };
  expect(await findings(scene, { ...nobody, GIT_CONFIG_GLOBAL: "/dev/null" })).toEqual(["error git identity"]);
});

test("places: who may enter, and names that are too long for a socket", async () => {
  await using scene = await newScene();
  mkdirSync(join(scene.dir, "run/sloop"), { recursive: true });
  chmodSync(join(scene.dir, "run/sloop"), 0o755);
  expect(await findings(scene)).toEqual(["error permissions"]);
  chmodSync(join(scene.dir, "run/sloop"), 0o700);
  expect(await findings(scene)).toEqual([]);
  const noState = await scene.sloop(["doctor"], { env: { HOME: "", XDG_STATE_HOME: undefined } });
  expect(noState).toMatchObject({ code: 1 });
  expect(noState.stdout).toContain("XDG_STATE_HOME");
});

test("a running daemon is asked, and goes on", async () => {
  await using scene = await newScene();
  expect((await scene.sloop(["daemon"])).code).toBe(0);
  const pid = scene.daemonPid();
  expect(await findings(scene)).toEqual([]);
  expect(scene.daemonPid()).toBe(pid);
});

test("outside a repository the machine alone is looked at; surplus words are refused", async () => {
  await using world = await newWorld({ git: "none" });
  const ran = await sloop(["doctor"], { cwd: "/", env: world.env });
  expect(ran.stdout).toStartWith("no repository here: checked the machine alone; ");
  expect(await sloop(["doctor", "now"], { cwd: "/" })).toMatchObject({ code: 2, stdout: "" });
});

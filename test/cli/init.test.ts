// `sloop init`, and the round trip of what it and `sloop template` give through the real loader.

import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadAll } from "../../src/parse/load.ts";
import { fileSource } from "../../src/system/files.ts";
import { newWorld, type World } from "../support/repo.ts";

setDefaultTimeout(60_000);

const entries = [
  "config.yaml",
  "projects",
  "projects/default.md",
  "tickets",
  "flows",
  "flows/default.yaml",
  "flows/train.yaml",
  "prompts",
  "prompts/review.md",
].map((name) => `.agents/sloop/${name}`);

const data = async (world: World, cwd = world.root) => {
  const ran = await world.sloop(["--json", "init"], { cwd });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  return JSON.parse(ran.stdout).data;
};

test("creates everything once, in order, and a second time nothing", async () => {
  await using world = await newWorld();
  expect(await data(world)).toEqual({ repository_root: world.root, created: entries, existing: [] });
  const before = world.read(".agents/sloop/config.yaml");
  expect(await data(world)).toEqual({ repository_root: world.root, created: [], existing: entries });
  expect(world.read(".agents/sloop/config.yaml")).toBe(before);
  expect(world.git("status", "--porcelain")).toBe("?? .agents/");
  const text = (await world.sloop(["init"])).stdout;
  expect(text).toStartWith(`initialized sloop in ${world.root}\n  existing: ${entries[0]}\n`);
  expect(text).toMatch(/\n\n.*sloop template ticket > .*\n.*\n$/);
});

test("what it writes passes the real loader, built-in names included", async () => {
  await using world = await newWorld({ name: "with spaces ünï" });
  await data(world);
  const loaded = loadAll(fileSource, world.root, null);
  expect([...loaded.flows.keys()].sort()).toEqual(["default", "train"]);
  expect(loaded.flows.get("default")?.stages.map(({ name }) => name)).toEqual(["build", "review", "merge"]);
  expect(loaded.flows.get("train")?.stages.map(({ name }) => name)).toEqual(["build", "sync", "verify", "merge"]);
  expect(Object.keys(loaded.config.agent?.targets ?? {})).toEqual(["claude", "codex", "opencode"]);
});

test("never rewrites, keeps what was made before a failure, names the obstacle", async () => {
  await using world = await newWorld();
  world.write(".agents/sloop/config.yaml", "version: 1 # mine\n");
  world.write(".agents/sloop/flows", "not a directory\n");
  const ran = await world.sloop(["--json", "init"]);
  expect(ran).toMatchObject({ code: 1, stdout: "" });
  expect(JSON.parse(ran.stderr).error).toMatchObject({ code: "conflict", details: {} });
  expect(JSON.parse(ran.stderr).error.message).toStartWith(".agents/sloop/flows: ");
  expect(world.read(".agents/sloop/config.yaml")).toBe("version: 1 # mine\n");
  expect(world.read(".agents/sloop/projects/default.md")).toContain("id: default");
});

test("a directory where a file belongs, and a file where .agents belongs", async () => {
  await using world = await newWorld();
  mkdirSync(join(world.root, ".agents/sloop/config.yaml"), { recursive: true });
  expect((await world.sloop(["init"])).stderr).toStartWith("error (conflict): .agents/sloop/config.yaml: ");
  await using other = await newWorld();
  writeFileSync(join(other.root, ".agents"), "");
  expect((await other.sloop(["init"])).stderr).toStartWith("error (conflict): .agents: ");
});

test("below or outside a work tree it warns, and scaffolds all the same", async () => {
  await using world = await newWorld({ git: "none" });
  const ran = await world.sloop(["init"]);
  expect(ran.code).toBe(0);
  expect(ran.stderr).toMatch(/^warning: .*not the top level of a Git work tree/);
  const deeper = join(world.root, "deeper");
  mkdirSync(deeper);
  const json = await data(world, deeper);
  expect(json.created).toEqual(entries);
  expect(json.warnings).toHaveLength(1);
});

const verify = (world: World) =>
  /exec: (\[.*\])/.exec(world.read(".agents/sloop/flows/train.yaml").replace(/^\s*#.*$/gm, ""))![1];

test.each([
  ["Cargo.toml", '["cargo","test"]'],
  ["bun.lock", '["bun","test"]'],
  ["package.json", '["npm","test"]'],
  ["go.mod", '["go","test","./..."]'],
  ["pyproject.toml", '["pytest"]'],
  ["Makefile", '["make","test"]'],
  ["nothing.txt", '["cargo","test"]'],
])("the train's test command by %s", async (file, command) => {
  await using world = await newWorld({ git: "none" });
  world.write(file, "");
  await data(world);
  expect(verify(world)).toBe(command);
});

test("a test command in the configuration wins, also out of a broken file, and only the first time", async () => {
  await using world = await newWorld();
  world.write("package.json", "{}");
  world.write(".agents/sloop/config.yaml", 'version: nonsense\nflow:\n  test_cmd: [just, "test all"]\nagent: [\n');
  await data(world);
  expect(verify(world)).toBe('["just","test all"]');
  world.write(".agents/sloop/config.yaml", "version: 1\nflow: { test_cmd: [other] }\n");
  await data(world);
  expect(verify(world)).toBe('["just","test all"]');
});

test("the printed templates load together in an initialised repository", async () => {
  await using world = await newWorld();
  await data(world);
  for (const [kind, path] of [
    ["flow", ".agents/sloop/flows/from-template.yaml"],
    ["config", ".agents/sloop/config.yaml"],
  ] as const) {
    world.write(path, (await world.sloop(["template", kind])).stdout);
  }
  const loaded = loadAll(fileSource, world.root, null);
  expect(loaded.flows.get("from-template")?.stages.map(({ name }) => name)).toEqual([
    "build",
    "test",
    "lint",
    "review",
    "sync",
    "merge",
  ]);
});

test("refuses in a run's worktree and below it, saying where the repository is, and writes nothing", async () => {
  await using world = await newWorld();
  await data(world);
  world.commit("set up");
  const refused = async (folder: string) => {
    const ran = await world.sloop(["--json", "init"], { cwd: join(world.root, folder) });
    expect(ran).toMatchObject({ code: 1, stdout: "" });
    expect(JSON.parse(ran.stderr).error).toMatchObject({ code: "conflict" });
    expect(JSON.parse(ran.stderr).error.message).toContain(`the repository is ${world.root}`);
  };
  world.git("worktree", "add", "-q", ".worktrees/run-1");
  mkdirSync(join(world.root, ".worktrees/run-1/sub"));
  await refused(".worktrees/run-1");
  await refused(".worktrees/run-1/sub");
  expect(world.git("-C", ".worktrees/run-1", "status", "--porcelain")).toBe("");
  world.write(".agents/sloop/config.yaml", "version: 1\nworktree_dir: build/trees\n");
  world.git("worktree", "add", "-q", "build/trees/run-2");
  await refused("build/trees/run-2");
  // A worktree elsewhere is nobody's run.
  world.git("worktree", "add", "-q", "mine/three");
  expect((await data(world, join(world.root, "mine/three"))).existing).not.toEqual([]);
});

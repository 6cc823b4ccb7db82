// install.sh inside a checkout: it builds what lies there, with the pinned bun from wherever it is to be had.

import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { command, projectRoot } from "../support/bin.ts";
import { newWorld, type World } from "../support/repo.ts";

setDefaultTimeout(60_000);

const systemPath = "/usr/local/bin:/usr/bin:/bin";

function checkout(world: World): void {
  for (const name of [
    "install.sh",
    "build.ts",
    "package.json",
    "bun.lock",
    "tsconfig.json",
    "src",
    "templates",
    "migrations",
  ]) {
    cpSync(join(projectRoot, name), join(world.root, name), { recursive: true });
  }
}

function executable(path: string, script: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

/** A bun that builds a program which only knows its version. */
const fakeBun = `case $1 in
  --version) echo 1.4.5;;
  install) mkdir -p node_modules;;
  build.ts) mkdir -p dist; printf '#!/bin/sh\\necho sloop 0.0.1-fake\\n' >dist/sloop; chmod +x dist/sloop;;
esac`;

test("builds with the bun on the PATH, and the result is the real program", async () => {
  await using world = await newWorld({ git: "none", name: "a check out" });
  checkout(world);
  const path = `${join(projectRoot, "node_modules/.bin")}:${systemPath}`;
  const prefix = join(world.dir, "pre fix");
  const ran = await command(["sh", join(world.root, "install.sh"), "--prefix", prefix, "--demo"], {
    cwd: "/",
    env: { ...world.env, PATH: path, HOME: process.env["HOME"] },
  });
  expect(ran.stderr).toBe("");
  expect(ran.code).toBe(0);
  expect(ran.stdout).toContain(`installed sloop ${packageJson.version} to ${join(prefix, "bin/sloop")}`);
  expect(ran.stdout).toContain("both tickets are merged:");
  expect(readdirSync(join(prefix, "bin"))).toEqual(["sloop"]);
});

test("another bun on the PATH is passed over; npm gets the right one", async () => {
  await using world = await newWorld({ git: "none" });
  checkout(world);
  const tools = join(world.dir, "tools");
  executable(join(tools, "bun"), "echo 1.0.0");
  executable(
    join(tools, "npm"),
    `echo "$@" >'${world.dir}/npm-args'; while [ "$1" != --prefix ]; do shift; done
     mkdir -p "$2/node_modules/.bin"; cp '${world.dir}/fake-bun' "$2/node_modules/.bin/bun"`,
  );
  executable(join(world.dir, "fake-bun"), fakeBun);
  const env = { ...world.env, PATH: `${tools}:${systemPath}` };
  const ran = await command(["sh", "./install.sh"], { cwd: world.root, env });
  expect(ran).toMatchObject({ code: 0, stderr: "getting bun 1.4.5 from npm\n" });
  expect(ran.stdout).toContain("installed sloop 0.0.1-fake to ");
  expect(await Bun.file(join(world.dir, "npm-args")).text()).toContain("bun@1.4.5");
  const again = await command(["sh", "./install.sh", "--bun"], { cwd: world.root, env });
  expect(again).toEqual({ code: 0, stdout: `${join(world.root, ".cache/bun/node_modules/.bin/bun")}\n`, stderr: "" });
});

test("a failing build installs nothing", async () => {
  await using world = await newWorld({ git: "none" });
  checkout(world);
  const tools = join(world.dir, "tools");
  executable(join(tools, "bun"), fakeBun.replace("mkdir -p dist;", "exit 1;"));
  const ran = await command(["sh", "./install.sh"], {
    cwd: world.root,
    env: { ...world.env, PATH: `${tools}:${systemPath}` },
  });
  expect(ran).toMatchObject({ code: 1 });
  expect(ran.stderr).toContain("the build failed");
  expect(existsSync(join(world.dir, "home/.local"))).toBe(false);
});

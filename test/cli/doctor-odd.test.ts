// `sloop doctor` where pipes, devices and hostile names stand: it ends, names them, and prints nothing a terminal would obey.

import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bin } from "../support/bin.ts";
import { processesIn } from "../support/repo.ts";
import { newScene, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(120_000);

type Found = { check: string; severity: string; message: string; why: string; fix: string };

function fifo(path: string): void {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(dirname(path), { recursive: true });
  expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
}

async function doctor(scene: Scene, cwd = scene.root): Promise<Found[]> {
  const child = Bun.spawn([await bin(), "--json", "doctor"], {
    cwd,
    env: { ...process.env, ...scene.env },
    stdout: "pipe",
    stderr: "pipe",
    timeout: 60_000,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  await child.exited;
  expect({ signal: child.signalCode, stderr }).toEqual({ signal: null, stderr: "" });
  const { findings } = (JSON.parse(stdout) as { data: { findings: Found[] } }).data;
  expect(child.exitCode).toBe(findings.some(({ severity }) => severity === "error") ? 1 : 0);
  return findings.filter(({ check }) => check !== "disk space");
}

const brief = (findings: Found[]) => findings.map(({ severity, check, message }) => `${severity} ${check}: ${message}`);

test(".gitattributes that is a pipe, a device or a folder is named and not read", async () => {
  await using scene = await newScene();
  const path = join(scene.root, ".gitattributes");
  fifo(path);
  expect(brief(await doctor(scene))).toEqual([`error attributes: ${path} is a named pipe, not a file`]);
  rmSync(path);
  symlinkSync("/dev/zero", path);
  expect(brief(await doctor(scene))).toEqual([`error attributes: ${path} is a device, not a file`]);
  rmSync(path);
  mkdirSync(path);
  expect(brief(await doctor(scene))).toEqual([`error attributes: ${path} is a directory, not a file`]);
});

for (const name of [".git/HEAD", ".git/config"]) {
  test(`a git that waits at ${name} is ended, and said not to answer`, async () => {
    await using scene = await newScene();
    const path = join(scene.root, name);
    fifo(path);
    const found = await doctor(scene);
    expect(found.map(({ severity, check }) => `${severity} ${check}`)).toEqual(["error git answer"]);
    expect(found[0]?.message).toMatch(/^`git .*` did not answer within 10 s in /);
    expect(found[0]?.message).toContain(`; ${path} is a named pipe, not a file`);
    expect(processesIn(scene.dir)).toEqual([]);
  });
}

test("a .git that is a pipe, or a link that leads nowhere, is named", async () => {
  await using scene = await newScene();
  const path = join(scene.root, ".git");
  fifo(path);
  expect(brief(await doctor(scene))).toEqual([`error top level: ${path} is a named pipe, not a file or directory`]);
  rmSync(path);
  symlinkSync("nowhere", path);
  const [dead] = await doctor(scene);
  expect(dead).toMatchObject({ severity: "error", check: "top level" });
});

test("whoever ends doctor ends the git it waits for", async () => {
  await using scene = await newScene();
  fifo(join(scene.root, ".git/HEAD"));
  const child = Bun.spawn([await bin(), "doctor"], {
    cwd: scene.root,
    env: { ...process.env, ...scene.env },
    stdout: "ignore",
    stderr: "ignore",
  });
  await until(() => processesIn(scene.dir).length > 1, "git to wait");
  child.kill("SIGINT");
  await child.exited;
  await until(() => processesIn(scene.dir).length === 0, "git to be gone");
  expect(child.signalCode).toBe("SIGINT");
});

test("what a git that does not answer has started is ended with it", async () => {
  await using scene = await newScene();
  const folder = join(scene.dir, "bin");
  mkdirSync(folder);
  writeFileSync(join(folder, "git"), "#!/bin/sh\nsleep 1000 & sleep 1001\n", { mode: 0o755 });
  scene.env["PATH"] = `${folder}:${process.env["PATH"]}`;
  const found = await doctor(scene);
  expect(brief(found)).toEqual([`error git answer: \`git --version\` did not answer within 10 s in ${scene.root}`]);
  expect(processesIn(scene.dir)).toEqual([]);
});

test("a configuration that is a pipe, a device, a folder or a dead link is an error that names it", async () => {
  await using scene = await newScene();
  const path = join(scene.root, ".agents/sloop/config.yaml");
  const below = join(scene.root, "below");
  mkdirSync(below);
  const says = async (what: string) => {
    for (const cwd of [scene.root, below]) {
      const found = await doctor(scene, cwd);
      expect(brief(found)).toEqual([`error configuration: ${path} ${what}`]);
      expect(found[0]?.fix).toBe(`mv ${path} ${path}.away && (cd ${scene.root} && sloop init)`);
    }
  };
  fifo(path);
  await says("is a named pipe, not a file");
  rmSync(path);
  symlinkSync("/dev/zero", path);
  await says("is a device, not a file");
  rmSync(path);
  mkdirSync(path);
  await says("is a directory, not a file");
  rmSync(path, { recursive: true });
  symlinkSync("nowhere", path);
  await says("is a link that leads nowhere");
});

test("a nearer configuration that is no file is named, and the farther repository looked at", async () => {
  await using scene = await newScene();
  fifo(join(scene.root, "inner/.agents/sloop/config.yaml"));
  const inner = join(scene.root, "inner");
  expect(brief(await doctor(scene, inner))).toEqual([
    `warning configuration: ${inner}/.agents/sloop/config.yaml is a named pipe, not a file`,
  ]);
});

test("each odd thing where a ticket, a project or a flow belongs is named", async () => {
  await using scene = await newScene();
  const at = (path: string) => join(scene.root, ".agents/sloop", path);
  const huge = (path: string) => {
    writeFileSync(at(path), "");
    truncateSync(at(path), 3 * 1024 ** 3);
  };
  scene.ticket("good");
  fifo(at("tickets/pipe.md"));
  fifo(at("tickets/deep/er/pipe.md"));
  fifo(at("tickets/not-a-ticket.txt"));
  symlinkSync("..", at("tickets/deep/round"));
  mkdirSync(at("tickets/folder.md"));
  huge("tickets/huge.md");
  symlinkSync("nowhere", at("tickets/link.md"));
  fifo(at("projects/pipe.md"));
  fifo(at("flows/pipe.yaml"));
  expect(brief(await doctor(scene))).toEqual([
    `warning configuration: ${at("flows/pipe.yaml")}: not read; it is not a regular file`,
    `warning project file: ${at("projects/pipe.md")} is a named pipe, not a file`,
    `warning ticket file: ${at("tickets/deep/er/pipe.md")} is a named pipe, not a file`,
    `warning ticket file: ${at("tickets/huge.md")} is larger than 16 MiB`,
    `warning ticket file: ${at("tickets/link.md")} is a link that leads nowhere`,
    `warning ticket file: ${at("tickets/pipe.md")} is a named pipe, not a file`,
  ]);
  rmSync(at("tickets"), { recursive: true });
  huge("projects/huge.md");
  huge("flows/huge.yaml");
  const found = brief(await doctor(scene));
  expect(found[0]).toStartWith(`error configuration: ${at("flows/huge.yaml")}: cannot be read`);
  expect(found.slice(1)).toEqual([
    `warning flow file: ${at("flows/pipe.yaml")} is a named pipe, not a file`,
    `error project file: ${at("projects/huge.md")} is larger than 16 MiB`,
    `warning project file: ${at("projects/pipe.md")} is a named pipe, not a file`,
  ]);
});

test("control characters of git's configuration and of names are shown, and the way out can be pasted", async () => {
  await using scene = await newScene();
  const path = "a'b\x1b[31m\nfix: rm -rf\u009b2J\\ $(touch pwned)";
  scene.git("config", "core.hooksPath", path);
  fifo(join(scene.root, ".agents/sloop/tickets/x\x1b]0;t\x07\n.md"));
  const { stdout } = await scene.sloop(["doctor"]);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about
  expect(stdout).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
  expect(stdout).toContain("x\\x1b]0;t\\x07\\x0a.md");
  expect(stdout.split("\n").filter((line) => /^\s*fix:/.test(line))).toHaveLength(2);
  const [hooks] = (await doctor(scene)).filter(({ check }) => check === "hooks");
  const ran = Bun.spawnSync(["bash", "-c", hooks?.fix ?? "false"], {
    cwd: scene.root,
    env: { ...process.env, ...scene.env },
  });
  expect(ran.exitCode).toBe(0);
  expect(scene.git("config", "core.hooksPath")).toBe(`${scene.root}/${path}`);
  expect(scene.git("status", "--porcelain")).toBe("?? .agents/");
});

test("a hooks path that looks like an option or a pattern is a path", async () => {
  await using scene = await newScene();
  scene.write("--foo/x", "");
  scene.write(":(glob)a/x", "");
  scene.commit("odd names");
  for (const path of ["--foo", ":(glob)a"]) {
    scene.git("config", "--replace-all", "core.hooksPath", "x");
    scene.git("config", "--file", ".git/config", "core.hooksPath", path);
    expect(brief(await doctor(scene))).toEqual([]);
  }
  scene.git("config", "--file", ".git/config", "core.hooksPath", "--bar");
  expect(brief(await doctor(scene))).toEqual(["warning hooks: core.hooksPath is `--bar`, which is not committed"]);
});

test("hooks that take part in merges are mentioned, and are no error", async () => {
  await using scene = await newScene();
  scene.write(".git/hooks/pre-merge-commit", "#!/bin/sh\n");
  scene.write(".git/hooks/post-merge", "#!/bin/sh\n");
  scene.write(".git/hooks/commit-msg", "#!/bin/sh\n");
  for (const name of ["pre-merge-commit", "post-merge"]) chmodSync(join(scene.root, ".git/hooks", name), 0o755);
  fifo(join(scene.root, ".git/hooks/pre-commit"));
  expect(brief(await doctor(scene))).toEqual([
    `warning merge hooks: git runs \`pre-merge-commit\`, \`post-merge\` of ${scene.root}/.git/hooks`,
  ]);
  chmodSync(join(scene.root, ".git/hooks/commit-msg"), 0o755);
  renameSync(join(scene.root, ".git/hooks"), join(scene.dir, "my hooks"));
  scene.git("config", "core.hooksPath", join(scene.dir, "my hooks"));
  const [found] = await doctor(scene);
  expect(found).toMatchObject({ severity: "warning", check: "merge hooks" });
  expect(found?.message).toContain("`commit-msg`");
  expect(found?.fix).toContain(`'${scene.dir}/my hooks/commit-msg'`);
});

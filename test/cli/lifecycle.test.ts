// Starting, finding and stopping the daemon as the CLI does it, and what each configuration problem stops.

import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { processesIn } from "../support/repo.ts";
import { newScene, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(60_000);

const stateRoot = (scene: Scene) => join(scene.dir, "state/sloop");
const operatorSocket = (scene: Scene) => {
  const base = join(scene.dir, "run/sloop");
  return join(base, readdirSync(base)[0]!, "operator.sock");
};

test("stop without a daemon succeeds and leaves nothing", async () => {
  await using scene = await newScene();
  expect(await scene.sloop(["stop"])).toEqual({ code: 0, stdout: "daemon is not running\n", stderr: "" });
  expect((await scene.sloop(["--json", "stop", "--force"])).stdout).toBe(
    '{"id":null,"ok":true,"data":{"stopping":false,"running":false}}\n',
  );
  expect(existsSync(stateRoot(scene))).toBe(false);
  expect(existsSync(join(scene.dir, "run/sloop"))).toBe(false);
});

test("daemon starts one, says so once, and stop ends it", async () => {
  await using scene = await newScene();
  const first = await scene.sloop(["daemon"]);
  expect(first).toMatchObject({ code: 0, stderr: "" });
  const pid = scene.daemonPid();
  const socket = operatorSocket(scene);
  expect(first.stdout.split("\n").slice(0, 4)).toEqual([
    `daemon started (pid ${pid})`,
    `socket: ${socket}`,
    `log: ${join(scene.stateDir(), "logs/daemon.ndjson")}`,
    `state: ${scene.stateDir()}`,
  ]);
  expect((await scene.sloop(["daemon"])).stdout).toStartWith(`daemon running (pid ${pid})\n`);
  expect(await scene.data(["daemon"])).toMatchObject({ pid, socket, version: packageJson.version, started: false });
  expect(statSync(socket).mode & 0o777).toBe(0o600);
  expect(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ").slice(2, 4)).toEqual([
    `${pid}`,
    `${pid}`,
  ]);
  expect(await scene.sloop(["stop"])).toEqual({ code: 0, stdout: `daemon stopping (pid ${pid})\n`, stderr: "" });
  await until(() => !existsSync(socket) && processesIn(scene.dir).length === 0, "the daemon to be gone");
  expect((await scene.sloop(["stop"])).stdout).toBe("daemon is not running\n");
  expect((await scene.data(["daemon"]))["started"]).toBe(true);
});

test("eight at once start one daemon, and one of them says it did", async () => {
  await using scene = await newScene();
  const all = await Promise.all(Array.from({ length: 8 }, () => scene.data(["daemon"])));
  expect(new Set(all.map(({ pid }) => pid)).size).toBe(1);
  expect(all.filter(({ started }) => started === true)).toHaveLength(1);
});

test("foreground beside a running daemon leaves without a word, in both modes", async () => {
  await using scene = await newScene();
  await scene.data(["daemon"]);
  for (const args of [
    ["daemon", "--foreground"],
    ["--json", "daemon", "--foreground"],
  ]) {
    expect(await scene.sloop(args)).toEqual({ code: 0, stdout: "", stderr: "" });
  }
});

test("a daemon stopped by TERM removes its socket and exits 0; the next command starts another", async () => {
  await using scene = await newScene();
  const foreground = scene.sloop(["daemon", "--foreground"]);
  await until(() => existsSync(join(scene.dir, "run/sloop")) && existsSync(operatorSocket(scene)), "the socket");
  expect((await scene.data(["daemon"]))["started"]).toBe(false);
  process.kill(scene.daemonPid(), "SIGTERM");
  expect(await foreground).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(existsSync(operatorSocket(scene))).toBe(false);
  expect((await scene.sloop(["status"])).code).toBe(0);
});

test("status is show, byte for byte, also from a directory below", async () => {
  await using scene = await newScene();
  await scene.data(["daemon"]);
  const show = await scene.sloop(["show"]);
  expect(await scene.sloop(["status"])).toEqual(show);
  mkdirSync(join(scene.root, "a/b"), { recursive: true });
  expect(await scene.sloop(["show"], { cwd: join(scene.root, "a/b") })).toEqual(show);
  const json = JSON.parse((await scene.sloop(["--json", "status"])).stdout);
  expect(Object.keys(json)).toEqual(["id", "ok", "data"]);
  expect(json.id).toMatch(/^req-[0-9]+-1$/);
});

const broken: [string, string, string][] = [
  ["unparsable", "version: [\n", ".agents/sloop/config.yaml"],
  ["another version", "version: 2\n", "version"],
  ["no version", "worktree_dir: x\n", "version"],
  ["a worktree directory outside", "version: 1\nworktree_dir: ../x\n", "worktree_dir"],
  ["a duplicate key", "version: 1\nversion: 1\n", "config.yaml"],
];

test.each(broken)("a configuration with %s stops every command, daemon or not", async (_name, text, message) => {
  await using scene = await newScene();
  scene.write(".agents/sloop/config.yaml", text);
  for (const args of [["show"], ["stop"], ["list"]]) {
    const ran = await scene.sloop(args);
    expect({ args, ...ran }).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toStartWith("error (invalid_arguments): ");
    expect(ran.stderr).toContain(message);
    expect(ran.stderr).toContain("hint: `sloop template config`");
  }
  expect(existsSync(stateRoot(scene))).toBe(false);
});

test("a broken flow stops a start and a post, and nothing else while a daemon answers", async () => {
  await using scene = await newScene();
  scene.ticket("one");
  scene.write(".agents/sloop/flows/bad.yaml", "stages:\n  - name: a\n    action: unknown\n");
  const refused = await scene.sloop(["show"]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toContain("bad.yaml");
  expect(refused.stderr).toContain("unknown action `unknown`");
  expect(refused.stderr).toContain("hint: `sloop template flow`");
  expect(existsSync(stateRoot(scene))).toBe(false);
  scene.write(
    ".agents/sloop/flows/bad.yaml",
    "stages:\n  - name: a\n    action: agent\n  - name: merge\n    action: { builtin: merge }\n",
  );
  await scene.data(["daemon"]);
  scene.write(".agents/sloop/flows/bad.yaml", "stages: 7\n");
  for (const args of [["show"], ["list"], ["pause"], ["resume"], ["events"]]) {
    expect({ args, code: (await scene.sloop(args)).code }).toEqual({ args, code: 0 });
  }
  const post = await scene.sloop(["--json", "post", ".agents/sloop/tickets/one.md"]);
  expect(post).toMatchObject({ code: 1, stdout: "" });
  expect(JSON.parse(post.stderr)).toMatchObject({ id: null, error: { code: "invalid_arguments" } });
  expect(await scene.data(["list"])).toEqual({ tickets: [] });
  expect((await scene.sloop(["stop"])).code).toBe(0);
});

test("no place for state is an error that says so", async () => {
  await using scene = await newScene();
  const ran = await scene.sloop(["show"], { env: { HOME: undefined, XDG_STATE_HOME: "relative" } });
  expect(ran).toMatchObject({ code: 1, stdout: "" });
  expect(ran.stderr).toMatch(/^error \(invalid_arguments\): .*XDG_STATE_HOME.*HOME/);
});

test("typed inside a run's worktree, a command reaches the repository's own daemon", async () => {
  await using scene = await newScene();
  scene.commit("configuration");
  await scene.data(["daemon"]);
  const worktree = join(scene.root, ".worktrees/12345678");
  scene.git("worktree", "add", "-q", "-b", "sloop/x", worktree);
  const ran = await scene.sloop(["--json", "daemon"], { cwd: worktree });
  expect(JSON.parse(ran.stdout).data).toMatchObject({ pid: scene.daemonPid(), started: false });
});

test("help paths prints this repository's own places without a daemon", async () => {
  await using scene = await newScene();
  const ran = await scene.sloop(["help", "paths"]);
  expect(ran.stdout).toContain(join(scene.dir, "run/sloop"));
  expect(ran.stdout).toContain(scene.root);
  expect(existsSync(stateRoot(scene))).toBe(false);
});

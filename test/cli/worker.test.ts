// Worker commands against a socket of the test's own: what is sent, what is printed, what is refused.

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Ran, sloop } from "../support/bin.ts";
import { newWorld, type World } from "../support/repo.ts";

setDefaultTimeout(60_000);

type Door = Disposable & { path: string; lines: string[] };

/** Answers every line with `answer(line)`; null closes without a word. */
function openDoor(world: World, answer: (line: string) => string | null): Door {
  const path = join(world.dir, "w.sock");
  const lines: string[] = [];
  const server = Bun.listen({
    unix: path,
    socket: {
      data(socket, bytes) {
        const line = bytes.toString().trimEnd();
        lines.push(line);
        const reply = answer(line);
        if (reply !== null) socket.write(reply);
        socket.end();
      },
    },
  });
  return { path, lines, [Symbol.dispose]: () => server.stop(true) };
}

const world = await newWorld({ git: "none" });
afterAll(async () => await world[Symbol.asyncDispose]());

async function inRun(args: string[], answer: (line: string) => string | null): Promise<Ran & { sent: unknown[] }> {
  using door = openDoor(world, answer);
  const ran = await world.sloop(args, { env: { SLOOP_SOCKET: door.path, SLOOP_TOKEN: "secret" } });
  return { ...ran, sent: door.lines.map((line) => JSON.parse(line)) };
}

const ok = '{"ok": true,  "id":"other","data":{"x":1}}  \r\n';
const no = '{"id":null,"ok":false,"error":{"code":"conflict","message":"m","details":{}}}\n';

test.each([
  [["brief"], "brief", {}],
  [["show", "TICK-1"], "show", { ref: "TICK-1" }],
  [["show"], "show", {}],
  [["status"], "show", {}],
  [["show", "TICK-1", "-n", "2"], "show", { ref: "TICK-1", limit: 2 }],
  [["note", "a", "b", "--json", "-5"], "note", { text: "a b --json -5" }],
  [["verdict", "pass"], "verdict", { verdict: "pass" }],
  [
    ["verdict", "fail", "--reason", "no test", "--confidence", "high"],
    "verdict",
    { verdict: "fail", reason: "no test", confidence: "high" },
  ],
] as [string[], string, object][])("%j is one line with the token", async (args, verb, expected) => {
  const ran = await inRun(args, () => ok);
  expect(ran.sent).toEqual([
    { v: 1, id: expect.stringMatching(/^req-[0-9]+$/), verb, args: expected, token: "secret" },
  ]);
  expect(ran).toMatchObject({ code: 0, stderr: "", stdout: `${ok.trimEnd()}\n` });
});

test("the reply is printed as it came, in both modes, on the stream its `ok` asks for", async () => {
  for (const args of [["brief"], ["--json", "brief"]]) {
    expect(await inRun(args, () => ok)).toMatchObject({ code: 0, stdout: `${ok.trimEnd()}\n`, stderr: "" });
    expect(await inRun(args, () => no)).toMatchObject({ code: 1, stdout: "", stderr: no });
  }
  expect(await inRun(["show", "x"], () => no.replace("conflict", "invalid_arguments"))).toMatchObject({ code: 1 });
  expect(await inRun(["brief"], () => "not json\n")).toMatchObject({ code: 1, stdout: "", stderr: "not json\n" });
});

test("a socket that says nothing, or is not there, is daemon_unavailable", async () => {
  const silent = await inRun(["brief"], () => null);
  expect(silent).toMatchObject({ code: 1, stdout: "" });
  expect(silent.stderr).toStartWith("error (daemon_unavailable)");
  const gone = await world.sloop(["--json", "note", "x"], {
    env: { SLOOP_SOCKET: join(world.dir, "gone.sock"), SLOOP_TOKEN: "t" },
  });
  expect(gone).toMatchObject({ code: 1, stdout: "" });
  expect(JSON.parse(gone.stderr)).toMatchObject({ id: null, ok: false, error: { code: "daemon_unavailable" } });
});

test.each([[{}], [{ SLOOP_SOCKET: "/x" }], [{ SLOOP_TOKEN: "t" }], [{ SLOOP_SOCKET: "", SLOOP_TOKEN: "t" }]] as [
  Record<string, string>,
][])("outside a run worker commands are refused: %j", async (env) => {
  for (const args of [["brief"], ["note", "x"], ["verdict", "pass"]]) {
    const ran = await world.sloop(args, { env });
    expect({ args, ...ran }).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toStartWith("error (unauthorized): ");
  }
});

test("one of the two variables is enough to be in a run; empty ones are none", async () => {
  const half = await world.sloop(["show"], { env: { SLOOP_TOKEN: "t" } });
  expect(half.stderr).toStartWith("error (unauthorized): ");
  const empty = await world.sloop(["show"], { env: { SLOOP_TOKEN: "", SLOOP_SOCKET: "" } });
  expect(empty.stderr).toStartWith("error (invalid_arguments): no `.agents/sloop/config.yaml`");
});

test("inside a run nothing acts as the operator, and nothing is started", async () => {
  await using repository = await newWorld();
  await repository.sloop(["init"]);
  const env = { SLOOP_TOKEN: "t", SLOOP_SOCKET: "/nowhere.sock" };
  for (const args of [["daemon"], ["stop"], ["list"], ["post", "x.md"], ["cancel", "r"], ["pause"], ["events"]]) {
    const ran = await repository.sloop(args, { env });
    expect({ args, ...ran }).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toMatch(/^error \(unauthorized\): .*not available inside a run\n {2}hint: .*sloop brief.*\n$/);
  }
  for (const args of [["show", "x", "--follow"], ["watch"], ["wait", "r"], ["logs", "r", "--follow"]]) {
    const ran = await repository.sloop(args, { env });
    expect({ args, code: ran.code }).toEqual({ args, code: 2 });
    expect(ran.stderr).toContain("For more information, try '--help'");
  }
  expect(existsSync(join(repository.dir, "state/sloop"))).toBe(false);
  expect((await repository.sloop(["--version"], { env })).code).toBe(0);
});

test("a socket whose daemon died is waited for: the next daemon serves it again", async () => {
  const dir = mkdtempSync(join(tmpdir(), "sloop-worker-"));
  const path = join(dir, "w.sock");
  const listen = `Bun.listen({ unix: ${JSON.stringify(path)}, socket: { data() {} } }); console.log("up"); setInterval(() => {}, 1e6)`;
  const dead = Bun.spawn([process.execPath, "-e", listen], { stdout: "pipe" });
  for await (const _ of dead.stdout) break;
  dead.kill("SIGKILL");
  await dead.exited;
  const asking = sloop(["brief"], { env: { SLOOP_SOCKET: path, SLOOP_TOKEN: "t" } });
  rmSync(path);
  const served = Bun.listen({
    unix: path,
    socket: {
      data(socket) {
        socket.write('{"id":"x","ok":true,"data":{}}\n');
        socket.end();
      },
    },
  });
  try {
    expect(await asking).toMatchObject({ code: 0, stdout: '{"id":"x","ok":true,"data":{}}\n' });
  } finally {
    served.stop(true);
    rmSync(dir, { recursive: true, force: true });
  }
});

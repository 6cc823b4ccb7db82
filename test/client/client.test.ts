// Reaching the daemon: which socket is asked, what may be sent twice, and how one is started. The daemons here are scripts.

import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client, DaemonAbsent, parseReply, type WhenAbsent } from "../../src/client/client.ts";
import { SloopError } from "../../src/core/errors.ts";
import { type DaemonIdentity, writeIdentity } from "../../src/system/lock.ts";
import { type RepositoryPaths, repositoryPaths } from "../../src/system/paths.ts";
import { processStart } from "../../src/system/process.ts";
import { endProcesses } from "../support/repo.ts";
import { until } from "../support/until.ts";

type Place = AsyncDisposable & { dir: string; paths: RepositoryPaths; env: Record<string, string> };

function newPlace(): Place {
  const dir = realpathSync(mkdtempSync("/tmp/slc-"));
  const root = join(dir, "repo");
  mkdirSync(root);
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: dir,
    XDG_STATE_HOME: join(dir, "s"),
    XDG_RUNTIME_DIR: join(dir, "r"),
  };
  const paths = repositoryPaths({ root, env, uid: 0, platform: "linux" });
  mkdirSync(paths.runtimeDir, { recursive: true });
  mkdirSync(paths.stateDir, { recursive: true });
  return {
    dir,
    paths,
    env,
    async [Symbol.asyncDispose]() {
      await endProcesses(dir);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

type Fake = Disposable & { lines: string[]; stop(): void };

/** Listens and answers each request line by `answer`; null closes the connection without a word. */
function fakeDaemon(path: string, answer: (line: string, count: number) => string | null): Fake {
  const lines: string[] = [];
  const server = Bun.listen({
    unix: path,
    socket: {
      data(socket, bytes) {
        lines.push(bytes.toString().trimEnd());
        const reply = answer(lines.at(-1)!, lines.length);
        if (reply === null) socket.terminate();
        else socket.write(reply);
      },
    },
  });
  const stop = () => server.stop(true);
  return { lines, stop, [Symbol.dispose]: stop };
}

const good = (line: string) => `${JSON.stringify({ id: JSON.parse(line).id, ok: true, data: { pid: 1 } })}\n`;

function client(place: Place, whenAbsent: WhenAbsent = { kind: "stop" }): Client {
  return new Client({ paths: place.paths, pid: 77, whenAbsent });
}

function ownIdentity(socket: string, more: Partial<DaemonIdentity> = {}): DaemonIdentity {
  return { pid: process.pid, started_at_ms: processStart(process.pid), socket, ...more };
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => new Error("resolved"),
    (reason: unknown) => reason,
  );
  return error instanceof SloopError ? `${error.code}: ${error.message}` : String(error);
}

test("one line per request, ids counted from 1, token null", async () => {
  await using place = newPlace();
  using daemon = fakeDaemon(place.paths.operatorSocket, good);
  const one = client(place);
  expect(await one.call("daemon", {})).toMatchObject({ id: "req-77-1", ok: true });
  await one.call("hold", { ticket: "T" });
  expect(daemon.lines.map((line) => JSON.parse(line))).toEqual([
    { v: 1, id: "req-77-1", verb: "daemon", args: {}, token: null },
    { v: 1, id: "req-77-2", verb: "hold", args: { ticket: "T" }, token: null },
  ]);
});

test("nobody there: the identity line's socket is asked, if its process is that process", async () => {
  await using place = newPlace();
  const elsewhere = join(place.dir, "else.sock");
  using _daemon = fakeDaemon(elsewhere, good);
  await expect(client(place).call("daemon", {})).rejects.toBeInstanceOf(DaemonAbsent);
  writeIdentity(place.paths.lockFile, ownIdentity(elsewhere, { started_at_ms: 1 }));
  await expect(client(place).call("daemon", {})).rejects.toBeInstanceOf(DaemonAbsent);
  writeIdentity(place.paths.lockFile, ownIdentity(elsewhere));
  expect(await client(place).call("daemon", {})).toMatchObject({ ok: true });
});

test("a read is asked again when its connection breaks, a change never", async () => {
  await using place = newPlace();
  using daemon = fakeDaemon(place.paths.operatorSocket, (line, count) => (count === 2 ? good(line) : null));
  expect(await client(place).call("show", {})).toMatchObject({ ok: true });
  expect(daemon.lines).toHaveLength(2);
  expect(daemon.lines[0]).toBe(daemon.lines[1]!);
  expect(await codeOf(client(place).call("run", { trigger: { kind: "now" }, only: [] }))).toStartWith(
    "daemon_unavailable: the daemon did not answer",
  );
  expect(daemon.lines).toHaveLength(3);
});

test("a reply of many megabytes arrives in pieces", async () => {
  await using place = newPlace();
  const text = "é".repeat(3_000_000);
  using _daemon = fakeDaemon(place.paths.operatorSocket, () => null);
  const big = join(place.dir, "big.sock");
  const reply = Buffer.from(`${JSON.stringify({ id: "x", ok: true, data: { text } })}\n`);
  const server = Bun.listen<{ at: number }>({
    unix: big,
    socket: {
      open(socket) {
        socket.data = { at: 0 };
      },
      data(socket) {
        socket.data.at += socket.write(reply);
      },
      drain(socket) {
        socket.data.at += socket.write(reply.subarray(socket.data.at));
      },
    },
  });
  try {
    const paths = { ...place.paths, operatorSocket: big };
    const answer = await new Client({ paths, pid: 1, whenAbsent: { kind: "stop" } }).call("show", {});
    expect(answer.ok && (answer.data as unknown as { text: string }).text.length).toBe(text.length);
  } finally {
    server.stop(true);
  }
});

test("what is no envelope is no answer", async () => {
  await using place = newPlace();
  using _daemon = fakeDaemon(place.paths.operatorSocket, () => "hello\n");
  expect(await codeOf(client(place).call("pause", {}))).toContain("no reply");
});

test.each([
  ["{}"],
  ["[]"],
  ["null"],
  ["1"],
  ['{"ok":true}'],
  ['{"ok":false}'],
  ['{"ok":false,"error":{"code":1}}'],
  ["{"],
])("no envelope: %s", (line) => {
  expect(parseReply(line)).toBeNull();
});

/** A starter whose "daemon" is a shell script; `$LINK` is what it can link its socket from. */
function starter(place: Place, script: string, check: () => void = () => {}): WhenAbsent {
  const prepare = () => {
    check();
    return ["sh", "-c", script, "sh"];
  };
  return { kind: "start", starter: { env: place.env, prepare } };
}

test("a start: own session, the run's variables dropped, errors in the file, asked until it answers", async () => {
  await using place = newPlace();
  const ready = join(place.dir, "ready.sock");
  using _daemon = fakeDaemon(ready, good);
  const script = `env > '${place.dir}/env'; pwd > '${place.dir}/pwd'; cut -d' ' -f1,5,6 /proc/$$/stat > '${place.dir}/ids';
    echo oops >&2; echo "$@" > '${place.dir}/args'; ln -s '${ready}' '${place.paths.operatorSocket}'; sleep 60`;
  const noted = {
    SLOOP_TOKEN: "t",
    SLOOP_SOCKET: "/s",
    SLOOP_RUN_ID: "r",
    SLOOP_STAGE: "b",
    BUN_OPTIONS: "--x",
    KEPT: "yes",
  };
  Object.assign(place.env, noted);
  const one = client(place, starter(place, script));
  expect(await one.call("daemon", {})).toMatchObject({ ok: true });
  const [pid, group, session] = readFileSync(join(place.dir, "ids"), "utf8").trim().split(" ").map(Number);
  expect({ pid, group, session }).toEqual({ pid: one.startedPid!, group: one.startedPid!, session: one.startedPid! });
  expect(readFileSync(join(place.dir, "args"), "utf8")).toBe("daemon --foreground\n");
  expect(readFileSync(join(place.dir, "pwd"), "utf8")).toBe(`${place.paths.root}\n`);
  const env = readFileSync(join(place.dir, "env"), "utf8");
  expect(env).toContain("KEPT=yes");
  expect(env).not.toMatch(/SLOOP_|BUN_OPTIONS/);
  expect(readFileSync(place.paths.stderrLog, "utf8")).toBe("oops\n");
});

test("a daemon that ends with an error is reported at once, with its last line", async () => {
  await using place = newPlace();
  mkdirSync(dirname(place.paths.stderrLog), { recursive: true });
  writeFileSync(place.paths.stderrLog, "an older failure\n");
  const began = performance.now();
  const failing = client(place, starter(place, "echo first >&2; echo 'the disk is full' >&2; exit 3")).call("show", {});
  expect(await codeOf(failing)).toBe("daemon_unavailable: the daemon did not start: the disk is full");
  expect(performance.now() - began).toBeLessThan(4000);
  expect(await codeOf(client(place, starter(place, "exit 1")).call("show", {}))).toContain("it exited with 1");
});

test("a child that lost the race exits 0: the winner is waited for", async () => {
  await using place = newPlace();
  const one = client(place, starter(place, `touch '${place.dir}/lost'; exit 0`));
  const answer = one.call("daemon", {});
  await until(() => Bun.file(join(place.dir, "lost")).exists());
  using _winner = fakeDaemon(place.paths.operatorSocket, good);
  expect(await answer).toMatchObject({ ok: true });
});

test("what the check refuses starts nothing", async () => {
  await using place = newPlace();
  const refuse = () => {
    throw new SloopError("invalid_arguments", "the flow is broken");
  };
  const one = client(place, starter(place, `touch '${place.dir}/started'`, refuse));
  expect(await codeOf(one.call("show", {}))).toBe("invalid_arguments: the flow is broken");
  expect(await Bun.file(join(place.dir, "started")).exists()).toBe(false);
});

test("a live process that names this socket is waited for before another is started", async () => {
  await using place = newPlace();
  writeIdentity(place.paths.lockFile, ownIdentity(place.paths.operatorSocket));
  const one = client(place, starter(place, `touch '${place.dir}/started'; exit 1`));
  const answer = one.call("daemon", {});
  // The first look has failed once this resolves or later; either way the replacement then answers.
  await Bun.sleep(0);
  using _back = fakeDaemon(place.paths.operatorSocket, good);
  expect(await answer).toMatchObject({ ok: true });
  expect(await Bun.file(join(place.dir, "started")).exists()).toBe(false);
});

test("a follower starts nothing: it tries for its time, then says so", async () => {
  await using place = newPlace();
  const one = client(place, starter(place, `touch '${place.dir}/started'`));
  one.startNoMore(60);
  expect(await codeOf(one.call("show", {}))).toStartWith("daemon_unavailable: ");
  expect(await Bun.file(join(place.dir, "started")).exists()).toBe(false);
  one.startNoMore(20_000);
  const later = one.call("show", {});
  using _daemon = fakeDaemon(place.paths.operatorSocket, good);
  expect(await later).toMatchObject({ ok: true });
});

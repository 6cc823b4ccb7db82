// protocol.md 2: framing, closing, sizes, order, paths and modes, and the one-line shell clients the page promises.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { command } from "../../support/bin.ts";
import { rawClient } from "../../support/socket.ts";
import { until } from "../../support/until.ts";
import { meet, openStage, type Stage } from "./stage.ts";
import { converse, type Json, replies, request, type Wire, wireTo } from "./wire.ts";

setDefaultTimeout(60_000);

let stage: Stage;
let wire: Wire;

beforeAll(async () => {
  stage = await openStage({ paused: true });
  wire = stage.wire;
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

/** `client` is what connects and talks; false when the other side is still open after `ms`. */
async function closesWithin(client: { closed: boolean }, ms: number): Promise<boolean> {
  const deadline = performance.now() + ms;
  while (performance.now() < deadline) {
    if (client.closed) return true;
    await Bun.sleep(5);
  }
  return client.closed;
}

test("2 framing: many requests on one connection, one line each, in order, however they are cut", async () => {
  using client = await rawClient(wire.path);
  const ids = Array.from({ length: 60 }, (_, n) => `n${n}`);
  const text = ids.map((id) => `${request(id.endsWith("7") ? "nope" : "status", {}, { id })}\n`).join("");
  for (let at = 0; at < text.length; at += 97) client.send(text.slice(at, at + 97));
  await until(() => client.lines.length === 60, "60 replies");
  const got = client.lines.map((line) => (JSON.parse(line) as { id: string | null }).id);
  expect(got).toEqual(ids.map((id) => (id.endsWith("7") ? null : id)));
});

test("2 framing: a character split between two writes is one character", async () => {
  using client = await rawClient(wire.path);
  const line = Buffer.from(`${request("daemon", {}, { id: "é😀" })}\n`);
  const middle = line.indexOf(0xf0) + 2;
  client.send(line.subarray(0, middle));
  await Bun.sleep(20);
  client.send(line.subarray(middle));
  expect((await client.reply(0)).id).toBe("é😀");
});

test("2 requests per connection: closed 250 ms after the last reply, not before", async () => {
  using client = await rawClient(wire.path);
  const sent = performance.now();
  client.send(`${request("daemon")}\n`);
  await client.reply(0);
  await client.untilClosed();
  expect(performance.now() - sent).toBeGreaterThan(245);
});

test("2 requests per connection: a request within that time is served, an unfinished line is dropped", async () => {
  // A busy machine may let the 250 ms pass between two lines; then the client reconnects, as the page says.
  for (let attempt = 0; attempt < 20; attempt += 1) {
    using client = await rawClient(wire.path);
    client.send(`${request("daemon")}\n`);
    await client.reply(0);
    client.send(`${request("daemon", {}, { id: "second" })}\n${request("pause").slice(0, 20)}`);
    await client.untilClosed();
    if (client.lines.length < 2) continue;
    expect(client.lines.map((line) => (JSON.parse(line) as { ok: boolean }).ok)).toEqual([true, true]);
    return;
  }
  throw new Error("no second request was served in 20 attempts");
});

test("2 requests per connection: a half-closed client's connection ends with its last reply", async () => {
  const started = performance.now();
  let best = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 30 && best > 200; attempt += 1) {
    const begun = performance.now();
    expect(await replies(wire.path, `${request("daemon")}\n`)).toHaveLength(1);
    best = Math.min(best, performance.now() - begun);
  }
  // The shortest of many: one that had to wait for the 250 ms could never be below them.
  expect(best).toBeLessThan(250);
  expect(performance.now() - started).toBeLessThan(30_000);
});

test("2 end of input: the last request needs no newline, and nothing sent is nothing answered", async () => {
  expect(await replies(wire.path, `${request("daemon")}\n${request("status")}`)).toHaveLength(2);
  expect(await converse(wire.path, "")).toBe("");
});

test("2 request size: what follows a line of one byte too many is not served", async () => {
  const long = request("daemon", {}, { x: "a".repeat(1_048_576) });
  const all = await replies(wire.path, `${request("daemon")}\n${long}\n${request("daemon")}\n`);
  expect(all.map(({ ok }) => ok)).toEqual([true, false]);
  expect(all[1]?.error?.message).toContain("too large");
});

test("2 idle connection: a first line may take its time", async () => {
  using client = await rawClient(wire.path);
  client.send('{"v":1,"id":"late",');
  expect(await closesWithin(client, 600)).toBe(false);
  client.send('"verb":"daemon","args":{}}\n');
  expect((await client.reply(0)).id).toBe("late");
});

test("2 order: the reply to `run` never shows the run it causes, the next request does", async () => {
  const id = await stage.post("order", { trigger: { kind: "manual" } });
  stage.agent(id, meet);
  const both = [
    request("resume"),
    request("run", { trigger: { kind: "now" }, only: [], ticket: id }),
    request("status"),
  ];
  const [, queued, after] = await replies(wire.path, both.join("\n"));
  const { trigger } = queued!.data as { trigger: Json };
  expect(trigger).toEqual({ id: expect.stringMatching(/^TR[0-9]+$/), kind: "now", state: "queued", ticket: id });
  const status = after!.data as { runs: Json[]; queued_triggers: Json[] };
  expect(status.runs).toMatchObject([{ ticket: id }]);
  expect(status.queued_triggers).toEqual([]);
  await wire.ok("pause");
  const { socket } = await stage.worker(id);
  expect(lstatSync(socket).mode & 0o777).toBe(0o600);
  expect(lstatSync(socket).isSocket()).toBe(true);
  const run = (await wire.ok("wait", { run: id }))["id"] as string;
  expect(socket).toBe(join(dirname(wire.path), `w${run.slice(0, 8)}.sock`));
  expect(Buffer.byteLength(socket)).toBeLessThan(104);
  stage.go(id);
  await stage.settled(id);
  await until(() => !existsSync(socket), "the worker socket to be removed");
});

/** 64-bit FNV-1a as 16 hexadecimal digits, as the page defines it. */
function fnv1a(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, "0");
}

test("2.1, 7.1: paths and modes, and who answers", async () => {
  const { scene } = stage;
  const hash = fnv1a(scene.root);
  const socket = join(scene.dir, "run/sloop", hash, "operator.sock");
  const state = join(scene.dir, "state/sloop/repositories", `repo-${hash}`);
  const data = await wire.ok("daemon");
  expect(data).toEqual({
    pid: scene.daemonPid(),
    socket,
    state_dir: state,
    log: join(state, "logs/daemon.ndjson"),
    version: (JSON.parse(readFileSync(join(import.meta.dir, "../../../package.json"), "utf8")) as Json)["version"],
    started: false,
  });
  const mode = (path: string) => lstatSync(path).mode & 0o777;
  expect([mode(socket), mode(dirname(socket)), mode(state)]).toEqual([0o600, 0o700, 0o700]);
  const lock = readFileSync(join(state, "daemon.lock"), "utf8");
  expect(lock).toMatch(/^[^\n]+\n?$/);
  const token = readFileSync(`/proc/${data["pid"]}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ")[19];
  expect(JSON.parse(lock)).toEqual({ pid: data["pid"], started_at_ms: Number(token), socket });
});

test("2.1 `<name>`: what is no letter, digit, dash or underscore becomes a dash, 32 characters at most", async () => {
  await using odd = await openStage({ name: "--Ma Boîte à outils (v2)__ and then some more letters", paused: true });
  const { state_dir } = await odd.wire.ok("daemon");
  // The first 32 characters are `--Ma Boîte à outils (v2)__ and t`.
  expect(state_dir).toEndWith(`/Ma-Bo-te-outils-v2-__-and-t-${fnv1a(odd.scene.root)}`);
});

test("2.1 a runtime folder whose socket would be too long: /tmp/sloop-<euid>", async () => {
  await using long = await openStage({ paused: true });
  const deep = join(long.scene.dir, "d".repeat(60), "e".repeat(30));
  await wireTo((await long.wire.ok("daemon"))["socket"] as string).ok("stop");
  const env = { XDG_RUNTIME_DIR: deep };
  try {
    const socket = (await long.scene.data(["daemon"], env))["socket"];
    const hash = fnv1a(long.scene.root);
    expect(socket).toBe(`/tmp/sloop-${process.geteuid?.()}/${hash}/operator.sock`);
    expect(await wireTo(socket as string).ok("daemon")).toMatchObject({ socket });
  } finally {
    await long.scene.sloop(["stop"], { env });
  }
});

// nc and jq are not on every machine; bun speaks to the socket as nc would, and the shell does the rest.
const nc = `const end = Promise.withResolvers(); let text = ""; const s = require("node:net").connect({ path: process.argv[1], allowHalfOpen: true });
s.on("data", (d) => process.stdout.write(d)); s.on("end", () => { s.end(); process.exit(0); });
process.stdin.on("data", (d) => s.write(d)); process.stdin.on("end", () => { if (process.argv[2] === "-N") s.end(); });`;

test("2 the shell: `printf … | nc -U sock | head -1` ends by itself, with and without half-closing", async () => {
  const line = request("daemon", {}, { id: "sh" });
  for (const flag of ["", "-N"]) {
    const script = `printf '%s\\n' "$LINE" | "$BUN" -e "$NC" "$SOCK" ${flag} | head -1`;
    const env = { LINE: line, BUN: process.execPath, NC: nc, SOCK: wire.path, BUN_BE_BUN: "1" };
    const ran = await command(["sh", "-c", script], { env });
    expect([ran.code, ran.stderr]).toEqual([0, ""]);
    expect(JSON.parse(ran.stdout)).toMatchObject({ id: "sh", ok: true });
  }
});

test("2 the shell: a script keeps one connection for a burst, unfinished line dropped", async () => {
  const lines = ["a", "b", "c"].map((id) => request("status", {}, { id })).join("\n");
  const ran = await command(["sh", "-c", 'printf "%s" "$LINES" | "$BUN" -e "$NC" "$SOCK" | cat'], {
    env: { LINES: lines, BUN: process.execPath, NC: nc, SOCK: wire.path },
  });
  // The last line has no newline and the writer does not half-close: it is an unfinished line, and dropped.
  const ids = ran.stdout
    .trimEnd()
    .split("\n")
    .map((text) => (JSON.parse(text) as Json)["id"]);
  expect(ids).toEqual(["a", "b"]);
});

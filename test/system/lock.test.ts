// One holder at a time, across processes and deaths; sockets nobody else can open.

import { expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLock, readIdentity, writeIdentity } from "../../src/system/lock.ts";
import { answers, connectUnix, listenPrivate } from "../../src/system/socket.ts";
import { until } from "../support/until.ts";

function scratch(): { dir: string } & Disposable {
  const dir = mkdtempSync(join(tmpdir(), "sloop-lock-"));
  return { dir, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream) {
    text += new TextDecoder().decode(chunk);
    if (text.includes("\n")) break;
  }
  return text.trim();
}

function holder(path: string, graceMs = 0) {
  return Bun.spawn([process.execPath, join(import.meta.dir, "lock-holder.ts"), path, String(graceMs)], {
    stdout: "pipe",
  });
}

const noGrace = { graceMs: 0, pollMs: 5 };

test("of several processes racing for the lock exactly one gets it, and its death frees it", async () => {
  using place = scratch();
  const path = join(place.dir, "daemon.lock.db");
  const racers = [holder(path, 500), holder(path, 500), holder(path, 500)];
  try {
    const said = await Promise.all(racers.map((racer) => firstLine(racer.stdout)));
    expect(said.toSorted()).toEqual(["busy", "busy", "held"]);
    expect(await openLock(path, noGrace)).toBeNull();
    const winner = racers[said.indexOf("held")]!;
    winner.kill("SIGKILL");
    await winner.exited;
    const mine = await openLock(path, noGrace);
    expect(mine).not.toBeNull();
    expect(await firstLine(holder(path).stdout)).toBe("busy");
    mine?.close();
    const again = await openLock(path, noGrace);
    again?.close();
    expect(again).not.toBeNull();
  } finally {
    for (const racer of racers) racer.kill("SIGKILL");
  }
});

test("a grace waits for a predecessor that is about to go", async () => {
  using place = scratch();
  const path = join(place.dir, "daemon.lock.db");
  const before = holder(path);
  expect(await firstLine(before.stdout)).toBe("held");
  const waiting = openLock(path, { graceMs: 10_000, pollMs: 5 });
  before.kill("SIGKILL");
  const lock = await waiting;
  expect(lock).not.toBeNull();
  lock?.close();
});

test("a file that is no database is an error, not a lock", async () => {
  using place = scratch();
  const path = join(place.dir, "daemon.lock.db");
  writeFileSync(path, "this is not a database, and longer than a page header would be ".repeat(20));
  await expect(openLock(path, noGrace)).rejects.toThrow();
});

test("the identity line is read back as it was written, and a damaged one is none", () => {
  using place = scratch();
  const path = join(place.dir, "daemon.lock");
  expect(readIdentity(path)).toBeNull();
  const identity = { pid: 48211, started_at_ms: 8271633, socket: "/run/x/operator.sock" };
  writeIdentity(path, identity);
  expect(readFileSync(path, "utf8").split("\n")).toHaveLength(2);
  expect(readIdentity(path)).toEqual(identity);
  writeIdentity(path, { ...identity, started_at_ms: null });
  expect(readIdentity(path)).toEqual({ ...identity, started_at_ms: null });
  for (const text of [
    "",
    "{",
    "[]",
    "null",
    '{"pid":"1"}',
    '{"pid":-1,"started_at_ms":1,"socket":"x"}',
    '{"pid":1,"started_at_ms":1.5,"socket":"x"}',
  ]) {
    writeFileSync(path, text);
    expect(readIdentity(path)).toBeNull();
  }
});

const echo = { data: (socket: { write(data: Uint8Array): number }, data: Uint8Array) => void socket.write(data) };

test("a socket is 0600 under its name, replaces a file nobody serves, and goes when it is stopped", async () => {
  using place = scratch();
  const path = join(place.dir, "ö perator.sock");
  const umask = process.umask();
  const first = listenPrivate(path, echo);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(process.umask()).toBe(umask);
  let got = "";
  const socket = await connectUnix(path, {
    data: (_socket, data) => {
      got += data.toString();
    },
  });
  socket.write("hi");
  await until(() => got === "hi");
  expect(await answers(path)).toBe(true);
  const second = listenPrivate(path, echo);
  first.stop();
  expect(existsSync(path)).toBe(true);
  expect(await answers(path)).toBe(true);
  second.stop();
  expect(existsSync(path)).toBe(false);
  expect(await answers(path)).toBe(false);
});

test("a file left by a killed process is replaced; anything but a socket is not touched", async () => {
  using place = scratch();
  const path = join(place.dir, "operator.sock");
  const code = `Bun.listen({ unix: process.argv[1], socket: { data() {} } }); console.log("up"); setInterval(() => {}, 1e6)`;
  const child = Bun.spawn([process.execPath, "-e", code, path], { stdout: "pipe" });
  expect(await firstLine(child.stdout)).toBe("up");
  child.kill("SIGKILL");
  await child.exited;
  expect(existsSync(path)).toBe(true);
  expect(await answers(path)).toBe(false);
  listenPrivate(path, echo).stop();
  writeFileSync(path, "precious");
  expect(() => listenPrivate(path, echo)).toThrow("is not a socket");
  expect(readFileSync(path, "utf8")).toBe("precious");
  rmSync(path);
  mkdirSync(path);
  expect(() => listenPrivate(path, echo)).toThrow("is not a socket");
});

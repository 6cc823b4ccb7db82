// Who a process is, and how groups and descendants are ended.

import { expect, test } from "bun:test";
import { closeSync, readSync } from "node:fs";
import { gateArgv, gateClosedCode, gateLine } from "../../src/system/gate.ts";
import { openPipe } from "../../src/system/pipe.ts";
import {
  descendantsOf,
  groupAlive,
  groupMembers,
  identify,
  processAlive,
  processStart,
  signalGroup,
  stopDescendants,
  stopGroup,
} from "../../src/system/process.ts";
import { until } from "../support/until.ts";

type Child = { pid: number; exited: Promise<number>; says: Promise<string> } & AsyncDisposable;

/** A shell as leader of its own group, and the first line it says. */
function startShell(script: string, env: Record<string, string> = {}): Child {
  const child = Bun.spawn(["sh", "-c", script], {
    detached: true,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    env: { PATH: process.env["PATH"] ?? "", ...env },
  });
  const says = (async () => {
    const { value } = await child.stdout.getReader().read();
    return new TextDecoder().decode(value).trim();
  })();
  return {
    pid: child.pid,
    exited: child.exited,
    says,
    async [Symbol.asyncDispose]() {
      signalGroup(child.pid, "SIGKILL");
      await child.exited;
    },
  };
}

function randomRunId(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
}

const noSuchPid = 2 ** 22 + 5;

test("a process is itself as long as pid and start agree; every row of the table", async () => {
  const child = startShell("echo up; exec sleep 60");
  await child.says;
  const start = processStart(child.pid);
  expect(start).toBeGreaterThan(0);
  expect(processStart(child.pid)).toBe(start);
  expect(identify(child.pid, start)).toBe("matches");
  expect(identify(child.pid, (start ?? 0) + 1)).toBe("gone");
  expect(identify(child.pid, null)).toBe("unverifiable");
  expect(identify(null, start)).toBe("gone");
  expect(identify(0, start)).toBe("gone");
  expect(identify(-child.pid, start)).toBe("gone");
  expect(identify(noSuchPid, 1)).toBe("gone");
  await child[Symbol.asyncDispose]();
  expect(identify(child.pid, start)).toBe("gone");
  expect(processAlive(child.pid)).toBe(false);
});

test("the start is found behind any command name", async () => {
  await using child = startShell("echo up; exec sleep 60");
  await child.says;
  const odd = Bun.spawn({
    cmd: [
      process.execPath,
      "-e",
      `require("fs").writeFileSync("/proc/self/comm", ") Z 1 1 (("); console.log("up"); setInterval(()=>{},1e6)`,
    ],
    stdout: "pipe",
  });
  try {
    await odd.stdout.getReader().read();
    expect(processStart(odd.pid)).toBeGreaterThanOrEqual(processStart(child.pid) ?? 0);
    expect(processAlive(odd.pid)).toBe(true);
  } finally {
    odd.kill("SIGKILL");
    await odd.exited;
  }
});

test("a zombie has an identity but is neither alive nor a member", async () => {
  // The inner shell never waits for its child, so that one stays a zombie.
  await using child = startShell("sh -c 'exit 0' & echo $!; exec sleep 60");
  const zombie = Number(await child.says);
  await until(() => !processAlive(zombie));
  expect(identify(zombie, processStart(zombie))).toBe("matches");
  expect(groupMembers(child.pid)).toEqual([child.pid]);
});

test("a polite group ends on SIGTERM; one that ignores it is killed after the grace", async () => {
  await using polite = startShell("trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done");
  await polite.says;
  expect(await stopGroup(polite.pid, 30_000)).toBe(true);
  expect(await polite.exited).toBe(7);
  await using stubborn = startShell("trap '' TERM; sleep 60 & echo up; wait; sleep 60");
  await stubborn.says;
  expect(groupMembers(stubborn.pid)).toHaveLength(2);
  const began = performance.now();
  expect(await stopGroup(stubborn.pid, 150)).toBe(true);
  expect(performance.now() - began).toBeGreaterThanOrEqual(150);
  expect(groupAlive(stubborn.pid)).toBe(false);
});

test("no group but a real one is ever signalled", () => {
  for (const group of [0, 1, -1, 1.5, Number.NaN]) {
    expect(signalGroup(group, "SIGTERM")).toBe(false);
    expect(groupAlive(group)).toBe(false);
  }
});

test("descendants are found by the run's id, also after setsid, and nobody else's", async () => {
  if (process.platform !== "linux") return;
  const runId = randomRunId();
  const other = randomRunId();
  await using mine = startShell("setsid sleep 60 & echo up; exec sleep 60", { SLOOP_RUN_ID: runId });
  await using theirs = startShell("echo up; exec sleep 60", { SLOOP_RUN_ID: other, X: `SLOOP_RUN_ID=${runId}` });
  await using longer = startShell("echo up; exec sleep 60", { SLOOP_RUN_ID: `${runId}0`, MY_SLOOP_RUN_ID: runId });
  await Promise.all([mine.says, theirs.says, longer.says]);
  await until(() => descendantsOf(runId).length === 2);
  expect(await stopDescendants(runId, new Set([mine.pid]))).toBe(1);
  expect(descendantsOf(runId).map(({ pid }) => pid)).toEqual([mine.pid]);
  expect(await stopDescendants(runId)).toBe(1);
  expect(descendantsOf(runId)).toEqual([]);
  expect(processAlive(theirs.pid)).toBe(true);
  expect(processAlive(longer.pid)).toBe(true);
});

test("our own pipe is one that a command can open anew", async () => {
  const pipe = openPipe();
  const child = Bun.spawn(["sh", "-c", "echo one > /dev/stdout; echo two > /dev/stderr"], {
    stdin: "ignore",
    stdout: pipe.writeEnd,
    stderr: pipe.writeEnd,
  });
  closeSync(pipe.writeEnd);
  await child.exited;
  const bytes = Buffer.alloc(100);
  expect(bytes.toString("utf8", 0, readSync(pipe.readEnd, bytes, 0, 100, null))).toBe("one\ntwo\n");
  closeSync(pipe.readEnd);
});

function gated(argv: string[]) {
  return Bun.spawn(gateArgv("gate-test", argv), { stdin: "pipe", stdout: "pipe", stderr: "ignore" });
}

test("a gated command keeps its pid, its arguments and an empty input once the gate opens", async () => {
  const child = gated(["sh", "-c", 'echo "$$ $1 [$(cat)] $(env | grep -c SLOOP_GATE)"', "sh", "a  b'\"$x"]);
  expect(processAlive(child.pid)).toBe(true);
  void child.stdin.write(gateLine);
  void child.stdin.end();
  expect(await child.stdout.text()).toBe(`${child.pid} a  b'"$x [] 0\n`);
});

test("a gate that closes never lets the command run", async () => {
  const child = gated(["sh", "-c", "echo ran"]);
  void child.stdin.end();
  expect(await child.stdout.text()).toBe("");
  expect(await child.exited).toBe(gateClosedCode);
});

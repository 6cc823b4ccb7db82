// A run outlives the daemon: killed at any moment, nothing is lost, nothing runs twice.

import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attachSupervised, awaitStartRecord, type Spawned } from "../../src/daemon/supervise.ts";
import { groupAlive, processAlive, processStart, signalGroup } from "../../src/system/process.ts";
import { readStartRecord } from "../../src/system/stage-process.ts";
import { until } from "../support/until.ts";
import { newStage, type Stage } from "./stage.ts";

async function killed(child: { kill(signal: NodeJS.Signals): void; exited: Promise<number> }): Promise<void> {
  child.kill("SIGKILL");
  await child.exited;
}

/** What a later daemon finds. */
async function found(stage: Stage): Promise<Spawned> {
  const start = await awaitStartRecord(stage.request.startRecord);
  if (start.kind !== "spawned") throw new Error("no start record");
  return start.spawned;
}

const untilFile = (name: string) => `while [ ! -e ${name} ]; do sleep 0.01; done`;

async function adopt(stage: Stage, onOutput?: (sequence: number) => void) {
  const { channel, exitRecord } = stage.request;
  const spawned = await found(stage);
  return attachSupervised({ spawned, channel, exitRecord, ...(onOutput === undefined ? {} : { onOutput }) });
}

test("a killed daemon costs neither output nor exit status", async () => {
  await using stage = newStage(`echo before; ${untilFile("go")}; echo after; exit 5`);
  const { starter, pid } = await stage.runElsewhere();
  await until(() => stage.output("stdout") === "before\n");
  await killed(starter);
  writeFileSync(join(stage.work, "go"), "");
  const record = await stage.awaitExitRecord();
  expect(record).toMatchObject({
    pid,
    exit_code: 5,
    signal: null,
    attended: false,
    capture_complete: true,
    last_sequence: 2,
  });
  expect(stage.output("stdout")).toBe("before\nafter\n");
  await until(() => !processAlive(stage.supervisorPid()));
  expect(stage.sockets()).toEqual([]);
  // The next daemon takes the facts from the record.
  expect(await (await adopt(stage)).exited).toMatchObject({ lost: false, facts: { exitCode: 5 } });
});

test("a later daemon takes the channel up: notices, stopping, the exit", async () => {
  await using stage = newStage(
    `trap 'echo bye; exit 9' TERM; ${untilFile("go")}; echo two; while :; do sleep 0.01; done`,
  );
  const { starter } = await stage.runElsewhere();
  await killed(starter);
  const told: number[] = [];
  const process = await adopt(stage, (sequence) => told.push(sequence));
  writeFileSync(join(stage.work, "go"), "");
  await until(() => told.length > 0);
  process.terminate(30_000);
  expect(await process.exited).toMatchObject({ lost: false, facts: { exitCode: 9, attended: true } });
  expect(stage.output("stdout")).toBe("two\nbye\n");
});

test("a daemon that lets go leaves the process to the next", async () => {
  await using stage = newStage(`${untilFile("go")}; exit 4`);
  const first = await stage.run();
  first.detach();
  const second = await adopt(stage);
  writeFileSync(join(stage.work, "go"), "");
  expect(await second.exited).toMatchObject({ facts: { exitCode: 4, attended: true } });
});

test("a gate that was not open when the daemon died never opens, and no record remains", async () => {
  await using stage = newStage("echo ran > ran", { gated: true });
  const { starter, pid } = await stage.runElsewhere();
  const supervisor = stage.supervisorPid();
  expect(await found(stage)).toMatchObject({ pid });
  await killed(starter);
  await until(() => !processAlive(supervisor));
  expect(processAlive(pid)).toBe(false);
  expect(existsSync(join(stage.work, "ran"))).toBe(false);
  expect(existsSync(stage.request.startRecord)).toBe(false);
  expect(existsSync(stage.request.exitRecord)).toBe(false);
  expect(stage.sockets()).toEqual([]);
  // So it may be started, for the first time.
  const process = await stage.run();
  process.gate();
  expect(await process.exited).toMatchObject({ facts: { exitCode: 0 } });
  expect(existsSync(join(stage.work, "ran"))).toBe(true);
});

test("a gate that was open stays open", async () => {
  await using stage = newStage(`echo up; ${untilFile("go")}; echo ran`, { gated: true });
  const { starter } = await stage.runElsewhere();
  starter.stdin.write("gate\n");
  starter.stdin.flush();
  await until(() => stage.output("stdout") === "up\n");
  await killed(starter);
  writeFileSync(join(stage.work, "go"), "");
  expect(await stage.awaitExitRecord()).toMatchObject({ exit_code: 0, attended: false });
  expect(stage.output("stdout")).toBe("up\nran\n");
});

test("a daemon that dies before it takes the channel has started nothing", async () => {
  await using stage = newStage("echo ran > ran");
  const code = `
    const request = JSON.parse(process.argv[2]);
    const told = Buffer.from(JSON.stringify({ ...request, starter: process.pid }) + "\\n");
    const child = Bun.spawn([process.execPath, ${JSON.stringify(join(import.meta.dir, "entry.ts"))}], {
      stdin: told, stdout: "pipe", stderr: "ignore", detached: true });
    await child.stdout.getReader().read();
    console.log("ready");
    setInterval(() => {}, 1e6);`;
  const script = join(stage.dir, "early.ts");
  writeFileSync(script, code);
  mkdirSync(join(stage.dir, "run/x"), { recursive: true });
  const starter = Bun.spawn([process.execPath, script, JSON.stringify(stage.request)], { stdout: "pipe" });
  await starter.stdout.getReader().read();
  const supervisor = stage.supervisorPid();
  expect(processAlive(supervisor)).toBe(true);
  const later = awaitStartRecord(stage.request.startRecord);
  await killed(starter);
  await until(() => !processAlive(supervisor));
  expect(await later).toEqual({ kind: "none" });
  expect(existsSync(stage.request.startRecord)).toBe(false);
  expect(existsSync(join(stage.work, "ran"))).toBe(false);
  expect(stage.sockets()).toEqual([]);
});

test("an end that nobody attended is told so, also when daemon and command die together", async () => {
  for (const order of ["daemon first", "command first"]) {
    await using stage = newStage("echo up; exec sleep 600");
    const { starter, pid } = await stage.runElsewhere();
    const supervisor = stage.supervisorPid();
    // Stopped, so that it learns of both deaths at once.
    process.kill(supervisor, "SIGSTOP");
    if (order === "daemon first") await killed(starter);
    process.kill(pid, "SIGKILL");
    if (order === "command first") await killed(starter);
    process.kill(supervisor, "SIGCONT");
    expect(await stage.awaitExitRecord()).toMatchObject({ signal: "SIGKILL", exit_code: null, attended: false });
  }
});

test("a supervisor that dies alone leaves a lost execution, and its command in its group", async () => {
  await using stage = newStage("echo up; exec sleep 600");
  const process = await stage.run();
  const began = performance.now();
  globalThis.process.kill(stage.supervisorPid(), "SIGKILL");
  expect(await process.exited).toEqual({ lost: true });
  expect(performance.now() - began).toBeGreaterThan(1900);
  expect(processStart(process.pid)).toBe(process.pidStartTime);
  expect(groupAlive(process.pid)).toBe(true);
  signalGroup(process.pid, "SIGKILL");
});

test("a re-adopted process without supervisor is watched by its identity, and lost once it is gone", async () => {
  await using stage = newStage("exec sleep 600");
  const { starter, pid } = await stage.runElsewhere();
  await until(() => readStartRecord(stage.request.startRecord)?.spawned);
  process.kill(stage.supervisorPid(), "SIGKILL");
  await killed(starter);
  const adopted = await adopt(stage);
  let over = false;
  void adopted.exited.then(() => {
    over = true;
  });
  await until(() => processStart(pid) === adopted.pidStartTime);
  expect(over).toBe(false);
  signalGroup(pid, "SIGKILL");
  expect(await adopted.exited).toEqual({ lost: true });
});

test("a process that leaves no record is lost as soon as it is gone", async () => {
  const child = Bun.spawn(["sleep", "600"], { detached: true });
  const spawned = { pid: child.pid, pidStartTime: processStart(child.pid), processGroupId: child.pid, startedAtMs: 0 };
  const adopted = await attachSupervised({ spawned, channel: null, exitRecord: null });
  await killed(child);
  expect(await adopted.exited).toEqual({ lost: true });
});

test("a record of another process is not taken for this one's", async () => {
  await using stage = newStage("exit 3");
  const process = await stage.run();
  await process.exited;
  const stranger = { ...(await found(stage)), pidStartTime: 1 };
  const adopted = await attachSupervised({ spawned: stranger, channel: null, exitRecord: stage.request.exitRecord });
  expect(await adopted.exited).toEqual({ lost: true });
  writeFileSync(stage.request.exitRecord, '{"pid":');
  expect(stage.exitRecord()).toBeNull();
});

test("a signal to everybody ends the command, not the supervisor", async () => {
  await using stage = newStage("trap 'exit 6' TERM; echo up; while :; do sleep 0.01; done");
  const { starter, pid } = await stage.runElsewhere();
  await until(() => stage.output("stdout") === "up\n");
  for (const victim of [stage.supervisorPid(), pid]) process.kill(victim, "SIGTERM");
  expect(await stage.awaitExitRecord()).toMatchObject({ exit_code: 6, attended: true });
  await killed(starter);
});

test("a supervisor killed while it starts leaves no claim behind", async () => {
  await using stage = newStage("echo ran > ran; sleep 600", { gated: true });
  // Killed by its own command's look-up: the directory is read before anything is spawned.
  const killer = until(() => readStartRecord(stage.request.startRecord)).then(({ supervisor_pid }) => {
    expect(supervisor_pid).toBeGreaterThan(1);
    process.kill(supervisor_pid, "SIGKILL");
  });
  const started = await stage.start();
  await killer.catch(() => undefined);
  if (started.ok) expect(await started.process.exited).toEqual({ lost: true });
  else expect(existsSync(stage.request.startRecord)).toBe(false);
  expect(existsSync(join(stage.work, "ran"))).toBe(false);
});

test("a damaged or missing start record is none", async () => {
  await using stage = newStage("true");
  expect(await awaitStartRecord(stage.request.startRecord)).toEqual({ kind: "none" });
  await (await stage.run()).exited;
  expect((await awaitStartRecord(stage.request.startRecord)).kind).toBe("spawned");
  const whole = JSON.parse(readFileSync(stage.request.startRecord, "utf8"));
  writeFileSync(
    stage.request.startRecord,
    JSON.stringify({ supervisor_pid: whole.supervisor_pid, supervisor_start_time: 1 }),
  );
  expect(await awaitStartRecord(stage.request.startRecord)).toEqual({ kind: "none" });
});

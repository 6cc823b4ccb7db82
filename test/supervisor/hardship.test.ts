// A supervisor in trouble: no room for its records, stopped, given up, or its daemon taken together with its command.

import { expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { attachSupervised } from "../../src/daemon/supervise.ts";
import { claimExecution, claimHeld, completeClaim, withdrawClaim } from "../../src/supervisor/record.ts";
import { processAlive, processStart, processStopped, signalGroup } from "../../src/system/process.ts";
import { connectUnix } from "../../src/system/socket.ts";
import { readStartRecord } from "../../src/system/stage-process.ts";
import { until } from "../support/until.ts";
import { newStage, type Stage } from "./stage.ts";

const untilFile = (name: string) => `while [ ! -e ${name} ]; do sleep 0.01; done`;

async function adopt(stage: Stage) {
  const { channel, exitRecord, startRecord } = stage.request;
  const facts = await until(() => readStartRecord(startRecord)?.spawned, "the completed start record");
  const spawned = {
    pid: facts.pid,
    pidStartTime: facts.pid_start_time,
    processGroupId: facts.process_group_id,
    startedAtMs: facts.started_at_ms,
  };
  return attachSupervised({ spawned, channel, exitRecord, startRecord });
}

test("an exit record that cannot be written costs nothing: the end is told, told again, and written once it can be", async () => {
  await using stage = newStage(`${untilFile("go")}; exit 3`);
  const process = await stage.run();
  // A folder in its place refuses the record, as a full disk would.
  mkdirSync(stage.request.exitRecord);
  const supervisor = stage.supervisorPid();
  writeFileSync(join(stage.work, "go"), "");
  const told = { lost: false, facts: { exitCode: 3, signal: null, attended: true } };
  expect(await process.exited).toMatchObject(told);
  expect(processAlive(supervisor)).toBe(true);
  // A later daemon learns it from the channel.
  expect(await (await adopt(stage)).exited).toMatchObject(told);
  rmSync(stage.request.exitRecord, { recursive: true });
  expect(await stage.awaitExitRecord()).toMatchObject({ exit_code: 3, signal: null, attended: true });
  await until(() => !processAlive(supervisor), "the supervisor to end");
  expect(stage.sockets()).toEqual([]);
}, 30_000);

test("an exit record nobody can want any more is not waited for", async () => {
  await using stage = newStage(untilFile("go"));
  const process = await stage.run();
  const supervisor = stage.supervisorPid();
  mkdirSync(stage.request.exitRecord);
  writeFileSync(join(stage.work, "go"), "");
  await process.exited;
  rmSync(join(stage.dir, "exits"), { recursive: true });
  await until(() => !processAlive(supervisor), "the supervisor to end");
  expect(existsSync(join(stage.dir, "exits"))).toBe(false);
}, 30_000);

test("a claim is completed where it lies when there is no room for another file", () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "slt-full-")));
  const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", dir]).exitCode === 0;
  try {
    // Without the right to mount there is no small disk to fill.
    expect(mounted || process.geteuid?.() !== 0).toBe(true);
    if (!mounted) return;
    const path = join(dir, "0-1-action.start.json");
    claimExecution(path);
    expect(() => writeFileSync(join(dir, "ballast"), Buffer.alloc(1 << 20))).toThrow("ENOSPC");
    completeClaim(path, { pid: 42, pid_start_time: 7, process_group_id: 42, started_at_ms: 1_803_866_400_000 });
    expect(readStartRecord(path)).toEqual({
      supervisor_pid: process.pid,
      supervisor_start_time: processStart(process.pid),
      spawned: { pid: 42, pid_start_time: 7, process_group_id: 42, started_at_ms: 1_803_866_400_000 },
    });
    // A claim that there is no room for is none.
    const other = join(dir, "1-1-action.start.json");
    expect(() => claimExecution(other)).toThrow("ENOSPC");
    expect(existsSync(other)).toBe(false);
  } finally {
    if (mounted) Bun.spawnSync(["umount", "-l", dir]);
    rmSync(dir, { recursive: true, force: true });
  }
});

test("only one's own claim is withdrawn", () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "slt-claim-")));
  try {
    const path = join(dir, "exits/0-1-action.start.json");
    claimExecution(path);
    expect(claimHeld(path)).toBe(true);
    writeFileSync(path, JSON.stringify({ supervisor_pid: process.pid, supervisor_start_time: 1 }));
    expect(claimHeld(path)).toBe(false);
    withdrawClaim(path);
    expect(existsSync(path)).toBe(true);
    rmSync(path);
    expect(claimHeld(path)).toBe(false);
    withdrawClaim(path);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test("a process that is gone under a stopped supervisor can be given up: lost, and the supervisor goes too", async () => {
  for (const adopted of [false, true]) {
    await using stage = newStage("echo up; exec sleep 600");
    const started = adopted ? null : await stage.run();
    if (adopted) {
      const { starter } = await stage.runElsewhere();
      starter.kill("SIGKILL");
      await starter.exited;
    }
    const watched = started ?? (await adopt(stage));
    const supervisor = stage.supervisorPid();
    process.kill(supervisor, "SIGSTOP");
    await until(() => processStopped(supervisor), "the supervisor to stop");
    signalGroup(watched.pid, "SIGKILL");
    await until(() => !processAlive(watched.pid), "the command to end");
    watched.giveUp();
    expect(await watched.exited).toEqual({ lost: true });
    await until(() => !processAlive(supervisor), "the supervisor to end");
    expect(stage.exitRecord()).toBeNull();
  }
}, 30_000);

test("a supervisor that goes on after all, before it was ended, is believed", async () => {
  await using stage = newStage(`${untilFile("go")}; exit 4`);
  const watched = await stage.run();
  const supervisor = stage.supervisorPid();
  process.kill(supervisor, "SIGSTOP");
  await until(() => processStopped(supervisor), "the supervisor to stop");
  writeFileSync(join(stage.work, "go"), "");
  await until(() => !processAlive(watched.pid), "the command to end");
  watched.giveUp();
  process.kill(supervisor, "SIGCONT");
  expect(await watched.exited).toMatchObject({ lost: false, facts: { exitCode: 4 } });
  expect(stage.exitRecord()).toMatchObject({ exit_code: 4 });
});

test("a supervisor that still drains the output is not given up", async () => {
  if (process.platform !== "linux") return;
  await using stage = newStage(
    "setsid env -u SLOOP_RUN_ID sh -c 'echo $$ > pid; exec sleep 600' & while [ ! -s pid ]; do sleep 0.01; done; exit 2",
  );
  const watched = await stage.run();
  await until(() => !processAlive(watched.pid), "the command to end");
  const hidden = Number(readFileSync(join(stage.work, "pid"), "utf8"));
  try {
    watched.giveUp();
    expect(await watched.exited).toMatchObject({ lost: false, facts: { exitCode: 2, holders: [hidden] } });
  } finally {
    process.kill(hidden, "SIGKILL");
  }
}, 20_000);

test("a supervisor whose execution is somebody else's by now writes nothing", async () => {
  await using stage = newStage(`${untilFile("go")}; exit 5`);
  const { starter, pid } = await stage.runElsewhere();
  const supervisor = stage.supervisorPid();
  await until(() => readStartRecord(stage.request.startRecord)?.spawned, "the completed start record");
  const another = `${JSON.stringify({ supervisor_pid: 1, supervisor_start_time: 1 })}\n`;
  writeFileSync(stage.request.startRecord, another);
  writeFileSync(join(stage.work, "go"), "");
  await until(() => !processAlive(supervisor), "the supervisor to end");
  expect(processAlive(pid)).toBe(false);
  expect(stage.exitRecord()).toBeNull();
  expect(readFileSync(stage.request.startRecord, "utf8")).toBe(another);
  starter.kill("SIGKILL");
  await starter.exited;
});

test("a daemon that is taken with its command did not attend its end, whichever went first", async () => {
  for (const order of ["daemon first", "command first"]) {
    await using stage = newStage("echo up; exec sleep 600");
    const { starter, pid } = await stage.runElsewhere();
    await until(() => stage.output("stdout") === "up\n");
    if (order === "daemon first") {
      starter.kill("SIGKILL");
      signalGroup(pid, "SIGKILL");
    } else {
      signalGroup(pid, "SIGKILL");
      // Reaped, so its supervisor has seen the end while the daemon was there.
      await until(() => processStart(pid) === null, "the command to be reaped");
      starter.kill("SIGKILL");
    }
    await starter.exited;
    expect(await stage.awaitExitRecord()).toMatchObject({ signal: "SIGKILL", attended: false });
  }
});

test("a dead daemon does not attend, however long its end of the channel stays open", async () => {
  const dead = Bun.spawn(["true"]);
  await dead.exited;
  for (const [pid, attended] of [[dead.pid, false] as const, [process.pid, true] as const]) {
    await using stage = newStage("echo up; exec sleep 600");
    const { starter, pid: command } = await stage.runElsewhere();
    await until(() => stage.output("stdout") === "up\n");
    const heard: string[] = [];
    const daemon = await connectUnix(stage.request.channel, {
      data: (_socket, bytes) => void heard.push(bytes.toString()),
    });
    await until(() => heard.join("").includes('"spawned"'), "the channel to be ours");
    daemon.write(`${JSON.stringify({ type: "daemon", pid, pid_start_time: processStart(process.pid) })}\n`);
    signalGroup(command, "SIGKILL");
    expect(await stage.awaitExitRecord()).toMatchObject({ signal: "SIGKILL", attended });
    daemon.terminate();
    starter.kill("SIGKILL");
    await starter.exited;
  }
});

test("a daemon that is busy while its connection is made hears of the shortest command all the same", async () => {
  const connect = Bun.connect;
  const busy = ((options: Parameters<typeof connect>[0]) => {
    const connecting = connect(options);
    Bun.sleepSync(1000);
    return connecting;
  }) as typeof connect;
  await using stage = newStage("exit 7");
  try {
    Bun.connect = busy;
    const started = await stage.start();
    if (!started.ok) throw new Error(started.problem);
    expect(await started.process.exited).toMatchObject({ lost: false, facts: { exitCode: 7, attended: true } });
  } finally {
    Bun.connect = connect;
  }
});

// A stage process under its supervisor: what it sees, what is captured, how its end is told.

import { expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { groupAlive, processAlive, processStart } from "../../src/system/process.ts";
import { readStartRecord } from "../../src/system/stage-process.ts";
import { until } from "../support/until.ts";
import { newStage } from "./stage.ts";

test("exit status, both streams and every key of both records", async () => {
  await using stage = newStage("echo out; echo err >&2; exit 3");
  const process = await stage.run();
  const ending = await process.exited;
  expect(stage.output("stdout")).toBe("out\n");
  expect(stage.output("stderr")).toBe("err\n");
  expect(stage.records().map((record) => record.sequence)).toEqual([1, 2]);
  expect(stage.records()[0]).toMatchObject({ source: "stage", stage: "test", attempt: 1 });
  const record = JSON.parse(readFileSync(stage.request.exitRecord, "utf8"));
  expect(Object.keys(record)).toEqual([
    "pid",
    "pid_start_time",
    "process_group_id",
    "started_at_ms",
    "exit_code",
    "signal",
    "finished_at_ms",
    "capture_complete",
    "stragglers_killed",
    "last_sequence",
    "attended",
  ]);
  expect(record).toMatchObject({
    pid: process.pid,
    pid_start_time: process.pidStartTime,
    process_group_id: process.pid,
    exit_code: 3,
    signal: null,
    capture_complete: true,
    stragglers_killed: 0,
    last_sequence: 2,
    attended: true,
  });
  expect(record.finished_at_ms).toBeGreaterThanOrEqual(record.started_at_ms);
  expect(ending).toMatchObject({ lost: false, facts: { exitCode: 3, signal: null, lastSequence: 2, attended: true } });
  expect(readStartRecord(stage.request.startRecord)).toMatchObject({
    spawned: { pid: process.pid, pid_start_time: process.pidStartTime, process_group_id: process.pid },
  });
  expect(processAlive(stage.supervisorPid())).toBe(false);
  expect(stage.sockets()).toEqual([]);
});

test("the command has its directory, exactly its environment, an empty input and its own group", async () => {
  const script = "pwd; cat; echo $$; ps -o pgid= -p $$ | tr -d ' '; exec env -0";
  await using stage = newStage(script, { env: { SLOOP_TOKEN: "s3cret", ODD: "a b\nc" } });
  const started = await stage.run();
  await started.exited;
  const [directory, pid, group, ...rest] = stage.output("stdout").split("\n");
  expect(directory).toBe(stage.work);
  expect([pid, group]).toEqual([String(started.pid), String(started.pid)]);
  const ofShell = /^(PWD|OLDPWD|SHLVL|_)=/;
  const variables = rest
    .join("\n")
    .split("\0")
    .filter((one) => one !== "" && !ofShell.test(one));
  const given = Object.entries(stage.request.environment).map(([name, value]) => `${name}=${value}`);
  expect(variables.toSorted()).toEqual(given.toSorted());
});

test("the outputs are pipes, which a command may open anew", async () => {
  await using stage = newStage("echo again > /dev/stdout; echo aside > /dev/stderr");
  expect(await (await stage.run()).exited).toMatchObject({ facts: { exitCode: 0 } });
  expect(stage.output("stdout")).toBe("again\n");
  expect(stage.output("stderr")).toBe("aside\n");
});

test("the supervisor itself carries nothing of the run in its environment", async () => {
  await using stage = newStage("sleep 60", { env: { SLOOP_TOKEN: "s3cret" } });
  const process = await stage.run();
  const shown = readFileSync(`/proc/${stage.supervisorPid()}/environ`, "utf8");
  expect(shown).not.toContain("SLOOP_RUN_ID");
  expect(shown).not.toContain("s3cret");
  process.kill();
  await process.exited;
});

test("a death by signal has no code, an exit of 137 has", async () => {
  await using killed = newStage("kill -9 $$");
  expect(await (await killed.run()).exited).toMatchObject({ facts: { exitCode: null, signal: "SIGKILL" } });
  await using coded = newStage("exit 137");
  expect(await (await coded.run()).exited).toMatchObject({ facts: { exitCode: 137, signal: null } });
});

test("a command that ends at once has a start time all the same", async () => {
  await using stage = newStage(["true"]);
  const process = await stage.run();
  expect(process.pidStartTime).toBeGreaterThan(0);
  expect(await process.exited).toMatchObject({ facts: { exitCode: 0 } });
});

test("what cannot be started says why and leaves no record, gated or not", async () => {
  for (const gated of [false, true]) {
    await using missing = newStage(["no-such-program-here"], { gated });
    expect(await missing.start()).toMatchObject({
      ok: false,
      problem: expect.stringContaining("no-such-program-here"),
    });
    await using nowhere = newStage(["true"], { gated, cwd: "/no/such/folder" });
    expect(await nowhere.start()).toMatchObject({ ok: false });
    await using file = newStage([join(import.meta.dir, "stage.ts")], { gated });
    expect(await file.start()).toMatchObject({ ok: false });
    for (const stage of [missing, nowhere, file]) {
      expect(existsSync(stage.request.startRecord)).toBe(false);
      expect(existsSync(stage.request.exitRecord)).toBe(false);
      expect(stage.sockets()).toEqual([]);
    }
  }
});

test("a supervisor program that is missing or is something else is a problem, not a crash", async () => {
  await using stage = newStage(["true"]);
  const { startSupervised } = await import("../../src/daemon/supervise.ts");
  for (const command of [["/no/such/program"], ["true"], ["echo", "hello"]]) {
    expect(await startSupervised(stage.request, { command, environment: process.env })).toMatchObject({ ok: false });
  }
});

test("no execution is ever started twice", async () => {
  await using stage = newStage("echo ran >> ran");
  await (await stage.run()).exited;
  const before = readFileSync(stage.request.startRecord, "utf8");
  expect(await stage.start()).toMatchObject({ ok: false, problem: expect.stringContaining("started before") });
  expect(readFileSync(join(stage.work, "ran"), "utf8")).toBe("ran\n");
  expect(readFileSync(stage.request.startRecord, "utf8")).toBe(before);
  expect(stage.exitRecord()).not.toBeNull();
});

test("a program named by a path is looked for in the command's directory, gated or not", async () => {
  for (const gated of [false, true]) {
    await using stage = newStage(["./my töol", "a b", ""], { gated });
    writeFileSync(join(stage.work, "my töol"), '#!/bin/sh\nprintf "[%s]" "$@"\n', { mode: 0o755 });
    const process = await stage.run();
    process.gate();
    await process.exited;
    expect(stage.output("stdout")).toBe("[a b][]");
  }
});

test("a gated command waits, keeps its pid, and sees an empty input", async () => {
  await using stage = newStage("echo $$ $(cat)x", { gated: true });
  const process = await stage.run();
  expect(processStart(process.pid)).toBe(process.pidStartTime);
  expect(stage.records()).toEqual([]);
  process.gate();
  expect(await process.exited).toMatchObject({ facts: { exitCode: 0 } });
  expect(stage.output("stdout")).toBe(`${process.pid} x\n`);
});

test("a gated command that is stopped before its gate opens never ran", async () => {
  await using stage = newStage("echo ran", { gated: true });
  const process = await stage.run();
  process.terminate(30_000);
  expect(await process.exited).toMatchObject({ facts: { signal: "SIGTERM", lastSequence: 0 } });
  expect(stage.output("stdout")).toBe("");
});

test("the channel is a private socket", async () => {
  await using stage = newStage("sleep 60");
  const process = await stage.run();
  expect(statSync(stage.request.channel).mode & 0o777).toBe(0o600);
  expect(statSync(join(stage.dir, "run/x")).mode & 0o777).toBe(0o700);
  process.kill();
  await process.exited;
});

test("terminate asks first and kills after the grace; kill does not ask", async () => {
  await using polite = newStage("trap 'echo saved; exit 7' TERM; echo up; while :; do sleep 0.01; done");
  const asked = await polite.run();
  await until(() => polite.output("stdout") === "up\n");
  asked.terminate(30_000);
  expect(await asked.exited).toMatchObject({ facts: { exitCode: 7 } });
  expect(polite.output("stdout")).toBe("up\nsaved\n");
  await using stubborn = newStage("trap '' TERM; echo up; while :; do sleep 0.01; done");
  const told = await stubborn.run();
  await until(() => stubborn.output("stdout") === "up\n");
  told.terminate(100);
  expect(await told.exited).toMatchObject({ facts: { signal: "SIGKILL" } });
  await using other = newStage("trap 'exit 0' TERM; sleep 60");
  const hit = await other.run();
  hit.kill();
  expect(await hit.exited).toMatchObject({ facts: { signal: "SIGKILL" } });
});

test("sequences go on from one execution of a run to the next", async () => {
  await using first = newStage("echo one");
  await (await first.run()).exited;
  await using second = newStage("echo two");
  second.request.outputLog = first.request.outputLog;
  await (await second.run()).exited;
  expect(first.records().map(({ sequence, text }) => [sequence, text])).toEqual([
    [1, "one\n"],
    [2, "two\n"],
  ]);
});

test("new output is told soon, at most ten times a second", async () => {
  await using stage = newStage("i=0; while [ $i -lt 100 ]; do echo $i; sleep 0.003; i=$((i+1)); done");
  const told: number[] = [];
  const began = performance.now();
  const process = await stage.run((sequence) => told.push(sequence));
  await process.exited;
  const tenths = (performance.now() - began) / 100;
  expect(told.length).toBeGreaterThan(1);
  expect(told.length).toBeLessThanOrEqual(tenths + 2);
  expect(told).toEqual(told.toSorted((a, b) => a - b));
});

test("a child in the background that holds the output open is killed and counted", async () => {
  await using stage = newStage("sleep 600 & echo $! > pid; echo done");
  const process = await stage.run();
  const began = performance.now();
  expect(await process.exited).toMatchObject({ facts: { exitCode: 0, stragglersKilled: 1, captureComplete: true } });
  expect(performance.now() - began).toBeLessThan(5000);
  expect(processAlive(Number(readFileSync(join(stage.work, "pid"), "utf8")))).toBe(false);
  expect(stage.output("stdout")).toBe("done\n");
});

test("a grandchild that left the group is found by the run's id, nobody else's is", async () => {
  if (globalThis.process.platform !== "linux") return;
  await using other = newStage("echo up; exec sleep 600");
  const neighbour = await other.run();
  await using stage = newStage(
    "setsid sh -c 'echo $$ > pid; exec sleep 600' & while [ ! -s pid ]; do sleep 0.01; done",
  );
  const ending = await (await stage.run()).exited;
  expect(ending).toMatchObject({ facts: { exitCode: 0, stragglersKilled: 1 } });
  expect(processAlive(Number(readFileSync(join(stage.work, "pid"), "utf8")))).toBe(false);
  expect(processAlive(neighbour.pid)).toBe(true);
});

test("who hides and holds the output is left alone after five seconds, and named", async () => {
  if (globalThis.process.platform !== "linux") return;
  await using stage = newStage(
    "setsid env -u SLOOP_RUN_ID sh -c 'echo $$ > pid; exec sleep 600' & while [ ! -s pid ]; do sleep 0.01; done; echo done",
  );
  const process = await stage.run();
  const hidden = await until(() =>
    Number(existsSync(join(stage.work, "pid")) && readFileSync(join(stage.work, "pid"), "utf8")),
  );
  try {
    const began = performance.now();
    const ending = await process.exited;
    expect(performance.now() - began).toBeLessThan(8000);
    expect(ending).toMatchObject({ facts: { exitCode: 0, captureComplete: true, stragglersKilled: 0 } });
    expect(ending.lost ? [] : ending.facts.holders).toContain(hidden);
    expect(processAlive(hidden)).toBe(true);
    expect(stage.output("stdout")).toBe("done\n");
  } finally {
    globalThis.process.kill(hidden, "SIGKILL");
  }
}, 15_000);

test("any bytes are captured as they were", async () => {
  await using stage = newStage("cat bytes; cat bytes >&2");
  const bytes = new Uint8Array(300_000).map((_, index) => (index * 7919) >> 3);
  writeFileSync(join(stage.work, "bytes"), bytes);
  await (await stage.run()).exited;
  const { recordContent } = await import("../../src/system/output.ts");
  for (const stream of ["stdout", "stderr"]) {
    const parts = stage
      .records()
      .filter((record) => record.stream === stream)
      .map(recordContent);
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
    expect(parts.every((part) => part.length <= 8192)).toBe(true);
  }
});

test("much output is captured whole, without the supervisor growing with it", async () => {
  await using stage = newStage("head -c 30000000 /dev/zero | tr '\\0' 'x'; echo; sleep 60");
  const process = await stage.run();
  const last = await until(() => {
    const size = existsSync(stage.request.outputLog) ? statSync(stage.request.outputLog).size : 0;
    return size > 30_000_001 && readFileSync(stage.request.outputLog).subarray(-200).toString().includes('\\n"}\n');
  });
  expect(last).toBe(true);
  const status = readFileSync(`/proc/${stage.supervisorPid()}/status`, "utf8");
  expect(Number(/VmHWM:\s+([0-9]+) kB/.exec(status)?.[1])).toBeLessThan(200_000);
  process.kill();
  await process.exited;
  const total = stage.records().reduce((sum, record) => sum + (record.text ?? "").length, 0);
  expect(total).toBe(30_000_001);
});

test("the run log's instants are the daemon clock's", async () => {
  await using stage = newStage("cat; echo hi");
  const clock = join(stage.dir, "clock");
  writeFileSync(clock, "1700000000250");
  const { startSupervised } = await import("../../src/daemon/supervise.ts");
  const environment = { ...process.env, SLOOP_TEST_CLOCK_PATH: clock };
  const { supervisorCommand } = await import("./stage.ts");
  const started = await startSupervised(stage.request, { command: supervisorCommand, environment });
  if (!started.ok) throw new Error(started.problem);
  const ending = await started.process.exited;
  expect(ending).toMatchObject({ facts: { startedAtMs: 1_700_000_000_250, finishedAtMs: 1_700_000_000_250 } });
  expect(stage.records()[0]?.timestamp).toBe("2023-11-14T22:13:20.25Z");
});

test("a log that cannot be written makes the capture incomplete", async () => {
  if (!existsSync("/dev/full")) return;
  await using stage = newStage("echo lost");
  stage.request.outputLog = "/dev/full";
  expect(await (await stage.run()).exited).toMatchObject({
    facts: { exitCode: 0, captureComplete: false, lastSequence: 0 },
  });
  expect(groupAlive(stage.supervisorPid())).toBe(false);
});

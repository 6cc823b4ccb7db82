// What a run and its daemon survive: a full disk at the wrong moment, a stopped supervisor, a death of both, a wiped runtime directory.

import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { processAlive } from "../../src/system/process.ts";
import { arm, disarm, hookEnv, newScene, reached, release, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

type RunRow = { id: string; pid: number };

async function runningAgent(scene: Scene): Promise<RunRow> {
  await until(() => scene.count("agent") > 0, "the agent");
  return until(
    () => scene.query<RunRow>("select id, pid from runs where state = 'running'")[0],
    "the run to be running",
  );
}

function supervisorOf(scene: Scene, runId: string, execution: string): number {
  const path = join(scene.stateDir(), "runs", runId, "exits", `${execution}.start.json`);
  return (JSON.parse(readFileSync(path, "utf8")) as { supervisor_pid: number }).supervisor_pid;
}

/** Stops a process; disposing ends it, also where the test failed before anybody else did. */
function stopProcess(pid: number): Disposable {
  process.kill(pid, "SIGSTOP");
  return {
    [Symbol.dispose]() {
      if (processAlive(pid)) process.kill(pid, "SIGKILL");
    },
  };
}

function eventsOf(scene: Scene, name: string) {
  return scene.events().filter(({ event }) => event === name);
}

const socketOf = (scene: Scene) =>
  (JSON.parse(readFileSync(join(scene.stateDir(), "daemon.lock"), "utf8")) as { socket: string }).socket;

function fill(directory: string): void {
  for (const size of [1 << 20, 65_536, 4096]) {
    for (let n = 0; n < 900; n += 1) {
      try {
        writeFileSync(join(directory, `ballast-${size}-${n}`), Buffer.alloc(size));
      } catch {
        break;
      }
    }
  }
}

test("an agent that ends well on a full state disk has ended well, though its output was cut", async () => {
  const agent =
    'echo run >> "$COUNT/agent"; while [ ! -e "$COUNT/go" ]; do sleep 0.02; done; head -c 100000 /dev/zero | tr "\\0" x; echo w > w; git add -A; git commit -qm work; touch "$COUNT/done"';
  await using scene = await newScene({ agent });
  const small = join(scene.dir, "small");
  mkdirSync(small);
  const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", small]).exitCode === 0;
  // Without the right to mount there is no small disk to fill.
  expect(mounted || process.geteuid?.() !== 0).toBe(true);
  if (!mounted) return;
  const env = { XDG_STATE_HOME: small };
  try {
    await scene.data(["post", scene.ticket("first")], env);
    await until(() => scene.count("agent") === 1, "the agent");
    await until(
      () =>
        Bun.spawnSync(["sh", "-c", `cat ${small}/sloop/repositories/*/runs/*/exits/*.start.json`]).stdout.includes(
          "pid_start_time",
        ),
      "the start record",
    );
    fill(small);
    writeFileSync(join(scene.outside, "go"), "");
    await until(() => existsSync(join(scene.outside, "done")), "the agent's work");
    await until(async () => {
      const gate = (await scene.data(["status"], env))["gate"] as { storage: { writable: boolean } };
      return !gate.storage.writable;
    }, "the storage gate to close");
    Bun.spawnSync(["sh", "-c", `rm -f ${small}/ballast-*`]);
    await until(
      async () => {
        const ticket = (await scene.data(["show", "TICK-1"], env))["value"] as { state: string };
        return ticket.state !== "claimed";
      },
      "the run to settle",
      40_000,
    );
    const run = (await scene.data(["show", "TICK-1-r1"], env))["value"] as { state: string; stages: unknown[] };
    expect(run.stages[0]).toMatchObject({ stage: "build", exit_code: 0 });
    expect(scene.count("agent")).toBe(1);
    expect(run.state).not.toBe("orphaned");
    await scene.data(["stop"], env);
  } finally {
    Bun.spawnSync(["umount", "-l", small]);
  }
}, 120_000);

test("a run whose agent died under a stopped supervisor is orphaned, and no process is left", async () => {
  for (const restarted of [false, true]) {
    await using scene = await newScene({ agent: 'echo run >> "$COUNT/agent"; exec sleep 600' });
    await scene.post("first");
    const { id, pid } = await runningAgent(scene);
    const supervisor = supervisorOf(scene, id, "0-1-action");
    using _stopped = stopProcess(supervisor);
    process.kill(-pid, "SIGKILL");
    if (restarted) {
      await scene.killDaemon();
      await scene.data(["status"]);
    }
    await scene.wait("TICK-1-r1");
    expect((await scene.value("TICK-1-r1"))["state"]).toBe("orphaned");
    expect(eventsOf(scene, "supervised_run_exit_observed")).toHaveLength(1);
    await until(() => !processAlive(supervisor), "the supervisor to be gone");
    await scene.data(["stop"]);
  }
}, 120_000);

test("a test command that died under a stopped supervisor runs once more", async () => {
  const flow =
    'stages:\n  - name: build\n    action: agent\n  - name: probe\n    action: { exec: ["sh", "-c", "echo $$ >> OUTSIDE/probe; [ -e OUTSIDE/second ] || exec sleep 600"] }\n';
  await using scene = await newScene({ flows: { default: flow } });
  await scene.post("first");
  await until(() => scene.count("probe") === 1, "the command");
  const id = scene.query<RunRow>("select id, pid from runs")[0]!.id;
  const pid = Number(readFileSync(join(scene.outside, "probe"), "utf8"));
  const checkpointed = `select 1 from run_evidence where run_id = '${id}' and kind = 'stage_process' and data_json like '%${pid}%'`;
  await until(() => supervisorOf(scene, id, "1-1-action") > 0, "the start record");
  await until(() => scene.query(checkpointed).length > 0, "the checkpoint");
  const supervisor = supervisorOf(scene, id, "1-1-action");
  using _stopped = stopProcess(supervisor);
  writeFileSync(join(scene.outside, "second"), "");
  process.kill(-pid, "SIGKILL");
  await scene.wait("TICK-1-r1");
  expect(scene.count("probe")).toBe(2);
  const run = (await scene.value("TICK-1-r1")) as { stages: Record<string, unknown>[] };
  expect(run.stages.find((row) => row["stage"] === "probe")).toMatchObject({ state: "passed", exit_code: 0 });
  await until(() => !processAlive(supervisor), "the first supervisor to be gone");
}, 60_000);

test("an agent killed with its daemon is orphaned, whichever was hit first", async () => {
  for (const order of ["daemon first", "agent first"]) {
    await using scene = await newScene({ agent: 'echo run >> "$COUNT/agent"; exec sleep 600' });
    await scene.post("first");
    const { id, pid } = await runningAgent(scene);
    const daemon = scene.daemonPid();
    const victims = order === "daemon first" ? [daemon, -pid] : [-pid, daemon];
    for (const victim of victims) process.kill(victim, "SIGKILL");
    const record = join(scene.stateDir(), "runs", id, "exits/0-1-action.json");
    await until(() => existsSync(record), "the exit record");
    expect(JSON.parse(readFileSync(record, "utf8"))).toMatchObject({ signal: "SIGKILL", attended: false });
    await scene.data(["status"]);
    await scene.wait("TICK-1-r1");
    expect((await scene.value("TICK-1-r1"))["state"]).toBe("orphaned");
  }
}, 60_000);

test("a wiped runtime directory comes back: the same daemon answers, and so does the run's own socket", async () => {
  const agent = `echo run >> "$COUNT/agent"; while [ ! -e "$COUNT/go" ]; do sleep 0.02; done; "$SLOOP_BIN" note hello > "$COUNT/note" 2>&1 && touch "$COUNT/noted"; echo w > w; git add -A; git commit -qm work`;
  await using scene = await newScene({ agent });
  await scene.post("first");
  await runningAgent(scene);
  const daemon = scene.daemonPid();
  const operator = socketOf(scene);
  const worker = scene.query<{ path: string }>("select worker_socket_path as path from runs")[0]!.path;
  rmSync(dirname(dirname(operator)), { recursive: true });
  await until(() => existsSync(operator) && existsSync(worker), "the sockets to come back");
  expect(statSync(operator).mode & 0o777).toBe(0o600);
  expect(statSync(dirname(operator)).mode & 0o777).toBe(0o700);
  writeFileSync(join(scene.outside, "go"), "");
  await scene.wait("TICK-1-r1");
  expect(existsSync(join(scene.outside, "noted"))).toBe(true);
  expect((await scene.value("TICK-1-r1"))["state"]).toBe("merged");
  expect(scene.daemonPid()).toBe(daemon);
  expect(eventsOf(scene, "socket_rebound").map(({ fields }) => fields?.["path"])).toEqual(
    expect.arrayContaining([operator, worker]),
  );
  await scene.data(["stop"]);
  expect(existsSync(operator)).toBe(false);
}, 60_000);

test("a tick waits for its turn, and ticks do not pile up", async () => {
  await using scene = await newScene({});
  const env = hookEnv(scene);
  await scene.data(["status"], env);
  const operator = socketOf(scene);
  arm(scene, "before-spawn-capacity-reconciliation");
  await scene.data(["post", scene.ticket("first")], env);
  await reached(scene, "before-spawn-capacity-reconciliation");
  arm(scene, "after-run-liveness-reconciliation");
  // The doors are looked at by every tick, outside the queue: so two have passed.
  for (let tick = 0; tick < 2; tick += 1) {
    rmSync(operator);
    await until(() => existsSync(operator), "a tick");
  }
  expect(existsSync(join(scene.hooks, "after-run-liveness-reconciliation.reached"))).toBe(false);
  disarm(scene, "before-spawn-capacity-reconciliation");
  disarm(scene, "after-run-liveness-reconciliation");
  release(scene, "before-spawn-capacity-reconciliation");
  release(scene, "after-run-liveness-reconciliation");
  expect(await scene.wait("TICK-1-r1")).toBe(0);
}, 60_000);

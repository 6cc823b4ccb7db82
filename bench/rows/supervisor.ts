// What the supervisor of a stage process weighs, and how long the command waits for it; beside an empty compiled program.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Started, startSupervised } from "../../src/daemon/supervise.ts";
import type { Bench, BenchContext } from "../bench.ts";
import { interleave, summarize } from "../measure.ts";
import { openPlace, postOver } from "../place.ts";
import { parentOf, proportionalMib } from "../process-facts.ts";
import { atMost, makeRow } from "../row.ts";
import { openSignal, type Signal } from "../signal.ts";
import { runProcess } from "./version.ts";

const restMs = 3000;

async function weigh(context: BenchContext, round: number): Promise<number> {
  const ready = join(context.dir, `agent-${round}`);
  const signal = openSignal(context, ready);
  const place = await openPlace(context, { agent: `echo go > '${ready}'; exec sleep 600` });
  const started = signal.next();
  await postOver(place, "task");
  await started;
  await Bun.sleep(restMs);
  const [agent] = place.scene.query<{ pid: number }>("select pid from runs");
  if (agent === undefined) throw new Error("no agent is running");
  return proportionalMib(parentOf(agent.pid));
}

function contestants(context: BenchContext, signal: Signal) {
  let count = 0;
  const argv = ["sh", "-c", `echo go > '${signal.path}'`];
  const environment = { PATH: process.env["PATH"] ?? "/usr/bin:/bin" };
  const request = () => {
    count += 1;
    const dir = join(context.dir, `run-${count}`);
    mkdirSync(dir);
    return {
      runId: String(count).padStart(32, "0"),
      argv,
      cwd: context.dir,
      environment,
      gated: false,
      outputLog: join(dir, "output.ndjson"),
      labels: { source: "agent" as const, stage: "build", attempt: 1 },
      startRecord: join(dir, "exits/0-1-action.start.json"),
      exitRecord: join(dir, "exits/0-1-action.json"),
      channel: join(context.dir, "channels", `c${count}.sock`),
    };
  };
  const clocked = async (start: () => Promise<unknown>) => {
    const signalled = signal.next();
    const begin = performance.now();
    const over = start();
    const ms = (await signalled) - begin;
    await over;
    return ms;
  };
  const ended = async (started: Started) => {
    if (!started.ok) throw new Error(started.problem);
    await started.process.exited;
  };
  const deps = { command: [context.bin], environment };
  return {
    supervised: () => clocked(() => startSupervised(request(), deps).then(ended)),
    bare: () => clocked(() => Bun.spawn(argv, { env: environment }).exited),
    empty: () => runProcess([context.empty]),
  };
}

export const supervisor: Bench = {
  name: "supervisor",
  async run(context) {
    const shares: number[] = [];
    for (let round = 0; round < context.pick(3, 1); round += 1) shares.push(await weigh(context, round));
    const signal = openSignal(context, join(context.dir, "started"));
    const times = await interleave(context.pick(30, 3), contestants(context, signal));
    return [
      makeRow("supervisor", {
        what: "supervisor of a running agent, Pss",
        unit: "MiB",
        measured: summarize(shares),
        target: atMost(15),
      }),
      makeRow("supervisor", {
        what: "spawn of the supervisor to the command's start",
        unit: "ms",
        measured: times.supervised,
        rival: { what: "empty program", measured: times.empty },
        target: atMost(25),
        note: `a bare spawn of the same command takes ${times.bare.median.toFixed(1)} ms`,
      }),
    ];
  },
};

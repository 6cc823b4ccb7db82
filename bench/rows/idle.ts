// A daemon that has nothing to do: what it weighs, and how often it stirs.

import type { Bench } from "../bench.ts";
import { summarize } from "../measure.ts";
import { openPlace, type Place, postOver, settled } from "../place.ts";
import { activity, cpuTicks, residentMib } from "../process-facts.ts";
import { atMost, makeRow } from "../row.ts";
import { pipelinedRate, statusLine } from "../wire.ts";

/** Past the moment at which the daemon has given back what only its start needed. */
const restMs = 5000;

async function watch({ pid }: Place, seconds: number) {
  const ticks = cpuTicks(pid);
  const before = activity(pid);
  await Bun.sleep(seconds * 1000);
  const after = activity(pid);
  const note =
    `${(after.cpuMs - before.cpuMs).toFixed(1)} ms on a processor, ` +
    `${after.wakeups - before.wakeups} wake-ups of all threads together`;
  return { ticks: cpuTicks(pid) - ticks, note };
}

export const idle: Bench = {
  name: "idle",
  async run(context) {
    const resident: number[] = [];
    const used: number[] = [];
    const ticks: number[] = [];
    let note = "";
    const seconds = context.pick(10, 2);
    for (let round = 0; round < context.pick(3, 1); round += 1) {
      const place = await openPlace(context);
      await Bun.sleep(restMs);
      resident.push(residentMib(place.pid));
      const seen = await watch(place, seconds);
      ticks.push(seen.ticks);
      note = seen.note;
      for (let n = 1; n <= 10; n += 1) {
        await postOver(place, `task-${n}`);
        await settled(place, `TICK-${n}`);
      }
      await pipelinedRate(place.socket, statusLine, 10_000);
      await Bun.sleep(restMs);
      used.push(residentMib(place.pid));
    }
    return [
      makeRow("idle", {
        what: "idle daemon, resident",
        unit: "MiB",
        measured: summarize(resident),
        target: atMost(55),
      }),
      makeRow("idle", {
        what: `idle daemon, processor time in ${seconds} s`,
        unit: "ticks",
        measured: summarize(ticks),
        target: atMost(1),
        note,
      }),
      makeRow("idle", {
        what: "the same daemon after 10 runs and 10 000 requests, resident",
        unit: "MiB",
        measured: summarize(used),
      }),
    ];
  },
};

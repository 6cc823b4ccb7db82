// Captured output of one process, and what the daemon's memory does meanwhile; beside a plain reader of the same pipe.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "../bench.ts";
import { interleave, summarize } from "../measure.ts";
import { openScene, type Place, postOver, settled, startDaemon } from "../place.ts";
import { forgetPeak, peakMib, residentMib } from "../process-facts.ts";
import { atLeast, atMost, makeRow } from "../row.ts";
import { runProcess } from "./version.ts";

const flow = `
stages:
  - name: print
    action: { exec: [cat, OUTSIDE/output.txt] }
`;

/** Lines as a test runner prints them, `megabytes` (10^6 bytes) of them. */
function makeOutput(megabytes: number): string {
  let block = "";
  for (let n = 0; block.length < 1_000_000; n += 1) {
    block += `  ok ${n} - parses "${n.toString(36)}" and keeps every byte (${n % 97} ms)\n`;
  }
  return block.slice(0, 1_000_000).repeat(megabytes);
}

type Run = { rate: number; growthMib: number };

/** One run that prints `megabytes`; the rate from the start of the command to the verdict on its stage. */
async function capture(place: Place, stem: string, megabytes: number): Promise<Run> {
  const { pid, scene } = place;
  const before = residentMib(pid);
  forgetPeak(pid);
  const posted = await postOver(place, stem);
  const { id } = posted["ticket"] as { id: string };
  const run = await settled(place, id);
  const growthMib = peakMib(pid) - before;
  const stages = run["stages"] as { started_at_ms: number; finished_at_ms: number }[];
  const stage = stages[0];
  if (stage === undefined) throw new Error("the run has no stage");
  rmSync(join(scene.stateDir(), "runs", run["id"] as string), { recursive: true });
  return { rate: (megabytes * 1000) / (stage.finished_at_ms - stage.started_at_ms), growthMib };
}

export const captureOutput: Bench = {
  name: "capture",
  async run(context) {
    const megabytes = context.pick(200, 10);
    const scene = await openScene(context, { flows: { default: flow } });
    const file = join(scene.outside, "output.txt");
    writeFileSync(file, makeOutput(megabytes));
    const place = await startDaemon(scene);
    const growths: number[] = [];
    let count = 0;
    const sloop = async () => {
      count += 1;
      const { rate, growthMib } = await capture(place, `task-${count}`, megabytes);
      growths.push(growthMib);
      return rate;
    };
    const copy = join(context.dir, "copy");
    const plain = async () => (megabytes * 1000) / (await runProcess(["sh", "-c", `cat ${file} | cat > ${copy}`]));
    const rates = await interleave(context.pick(5, 1), { sloop, plain });
    return [
      makeRow("capture", {
        what: "captured output of one process",
        unit: "MB/s",
        measured: rates.sloop,
        rival: { what: "cat | cat > file", measured: rates.plain },
        target: atLeast(150),
      }),
      makeRow("capture", {
        what: "daemon memory growth meanwhile",
        unit: "MiB",
        measured: summarize(growths),
        target: atMost(30),
      }),
    ];
  },
};

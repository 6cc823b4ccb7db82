// 20 000 ticket files read, parsed and validated: the part of a reindex that the files' formats decide.

import { planTickets } from "../../src/daemon/reindex-plan.ts";
import { readSource } from "../../src/daemon/reindex-read.ts";
import { loadAll } from "../../src/parse/load.ts";
import { fileSource } from "../../src/system/files.ts";
import type { Bench } from "../bench.ts";
import { writeTickets } from "../fill.ts";
import { summarize, timed } from "../measure.ts";
import { openScene } from "../place.ts";
import { atMost, makeRow } from "../row.ts";

export const files: Bench = {
  name: "files",
  async run(context) {
    const count = context.pick(20_000, 1000);
    const scene = await openScene(context);
    const { root } = scene;
    writeTickets(scene, count);
    const { config, flows } = loadAll(fileSource, root, null);
    const daemon = { paths: { root }, config, environment: {} } as Parameters<typeof readSource>[0];
    const world = { agent: config.agent, ticketPrefix: "TICK", flows, projects: ["default"], known: [] };
    const once = () =>
      timed(async () => {
        const planned = await planTickets(await readSource(daemon), world);
        if (planned.length !== count) throw new Error(`${planned.length} of ${count} files were read`);
      });
    const times: number[] = [];
    for (let round = 0; round < context.pick(7, 1); round += 1) times.push(await once());
    const what = `${count} ticket files read, parsed and validated`;
    return [makeRow("files", { what, unit: "ms", measured: summarize(times), target: atMost(1000) })];
  },
};

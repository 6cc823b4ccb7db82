// `sloop --json status` against a running daemon, the whole process, beside an empty compiled program.

import type { Bench } from "../bench.ts";
import { interleave } from "../measure.ts";
import { openPlace, wholeEnvironment } from "../place.ts";
import { atMost, makeRow } from "../row.ts";
import { runProcess } from "./version.ts";

export const statusProcess: Bench = {
  name: "status-process",
  async run(context) {
    const { scene } = await openPlace(context);
    const options = { cwd: scene.root, env: wholeEnvironment(scene) };
    const times = await interleave(context.pick(60, 8), {
      sloop: () => runProcess([context.bin, "--json", "status"], options),
      empty: () => runProcess([context.empty], options),
    });
    return [
      makeRow("status-process", {
        what: "`sloop --json status`, whole process",
        unit: "ms",
        measured: times.sloop,
        rival: { what: "empty program", measured: times.empty },
        target: atMost(2, "ratio"),
      }),
    ];
  },
};

// Pipelined `status` on one connection, beside the bare echo loop.

import type { Bench } from "../bench.ts";
import { interleave } from "../measure.ts";
import { openPlace, startEcho } from "../place.ts";
import { atLeast, makeRow } from "../row.ts";
import { pipelinedRate, statusLine } from "../wire.ts";

export const statusPipelined: Bench = {
  name: "status-pipelined",
  async run(context) {
    const { socket } = await openPlace(context);
    const echo = await startEcho(context);
    const total = context.pick(60_000, 3000);
    const rates = await interleave(context.pick(9, 2), {
      sloop: () => pipelinedRate(socket, statusLine, total),
      echo: () => pipelinedRate(echo, statusLine, total),
    });
    return [
      makeRow("status-pipelined", {
        what: "`status`, pipelined on one connection",
        unit: "per s",
        measured: rates.sloop,
        rival: { what: "echo loop", measured: rates.echo },
        target: atLeast(60_000),
      }),
    ];
  },
};

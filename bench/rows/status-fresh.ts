// `status` over a fresh connection each, one client after another and 16 at once, beside the bare echo loop.

import type { Bench } from "../bench.ts";
import { interleave } from "../measure.ts";
import { openPlace, startEcho } from "../place.ts";
import { atLeast, makeRow } from "../row.ts";
import { freshRate, statusLine } from "../wire.ts";

const loads = [
  { clients: 1, bound: 6000, what: "`status`, fresh connections, one after another" },
  { clients: 16, bound: 10_000, what: "`status`, fresh connections, 16 at once" },
];

export const statusFresh: Bench = {
  name: "status-fresh",
  async run(context) {
    const { socket } = await openPlace(context);
    const echo = await startEcho(context);
    const rows = [];
    for (const { clients, bound, what } of loads) {
      const load = { total: context.pick(6000, 500), clients };
      const rates = await interleave(context.pick(9, 2), {
        sloop: () => freshRate(socket, statusLine, load),
        echo: () => freshRate(echo, statusLine, load),
      });
      rows.push(
        makeRow("status-fresh", {
          what,
          unit: "per s",
          measured: rates.sloop,
          rival: { what: "echo loop", measured: rates.echo },
          target: atLeast(bound),
        }),
      );
    }
    return rows;
  },
};

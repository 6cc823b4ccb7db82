// 20 000 tickets, 10 000 settled runs and 100 000 events: the same figures as without a history.

import type { Bench } from "../bench.ts";
import { figures } from "../figures.ts";
import { fillHistory, writeTickets } from "../fill.ts";
import { openScene, startDaemon } from "../place.ts";
import { reindex } from "./tickets.ts";

export const history: Bench = {
  name: "history",
  async run(context) {
    const scene = await openScene(context);
    const count = context.pick(20_000, 1000);
    writeTickets(scene, count);
    const place = await startDaemon(scene);
    await reindex(place, count);
    // While it runs: a daemon that starts keeps only the newest 50 000 events.
    const size = { runs: context.pick(10_000, 500), events: context.pick(100_000, 5000) };
    fillHistory(scene, size);
    return await figures("history", context, place, `${size.runs} settled runs, ${size.events} events`);
  },
};

// 20 000 ticket files: what `reindex` takes, and afterwards `status`, `list` and `show`.

import type { Bench } from "../bench.ts";
import { figures } from "../figures.ts";
import { writeTickets } from "../fill.ts";
import { summarize, timed } from "../measure.ts";
import { openScene, type Place, startDaemon } from "../place.ts";
import { atMost, makeRow } from "../row.ts";
import { ask } from "../wire.ts";

/** Milliseconds; throws when not every file was taken. */
export function reindex({ socket }: Place, count: number): Promise<number> {
  return timed(async () => {
    const { tickets_indexed } = await ask(socket, "reindex");
    if (tickets_indexed !== count) throw new Error(`reindex took ${tickets_indexed} of ${count} files`);
  });
}

export const tickets: Bench = {
  name: "tickets",
  async run(context) {
    const count = context.pick(20_000, 1000);
    const scene = await openScene(context);
    writeTickets(scene, count);
    const place = await startDaemon(scene);
    const first = await reindex(place, count);
    const again: number[] = [];
    for (let round = 0; round < context.pick(5, 1); round += 1) again.push(await reindex(place, count));
    const target = atMost(1500);
    const row = { unit: "ms", target } as const;
    return [
      makeRow("tickets", { ...row, what: `\`reindex\` of ${count} new files`, measured: summarize([first]) }),
      makeRow("tickets", { ...row, what: `\`reindex\` of ${count} known files`, measured: summarize(again) }),
      ...(await figures("tickets", context, place, `${count} tickets`)),
    ];
  },
};

// Forty trivial runs, two at a time: the agent commits, the work is merged. Beside the same Git commands by hand.

import { join } from "node:path";
import { newWorld } from "../../test/support/repo.ts";
import { newScene } from "../../test/support/scene.ts";
import type { Bench } from "../bench.ts";
import { interleave } from "../measure.ts";
import { merged, postOver, startDaemon } from "../place.ts";
import { atMost, makeRow } from "../row.ts";
import { ask } from "../wire.ts";

const atOnce = 2;

/** Milliseconds per run. */
async function byDaemon(total: number): Promise<number> {
  await using scene = await newScene({ config: `scheduler: { max_parallel_tasks: ${atOnce} }` });
  const place = await startDaemon(scene);
  await ask(place.socket, "pause");
  for (let n = 0; n < total; n += 1) await postOver(place, `task-${n}`);
  const start = performance.now();
  await ask(place.socket, "resume");
  await merged(place, total);
  return (performance.now() - start) / total;
}

async function sh(script: string, cwd: string): Promise<void> {
  const child = Bun.spawn(["sh", "-ec", script], { cwd, stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  if ((await child.exited) !== 0) throw new Error(`failed: ${script}`);
}

/** What only one may do at a time in one repository. */
function openQueue(): (work: () => Promise<void>) => Promise<void> {
  let last = Promise.resolve();
  return (work) => {
    last = last.then(work);
    return last;
  };
}

async function byHand(total: number): Promise<number> {
  await using world = await newWorld();
  const alone = openQueue();
  let next = 0;
  const worker = async () => {
    while (next < total) {
      next += 1;
      const name = `task-${next}`;
      const tree = join(world.dir, name);
      await alone(() => sh(`git worktree add -q --no-track -b ${name} ${tree} main`, world.root));
      await sh(`echo work > ${name}; git add -A; git commit -qm ${name}`, tree);
      await alone(() => sh(`git merge -q --no-edit ${name}`, world.root));
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: atOnce }, worker));
  return (performance.now() - start) / total;
}

export const runs: Bench = {
  name: "runs",
  async run({ pick }) {
    const total = pick(40, 4);
    const times = await interleave(pick(5, 1), { sloop: () => byDaemon(total), hand: () => byHand(total) });
    return [
      makeRow("runs", {
        what: `${total} trivial runs (commit, merge), ${atOnce} at a time, each`,
        unit: "ms",
        measured: times.sloop,
        rival: { what: "the same git by hand", measured: times.hand },
        target: atMost(45),
      }),
    ];
  },
};

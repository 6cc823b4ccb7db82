// From `post` to the agent's first instruction, beside the `git worktree add` that lies in between.

import { join } from "node:path";
import type { Bench, BenchContext } from "../bench.ts";
import { interleave, timed } from "../measure.ts";
import { openScene, type Place, postOver, settled, startDaemon, wholeEnvironment } from "../place.ts";
import { atMost, makeRow } from "../row.ts";
import { openSignal, type Signal } from "../signal.ts";

const flow = `
stages:
  - name: build
    action: agent
`;

async function addWorktree(root: string, name: string): Promise<void> {
  const argv = ["git", "worktree", "add", "--quiet", "--no-track", "-b", name, "--", join(root, ".worktrees", name)];
  const child = Bun.spawn([...argv, "main"], { cwd: root, stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  if ((await child.exited) !== 0) throw new Error("git worktree add failed");
}

type Setting = { context: BenchContext; place: Place; signal: Signal };

function contestants({ context, place, signal }: Setting) {
  const { scene } = place;
  let count = 0;
  const fresh = () => {
    count += 1;
    return `task-${count}`;
  };
  const measured = async (post: (stem: string) => Promise<unknown>) => {
    const stem = fresh();
    const started = signal.next();
    const begin = performance.now();
    const posted = post(stem);
    const ms = (await started) - begin;
    await posted;
    await settled(place, `TICK-${stem.slice(5)}`);
    return ms;
  };
  let worktrees = 0;
  return {
    socket: () => measured((stem) => postOver(place, stem)),
    command: () =>
      measured((stem) => {
        const argv = [context.bin, "--json", "post", scene.ticket(stem)];
        const options = { cwd: scene.root, env: wholeEnvironment(scene), stdout: "ignore", stderr: "ignore" } as const;
        return Bun.spawn(argv, options).exited;
      }),
    worktree: async () => {
      worktrees += 1;
      const name = `rival-${worktrees}`;
      const ms = await timed(() => addWorktree(scene.root, name));
      scene.git("worktree", "remove", "--force", join(".worktrees", name));
      return ms;
    },
  };
}

export const post: Bench = {
  name: "post",
  async run(context) {
    const path = join(context.dir, "started");
    const scene = await openScene(context, { agent: `echo go > '${path}'`, flows: { default: flow } });
    const signal = openSignal(context, path);
    const place = await startDaemon(scene);
    const times = await interleave(context.pick(20, 2), contestants({ context, place, signal }));
    const rival = { what: "git worktree add", measured: times.worktree };
    return [
      makeRow("post", {
        what: "`post` on the socket to the agent's first instruction",
        unit: "ms",
        measured: times.socket,
        rival,
        target: atMost(25, "beyond"),
      }),
      makeRow("post", {
        what: "the same from the start of `sloop post`",
        unit: "ms",
        measured: times.command,
        rival,
      }),
    ];
  },
};

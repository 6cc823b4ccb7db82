// From nothing to a daemon that answers.

import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Scene } from "../../test/support/scene.ts";
import { until } from "../../test/support/until.ts";
import type { Bench } from "../bench.ts";
import { interleave } from "../measure.ts";
import { openScene, startDaemon, stopDaemon, wholeEnvironment } from "../place.ts";
import { atMost, makeRow } from "../row.ts";
import { exchange, statusLine } from "../wire.ts";
import { runProcess } from "./version.ts";

const pollMs = 0.5;

/** Asks until somebody answers. */
async function answered(socket: string): Promise<void> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    try {
      await exchange(socket, statusLine);
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await Bun.sleep(pollMs);
    }
  }
}

/** One start of the daemon itself, in ms; it is ended before this resolves. */
async function start(bin: string, scene: Scene, socket: string): Promise<number> {
  const options = { cwd: scene.root, env: wholeEnvironment(scene), stdin: "ignore", stdout: "ignore" } as const;
  const begin = performance.now();
  const child = Bun.spawn([bin, "daemon", "--foreground"], { ...options, stderr: "ignore" });
  await answered(socket);
  const ms = performance.now() - begin;
  child.kill("SIGTERM");
  await child.exited;
  return ms;
}

export const coldStart: Bench = {
  name: "cold-start",
  async run(context) {
    const { bin, empty } = context;
    const scene = await openScene(context);
    const place = await startDaemon(scene);
    await stopDaemon(place);
    const { socket } = place;
    const options = { cwd: scene.root, env: wholeEnvironment(scene) };
    const times = await interleave(context.pick(20, 3), {
      again: () => start(bin, scene, socket),
      first: () => {
        rmSync(join(scene.dir, "state"), { recursive: true });
        return start(bin, scene, socket);
      },
      command: async () => {
        const ms = await runProcess([bin, "--json", "status"], options);
        await stopDaemon(await startDaemon(scene));
        await until(async () => (await exchange(socket, statusLine).catch(() => null)) === null, "silence");
        return ms;
      },
      empty: () => runProcess([empty], options),
    });
    const rival = { what: "empty program", measured: times.empty };
    const target = atMost(60);
    return [
      makeRow("cold-start", { what: "daemon, start to answering", unit: "ms", measured: times.again, rival, target }),
      makeRow("cold-start", {
        what: "the same, the repository's first ever",
        unit: "ms",
        measured: times.first,
        rival,
        target,
      }),
      makeRow("cold-start", {
        what: "`sloop --json status` with no daemon, whole process",
        unit: "ms",
        measured: times.command,
        rival,
      }),
    ];
  },
};

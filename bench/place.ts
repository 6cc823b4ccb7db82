// A repository with a shell agent and a running daemon, and the echo loop beside it.

import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { newScene, type Scene, type SceneOptions } from "../test/support/scene.ts";
import { until } from "../test/support/until.ts";
import type { BenchContext } from "./bench.ts";
import { ask, type Json } from "./wire.ts";

export type Place = { scene: Scene; socket: string; pid: number };

/** The environment in which the scene's daemon is found, whole. */
export function wholeEnvironment({ env }: Scene): Record<string, string> {
  const whole: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...process.env, ...env })) if (value !== undefined) whole[name] = value;
  return whole;
}

/** Starts (or finds) the scene's daemon. */
export async function startDaemon(scene: Scene): Promise<Place> {
  await scene.data(["daemon"]);
  const lock = readFileSync(join(scene.stateDir(), "daemon.lock"), "utf8");
  const { pid, socket } = JSON.parse(lock) as { pid: number; socket: string };
  return { scene, socket, pid };
}

/** Ends the scene's daemon and waits until it is gone. */
export async function stopDaemon({ scene, pid }: Place): Promise<void> {
  await scene.sloop(["stop"]);
  await until(() => {
    try {
      process.kill(pid, 0);
      return false;
    } catch {
      return true;
    }
  }, "the daemon to end");
}

/** A new scene, removed with all its processes when the bench is over. */
export async function openScene(context: BenchContext, options: SceneOptions = {}): Promise<Scene> {
  return context.keep(await newScene(options));
}

export async function openPlace(context: BenchContext, options: SceneOptions = {}): Promise<Place> {
  return await startDaemon(await openScene(context, options));
}

/** The echo loop at a socket of its own. */
export async function startEcho(context: BenchContext): Promise<string> {
  const path = join(context.dir, "echo.sock");
  const child = Bun.spawn([context.echo, path], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  context.later(async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  await child.stdout.getReader().read();
  return path;
}

/** Posts a ticket file of `scene` over the socket; the reply's data. */
export async function postOver(place: Place, stem: string): Promise<Json> {
  return await ask(place.socket, "post", { file: place.scene.ticket(stem), trigger: { kind: "auto" } });
}

/** The database as the daemon writes it, read beside it: asking the daemon would be work for it, and be measured. */
export function openDatabase(scene: Scene): Database {
  return new Database(join(scene.stateDir(), "sloop.db"), { readonly: true });
}

const longestMs = 300_000;

/** Waits until the first run of a ticket is settled; its detail. */
export async function settled(place: Place, ticket: string): Promise<Json> {
  const db = openDatabase(place.scene);
  try {
    const ended = db.query<{ id: string }, [string]>(
      "select id from runs where ticket_id = ? and exited_at_ms is not null",
    );
    await until(() => ended.get(ticket) !== null, `the run of ${ticket} to settle`, longestMs);
  } finally {
    db.close();
  }
  const { value } = (await ask(place.socket, "show", { ref: `${ticket}-r1` })) as { value: Json };
  return value;
}

/** Waits until `count` tickets are merged. Throws as soon as one ends otherwise. */
export async function merged({ scene }: Place, count: number): Promise<void> {
  const db = openDatabase(scene);
  try {
    const states = db.query<{ state: string; n: number }, []>(
      "select state, count(*) as n from tickets group by state",
    );
    await until(
      () => {
        const counts = new Map(states.all().map(({ state, n }) => [state, n]));
        if (counts.has("failed") || counts.has("needs_review")) throw new Error("a run was not merged");
        return counts.get("merged") === count;
      },
      `${count} merged tickets`,
      longestMs,
    );
  } finally {
    db.close();
  }
}

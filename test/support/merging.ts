// What tests of merges look at, and how they come in between.

import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { arm, hookEnv, put, reached, release, type Scene } from "./scene.ts";

export const status = (scene: Scene): string => scene.git("status", "--porcelain", "--untracked-files=no");
export const inProgress = (scene: Scene): string[] =>
  ["MERGE_HEAD", "AUTO_MERGE", "index.lock"].filter((name) => existsSync(join(scene.root, ".git", name)));
export const has = (scene: Scene, what: string): boolean =>
  Bun.spawnSync(["git", "cat-file", "-e", what], { cwd: scene.root }).exitCode === 0;
export const state = async (scene: Scene): Promise<unknown> => (await scene.value("TICK-1-r1"))["state"];

/** Makes a hook of the repository. */
export function hook(scene: Scene, name: string, text: string): void {
  const path = join(scene.root, ".git/hooks", name);
  put(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
}

/** One ticket, with the repository changed between two points of its run. */
export async function between(scene: Scene, name: string, change: () => void): Promise<void> {
  arm(scene, name);
  await scene.data(["post", scene.ticket("first")], hookEnv(scene));
  await reached(scene, name);
  change();
  release(scene, name);
}

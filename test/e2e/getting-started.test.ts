// docs/getting-started.md, run as it is printed, in an empty directory with an empty home.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bin, command, projectRoot } from "../support/bin.ts";
import { newWorld } from "../support/repo.ts";

/** The shell blocks of a page, in order. */
function shellBlocks(page: string): string[] {
  const text = readFileSync(join(projectRoot, page), "utf8");
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1]!);
}

test("every block works, and the two tickets are merged", async () => {
  await using world = await newWorld({ name: "empty", git: "none" });
  const blocks = shellBlocks("docs/getting-started.md");
  expect(blocks.length).toBeGreaterThanOrEqual(7);
  const path = `${dirname(await bin())}:${process.env["PATH"]}`;
  const script = ["set -eux", ...blocks].join("\n");
  const ran = await command(["sh", "-c", script], { cwd: world.root, env: { ...world.env, PATH: path } });
  expect({ code: ran.code, stderr: ran.code === 0 ? "" : ran.stderr }).toEqual({ code: 0, stderr: "" });
  for (const text of [
    "Work on TICK-1",
    "TICK-1  Say hello  (merged)",
    "TICK-1-r1 finished: merged",
    "daemon stopping",
  ]) {
    expect(ran.stdout).toContain(text);
  }
  const log = Bun.spawnSync(["git", "log", "--format=%s"], { cwd: join(world.root, "shop") }).stdout.toString();
  expect(log.split("\n").filter((line) => line === "Work on TICK-2")).toHaveLength(1);
}, 60_000);

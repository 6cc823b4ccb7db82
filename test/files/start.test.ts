// files.md 8, 13.1 and 15 D: what a starting daemon makes of project files and of ticket files that are gone.

import { expect, setDefaultTimeout, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newScene } from "../support/scene.ts";
import { until } from "../support/until.ts";
import { folder } from "./posting.ts";
import { refusal } from "./refusal.ts";

setDefaultTimeout(60_000);

test("D18 and D19: project files are stamped in path order, unreadable ones skipped", async () => {
  await using scene = await newScene();
  for (const name of ["zeta", "alpha"]) scene.write(`.agents/sloop/projects/${name}.md`, `# ${name}\n`);
  scene.write(".agents/sloop/projects/cut.md", "---\nid: cut\n");
  scene.write(".agents/sloop/projects/typed.md", "---\nid: typed\nblocked_by: x\n---\n");
  await scene.data(["daemon"]);
  expect(scene.query("select id, title from projects order by id")).toEqual([
    { id: "PROJ-1", title: "alpha" },
    { id: "PROJ-2", title: "zeta" },
    { id: "default", title: "Default" },
  ]);
  expect(scene.read(".agents/sloop/projects/zeta.md")).toBe("---\nid: PROJ-2\n---\n# zeta\n");
  const skipped = scene.events().filter(({ event }) => event === "project_file_skipped");
  expect(skipped.map(({ fields }) => String(fields!["problem"]).split(":")[0])).toEqual([
    ".agents/sloop/projects/cut.md",
    ".agents/sloop/projects/typed.md",
  ]);
});

test("an id changed in a project file, and ids used twice, do not keep the daemon from starting", async () => {
  await using scene = await newScene();
  await scene.data(["daemon"]);
  await scene.data(["stop"]);
  scene.write(".agents/sloop/projects/default.md", "---\nid: renamed\ntitle: Default\n---\n");
  scene.write(".agents/sloop/projects/twice.md", "---\nid: renamed\ntitle: Later\n---\n");
  await until(async () => (await scene.sloop(["daemon"])).code === 0, "the daemon");
  expect(scene.query("select id, title, file_path from projects order by id")).toEqual([
    { id: "default", title: "Default", file_path: null },
    { id: "renamed", title: "Later", file_path: ".agents/sloop/projects/twice.md" },
  ]);
  // A reindex drops the one that no file has any more.
  expect(await scene.data(["reindex"])).toMatchObject({ projects_indexed: 1, rows_dropped: 1 });
});

test("a project file that cannot be stamped keeps the daemon from starting", async () => {
  await using scene = await newScene();
  scene.write(".agents/sloop/projects/a.md", "---\n{title: X}\n---\n");
  const { code, message } = await refusal(scene, ["daemon"]);
  expect(code).toBe("daemon_unavailable");
  expect(message).toContain(".agents/sloop/projects/a.md");
});

test("D20: a missing ticket file, back again", async () => {
  await using scene = await newScene();
  await scene.post("one", "", ["--manual"]);
  const file = join(scene.root, folder, "one.md");
  const text = scene.read(`${folder}/one.md`);
  const restart = async () => {
    await scene.data(["stop"]);
    await until(async () => (await scene.sloop(["daemon"])).code === 0, "the daemon");
  };
  rmSync(file);
  await restart();
  await scene.data(["run", "TICK-1"]);
  const [row] = (await scene.data(["list"]))["tickets"] as { reason: string }[];
  expect(row!.reason).toBe("ticket file is missing; restore it or run `sloop reindex`");
  expect((await scene.value("TICK-1"))["state"]).toBe("ready");
  expect(scene.query("select 1 from runs")).toEqual([]);
  writeFileSync(file, text);
  await restart();
  expect(await scene.wait("TICK-1")).toBe(0);
});

// What a command says on standard error although it succeeded: a key that nothing reads, a place that is set up already.

import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { misspeltKeys } from "../../src/cli/ticket-keys.ts";
import { newWorld } from "../support/repo.ts";
import { newScene } from "../support/scene.ts";

setDefaultTimeout(60_000);

const keys = (...names: string[]) =>
  misspeltKeys("t.md", `---\n${names.map((name) => `${name}: x\n`).join("")}---\nbody\n`);

test.each([
  ["modle", "model"],
  ["Model", "model"],
  ["nmae", "name"],
  ["blockedBy", "blocked_by"],
  ["blocked-by", "blocked_by"],
  ["blockedby", "blocked_by"],
  ["bloked_by", "blocked_by"],
  ["worktre", "worktree"],
  ["tagret", "target"],
  ["efort", "effort"],
  ["projct", "project"],
])("`%s` was meant to be `%s`", (typed, meant) => {
  expect(keys(typed)).toEqual([`t.md: nothing reads the frontmatter key \`${typed}\`; did you mean \`${meant}\`?`]);
});

test("known keys and keys of one's own are nobody's mistake", () => {
  expect(keys("name", "blocked_by", "title", "target", "model", "effort", "flow", "id", "project", "worktree")).toEqual(
    [],
  );
  expect(keys("priority", "labels", "owner", "tags", "type", "due", "estimate", "reviewers", "epic", "file")).toEqual(
    [],
  );
  expect(misspeltKeys("t.md", "no frontmatter")).toEqual([]);
  expect(misspeltKeys("t.md", "---\nmodle: [\n---\n")).toEqual([]);
});

test("post says it beside its reply, also when it is refused, and never to programs", async () => {
  await using scene = await newScene();
  const path = scene.ticket("one", "modle: opus\nlabels: [a]");
  const warning = `warning: ${path}: nothing reads the frontmatter key \`modle\`; did you mean \`model\`?\n`;
  const posted = await scene.sloop(["post", path, "--manual"]);
  expect(posted).toMatchObject({ code: 0, stderr: warning });
  expect(scene.read(path)).toContain("modle: opus\nlabels: [a]\n");
  expect(await scene.sloop(["--json", "post", path, "--manual"])).toMatchObject({ code: 0, stderr: "" });
  scene.write(path, "---\nnmae: one\nblocked_by: []\n---\nDo it.\n");
  const refused = await scene.sloop(["post", path]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toStartWith("error (invalid_arguments): ");
  expect(refused.stderr).toEndWith("did you mean `name`?\n");
});

test("init below a repository that is set up says what that does", async () => {
  await using world = await newWorld();
  expect((await world.sloop(["init"])).stderr).toBe("");
  const below = join(world.root, "packages/web");
  mkdirSync(below, { recursive: true });
  const first = await world.sloop(["init"], { cwd: below });
  expect(first.code).toBe(0);
  expect(first.stderr).toStartWith(`warning: ${below} is not the top level of a Git work tree`);
  expect(first.stderr).toContain(`${world.root} is set up already`);
  expect(first.stderr).toContain("`rm -r .agents/sloop` here undoes this");
  const again = JSON.parse((await world.sloop(["--json", "init"], { cwd: below })).stdout);
  expect(again.data.warnings).toEqual([expect.not.stringContaining("rm -r")]);
});

test("a configuration that is no UTF-8 is refused before any daemon starts, with its path", async () => {
  await using scene = await newScene();
  const path = join(scene.root, ".agents/sloop/config.yaml");
  writeFileSync(path, Buffer.concat([Buffer.from("version: 1\n# "), Buffer.from([0xff, 0xfe, 0x0a])]));
  for (const args of [["status"], ["list"], ["post", ".agents/sloop/tickets/x.md"]]) {
    const ran = await scene.sloop(args);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain(`${path}: not valid UTF-8; save the file as UTF-8`);
  }
  expect(existsSync(join(scene.dir, "state/sloop/repositories"))).toBe(false);
});

test("a flow or configuration that was written after the daemon started is said to be read by nobody yet", async () => {
  await using scene = await newScene({ flows: { strict: "stages: [{ name: build, action: agent }]" } });
  await scene.data(["pause"]);
  const post = async () => (await scene.sloop(["post", scene.ticket("one", "flow: strict"), "--manual"])).stderr;
  expect(await post()).not.toContain("after the daemon started");
  const later = new Date(Date.now() + 60_000);
  const flow = ".agents/sloop/flows/strict.yaml";
  utimesSync(join(scene.root, flow), later, later);
  expect(await post()).toContain(
    `warning: ${flow} was written after the daemon started; \`sloop daemon restart\` loads it`,
  );
  const other = ".agents/sloop/config.yaml";
  utimesSync(join(scene.root, other), later, later);
  expect(await post()).toContain(`warning: ${other} was written after the daemon started`);
});

test("an id that a file of a fresh clone has already is said to be taken, and how to mend it works", async () => {
  await using scene = await newScene();
  scene.ticket("old", "id: TICK-1");
  const path = scene.ticket("new");
  const { stderr } = await scene.sloop(["post", path, "--manual"]);
  expect(stderr).toContain("warning: old.md says `id: TICK-1` as well");
  scene.write(path, scene.read(path).replace("id: TICK-1", "id: TICK-2"));
  await scene.data(["reindex"]);
  expect(scene.query("select id, file_path from tickets order by id")).toEqual([
    { id: "TICK-1", file_path: ".agents/sloop/tickets/old.md" },
    { id: "TICK-2", file_path: path },
  ]);
  expect((await scene.sloop(["post", path, "--manual"])).stderr).not.toContain("as well");
});

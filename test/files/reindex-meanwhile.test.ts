// What happens to a reindex when the index, a file or a run changes while it works: everything is decided anew, or refused.

import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { builtInFlow } from "../../src/core/flow.ts";
import type { Daemon } from "../../src/daemon/context.ts";
import { indexProject } from "../../src/store/projects.ts";
import { ask, refusedWith } from "../support/ask.ts";
import { openContext, type TestDaemon } from "../support/context.ts";
import { newScene } from "../support/scene.ts";
import { until } from "../support/until.ts";
import { folder, valid } from "./posting.ts";
import { expectGist } from "./refusal.ts";

setDefaultTimeout(60_000);

let base: TestDaemon;
let tickets: string;
beforeEach(async () => {
  base = await openContext({ ticketDir: folder });
  tickets = join(base.root, folder);
  mkdirSync(tickets, { recursive: true });
  mkdirSync(join(base.root, base.config.projectDir), { recursive: true });
  writeFileSync(join(base.root, base.config.projectDir, "default.md"), "---\nid: default\n---\n");
  base.store.write((tx) => indexProject(tx, { id: "default", filePath: "p.md", title: "P" }, 1));
});
afterEach(() => base[Symbol.dispose]());

const put = (name: string, text = valid()) => writeFileSync(join(tickets, name), text);
const read = (name: string) => readFileSync(join(tickets, name), "utf8");
const rows = () => base.store.sqlite.query("select id, file_path, name from tickets order by id").values();
const leftovers = () => readdirSync(tickets).filter((name) => name.endsWith(".tmp"));

/** The daemon, with something happening right before a reindex's transaction has its turn. */
function before(moments: ((daemon: Daemon) => unknown)[]): Daemon {
  const daemon: Daemon = {
    ...base,
    flows: new Map([[builtInFlow.name, builtInFlow]]),
    async enqueue(job) {
      await moments.shift()?.(daemon);
      return await job();
    },
  };
  return daemon;
}

const post = (name: string) => (daemon: Daemon) =>
  ask(daemon, "post", { file: `${folder}/${name}`, trigger: { kind: "manual" } });

function addRun(ended: boolean): void {
  const { sqlite } = base.store;
  sqlite.run("insert into triggers values ('TR1', 'immediate', 'completed', 'TICK-1', null, null, null, 1, 1)");
  sqlite.run(
    `insert into runs (id, trigger_id, ticket_id, state, attempt, exited_at_ms, created_at_ms, updated_at_ms)
      values ('r1', 'TR1', 'TICK-1', ?, 1, ?, 1, 1)`,
    ended ? ["failed", 5] : ["running", null],
  );
}

test("a ticket registered meanwhile: its id is given to nobody else", async () => {
  put("a.md");
  put("b.md");
  // `b` is posted first and gets the id that had been meant for `a`.
  const done = await ask(before([post("b.md")]), "reindex", {});
  expect(done.tickets_indexed).toBe(2);
  expect(rows()).toEqual([
    ["TICK-1", `${folder}/b.md`, "A ticket"],
    ["TICK-2", `${folder}/a.md`, "A ticket"],
  ]);
  expect([read("a.md").match(/id: .*/)?.[0], read("b.md").match(/id: .*/)?.[0]]).toEqual(["id: TICK-2", "id: TICK-1"]);
  expect(leftovers()).toEqual([]);
});

test("tickets registered without an end: refused, nothing left behind", async () => {
  put("a.md");
  const always = Array.from({ length: 9 }, (_, index) => (daemon: Daemon) => {
    put(`n${index}.md`);
    return post(`n${index}.md`)(daemon);
  });
  await expect(ask(before(always), "reindex", {})).rejects.toMatchObject(
    refusedWith("internal", "cannot reindex tickets") as object,
  );
  expect([read("a.md"), leftovers()]).toEqual([valid(), []]);
});

test("a run that became active: refused, nothing written, nothing stamped", async () => {
  put("one.md");
  await ask(before([]), "reindex", {});
  put("two.md");
  const daemon = before([() => addRun(false)]);
  await expect(ask(daemon, "reindex", {})).rejects.toMatchObject(refusedWith("conflict", "TICK-1-r1") as object);
  expect(rows()).toHaveLength(1);
  expect([read("two.md"), leftovers()]).toEqual([valid(), []]);
});

test("a run that came and went: decided anew", async () => {
  put("one.md");
  await ask(before([]), "reindex", {});
  let again = 0;
  const daemon = before([
    () => addRun(true),
    () => {
      again += 1;
    },
  ]);
  expect(await ask(daemon, "reindex", {})).toMatchObject({ tickets_indexed: 1, rows_dropped: 0 });
  expect(again).toBe(1);
});

test("a state that changed meanwhile is the one that is kept", async () => {
  put("one.md");
  await ask(before([]), "reindex", {});
  await ask(before([(daemon) => ask(daemon, "hold", { ticket: "TICK-1" })]), "reindex", {});
  expect(base.store.sqlite.query("select state from tickets").values()).toEqual([["held"]]);
});

test("a file edited meanwhile keeps its edit and is stamped the next time", async () => {
  put("one.md");
  const edit = valid("name: Edited");
  const done = await ask(before([() => put("one.md", edit)]), "reindex", {});
  expect(done.tickets_indexed).toBe(1);
  expect([read("one.md"), leftovers()]).toEqual([edit, []]);
  expect(base.logged).toContain("warn sloop::dispatcher file_not_stamped");
  await ask(before([]), "reindex", {});
  expect(rows()).toEqual([["TICK-1", `${folder}/one.md`, "Edited"]]);
  expect(read("one.md")).toContain("\nid: TICK-1\n");
});

test("a stamp that cannot be put in place is an error, and the next reindex repairs it", async () => {
  put("one.md");
  const lose = () => rmSync(join(tickets, leftovers()[0]!));
  await expect(ask(before([lose]), "reindex", {})).rejects.toMatchObject(
    refusedWith("internal", `${folder}/one.md`, "run `sloop reindex` again") as object,
  );
  expect(rows()).toHaveLength(1);
  await ask(before([]), "reindex", {});
  expect(read("one.md")).toContain("\nid: TICK-1\n");
});

test("two at once: one after the other, and both are answered", async () => {
  put("one.md");
  const daemon = before([]);
  const [first, second] = await Promise.all([ask(daemon, "reindex", {}), ask(daemon, "reindex", {})]);
  expect(second).toEqual(first);
});

test("through the binary: a slow source holds up nobody, and a run that starts meanwhile is respected", async () => {
  await using scene = await newScene({ agent: 'while [ ! -e "$COUNT/end" ]; do sleep 0.02; done' });
  const source = join(scene.outside, "source.sh");
  const gate = (name: string) => writeFileSync(join(scene.outside, name), "");
  writeFileSync(
    source,
    `cat > /dev/null; cd '${scene.outside}'; touch asked-$$; while [ -e slow ] && [ ! -e go ]; do sleep 0.02; done
echo '[{"id":"E-1","name":"One","body":"w"}]'`,
  );
  const config = ".agents/sloop/config.yaml";
  scene.write(config, `${scene.read(config)}sources: { tickets: { exec: [sh, ${source}] } }\n`);
  await scene.data(["reindex"]);
  gate("slow");
  const slow = scene.sloop(["--json", "reindex"]);
  const asked = () => readdirSync(scene.outside).filter((name) => name.startsWith("asked"));
  await until(() => asked().length === 2, "the second pull");
  await scene.data(["run", "E-1"]);
  await until(async () => (await scene.value("E-1"))["state"] === "claimed", "the run");
  gate("go");
  const ended = await slow;
  expect(ended.code).toBe(1);
  const { error } = JSON.parse(ended.stderr) as { error: { code: string; message: string } };
  expect(error.code).toBe("conflict");
  expectGist(error.message, ["E-1-r1"]);
  gate("end");
  await scene.wait("E-1");
  expect(await scene.data(["reindex"])).toMatchObject({ tickets_indexed: 1 });
});

// files.md 6.4: a post's three writes (file, row, trigger) against an editor, a failing rename and a failing database.

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Store } from "../../src/store/open.ts";
import { indexProject } from "../../src/store/projects.ts";
import { ask, refusedWith } from "../support/ask.ts";
import type { Ran } from "../support/bin.ts";
import { openContext, type TestDaemon } from "../support/context.ts";
import { newScene, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";
import { folder, valid } from "./posting.ts";
import { expectGist } from "./refusal.ts";

setDefaultTimeout(60_000);

let daemon: TestDaemon;
let file: string;
let directory: string;
beforeEach(async () => {
  const base = await openContext({ ticketDir: folder });
  daemon = {
    ...base,
    [Symbol.dispose]: base[Symbol.dispose],
    flows: new Map([["default", { name: "default", stages: [] }]]),
  };
  daemon.store.write((tx) => indexProject(tx, { id: "default", filePath: "p.md", title: "P" }, 1));
  directory = join(daemon.root, folder);
  mkdirSync(directory, { recursive: true });
  file = join(directory, "one.md");
  writeFileSync(file, valid());
});
afterEach(() => daemon[Symbol.dispose]());

const rows = () => daemon.store.sqlite.query("select id, name from tickets").all() as { id: string; name: string }[];
const triggers = () => daemon.store.sqlite.query("select * from triggers").all();
const counters = () => daemon.store.sqlite.query("select * from id_counters").all();
const temporaries = () => readdirSync(directory).filter((name) => name.endsWith(".tmp"));

/** The same daemon, with something happening around its transactions. */
function around(moments: { before?: () => void; after?: () => void }): TestDaemon {
  const { store } = daemon;
  const write: Store["write"] = (body) => {
    moments.before?.();
    const result = store.write(body);
    moments.after?.();
    return result;
  };
  return { ...daemon, [Symbol.dispose]: () => undefined, store: { ...store, write } };
}

const post = (to: TestDaemon) => ask(to, "post", { file: `${folder}/one.md`, trigger: { kind: "auto" } });

const edited = valid("name: Edited");

/** Two ways in which editors save. */
const saves: [how: string, save: () => void][] = [
  ["in place", () => writeFileSync(file, edited)],
  [
    "by renaming",
    () => {
      writeFileSync(`${file}.swp`, edited);
      renameSync(`${file}.swp`, file);
    },
  ],
];

function expectNothing(): void {
  expect([rows(), triggers(), counters(), temporaries()]).toEqual([[], [], [], []]);
}

describe("an edit", () => {
  test.each(saves)("B67: saved %s between reading and committing is a conflict", async (_how, save) => {
    await expect(post(around({ before: save }))).rejects.toMatchObject(
      refusedWith("conflict", "source version conflict", `${folder}/one.md`) as object,
    );
    expect(readFileSync(file, "utf8")).toBe(edited);
    expectNothing();
  });

  test.each(saves)("saved %s between committing and renaming stands; posting again repairs", async (_how, save) => {
    await expect(post(around({ after: save }))).rejects.toMatchObject(
      refusedWith("conflict", "source version conflict", "`TICK-1` is registered") as object,
    );
    expect(readFileSync(file, "utf8")).toBe(edited);
    expect(temporaries()).toEqual([]);
    expect(rows()).toEqual([{ id: "TICK-1", name: "A ticket" }]);
    const reply = await post(daemon);
    expect(reply).toMatchObject({ created: false, file_rewritten: true, ticket: { id: "TICK-1", name: "Edited" } });
    expect(readFileSync(file, "utf8")).toContain("\nid: TICK-1\n");
    expect(triggers()).toHaveLength(1);
  });

  test("a file that is gone between reading and committing", async () => {
    await expect(post(around({ before: () => rmSync(file) }))).rejects.toMatchObject(
      refusedWith("conflict", "source version conflict") as object,
    );
    expectNothing();
  });
});

describe("a failing rename", () => {
  test.each<[how: string, fail: () => void]>([
    ["the prepared text is gone", () => rmSync(join(directory, temporaries()[0]!))],
    [
      "a directory stands there",
      () => {
        rmSync(file);
        mkdirSync(file);
      },
    ],
  ])("%s: the row exists, nothing is left over, posting again repairs", async (_how, fail) => {
    await expect(post(around({ after: fail }))).rejects.toMatchObject({
      message: expect.stringContaining("`TICK-1` is registered"),
    });
    expect([rows().length, temporaries()]).toEqual([1, []]);
    if (statSync(file).isDirectory()) {
      rmSync(file, { recursive: true });
      writeFileSync(file, valid());
    }
    expect(readFileSync(file, "utf8")).toBe(valid());
    expect(await post(daemon)).toMatchObject({ created: false, file_rewritten: true, ticket: { id: "TICK-1" } });
    expect(triggers()).toHaveLength(1);
  });

  test("a commit that fails leaves the file and no temporary", async () => {
    daemon.store.sqlite.run(
      "create trigger sabotage before insert on triggers begin select raise(abort, 'sabotaged'); end",
    );
    await expect(post(daemon)).rejects.toThrow("sabotaged");
    expect(readFileSync(file, "utf8")).toBe(valid());
    expectNothing();
  });

  test("a text that cannot be written beside the file", async () => {
    const stem = "x".repeat(240);
    file = join(directory, `${stem}.md`);
    writeFileSync(file, valid());
    const reply = await ask(daemon, "post", { file: `${folder}/${stem}.md`, trigger: { kind: "auto" } });
    expect(reply.file_rewritten).toBe(true);
    expect(temporaries()).toEqual([]);
  });
});

test("the stamped file has the permission bits of the old one", async () => {
  chmodSync(file, 0o640);
  await post(daemon);
  expect(statSync(file).mode & 0o7777).toBe(0o640);
});

/**
 * Posts a ticket through the binary and stops the daemon between reading the file and committing the row, by holding the
 * database's write lock as any other program may; `meanwhile` is given the text that is prepared beside the file.
 */
async function postHeldUp(scene: Scene, path: string, meanwhile: (prepared: string) => void): Promise<Ran> {
  const beside = join(scene.root, dirname(path));
  // Its permission bits are the last thing it is given.
  chmodSync(join(scene.root, path), 0o640);
  const complete = (name: string) => name.endsWith(".tmp") && (statSync(join(beside, name)).mode & 0o777) === 0o640;
  const prepared = () => readdirSync(beside).find(complete);
  const other = new Database(join(scene.stateDir(), "sloop.db"), { readwrite: true });
  try {
    other.run("PRAGMA busy_timeout=20000");
    other.run("BEGIN IMMEDIATE");
    const posting = scene.sloop(["--json", "post", path]);
    await until(() => prepared() !== undefined, "the prepared text");
    meanwhile(join(beside, prepared() ?? ""));
    other.run("COMMIT");
    return await posting;
  } finally {
    other.close();
  }
}

function refusedBy(ran: Ran): { code: string; message: string } {
  expect([ran.code, ran.stdout]).toEqual([1, ""]);
  return (JSON.parse(ran.stderr) as { error: { code: string; message: string } }).error;
}

describe("through the binary", () => {
  const nothing = (scene: Scene) => {
    expect(scene.query("select * from tickets")).toEqual([]);
    expect(scene.query("select * from triggers")).toEqual([]);
    expect(scene.query("select * from id_counters")).toEqual([]);
    expect(readdirSync(join(scene.root, folder))).toEqual(["one.md"]);
  };

  test.each<[how: string, save: (path: string) => void]>([
    ["in place", (path) => writeFileSync(path, edited)],
    [
      "by renaming",
      (path) => {
        writeFileSync(`${path}.swp`, edited);
        renameSync(`${path}.swp`, path);
      },
    ],
  ])("B67: an edit saved %s before the commit is a conflict and stays", async (_how, save) => {
    await using scene = await newScene();
    await scene.data(["pause"]);
    const path = scene.ticket("one");
    const error = refusedBy(await postHeldUp(scene, path, () => save(join(scene.root, path))));
    expect(error.code).toBe("conflict");
    expectGist(error.message, [path, "source version conflict"]);
    expect(scene.read(path)).toBe(edited);
    nothing(scene);
    expect(await scene.data(["post", path])).toMatchObject({ created: true, ticket: { id: "TICK-1", name: "Edited" } });
  });

  test("6.4: a rename that fails after the commit: the row is there, the file is not stamped, posting again repairs", async () => {
    await using scene = await newScene();
    await scene.data(["pause"]);
    const path = scene.ticket("one");
    const before = scene.read(path);
    const error = refusedBy(await postHeldUp(scene, path, (prepared) => rmSync(prepared)));
    expect(error.code).toBe("internal");
    expectGist(error.message, [path, "cannot be stamped", "`TICK-1` is registered", "post it again"]);
    expect(scene.read(path)).toBe(before);
    expect(scene.query("select id from tickets")).toEqual([{ id: "TICK-1" }]);
    expect(readdirSync(join(scene.root, folder))).toEqual(["one.md"]);
    expect(await scene.data(["post", path])).toMatchObject({ created: false, file_rewritten: true });
    expect(scene.read(path)).toContain("\nid: TICK-1\n");
    expect(scene.query("select ticket_id from triggers")).toEqual([{ ticket_id: "TICK-1" }]);
  });
});

/**
 * Saves one version after another, each without the stamped keys, and looks whether it is there. A post that was overtaken
 * gives the file back a moment later, however long a busy machine makes that moment: what is lost never comes back.
 */
const editor = `
const { readFileSync, renameSync, writeFileSync, existsSync } = require("node:fs");
const [file, stop] = process.argv.slice(1);
const text = (n) => "---\\nname: Version " + n + "\\nblocked_by: []\\n---\\nversion " + n + ".\\n";
let n = 0;
for (; !existsSync(stop); n += 1) {
  if (n % 2 === 0) writeFileSync(file, text(n));
  else { writeFileSync(file + ".swp", text(n)); renameSync(file + ".swp", file); }
  const until = performance.now() + Math.random() * 3;
  while (performance.now() < until);
  const givenUp = performance.now() + 20_000;
  for (;;) {
    const found = readFileSync(file, "utf8");
    if (found.endsWith("version " + n + ".\\n")) break;
    if (performance.now() > givenUp) { console.log("LOST " + n + ": " + found); process.exit(1); }
  }
}
console.log("saved " + n);
`;

test("an editor that never stops loses nothing to posts through the binary", async () => {
  await using scene = await newScene();
  await scene.data(["pause"]);
  const path = scene.ticket("one");
  const stop = join(scene.dir, "stop");
  const child = Bun.spawn([process.execPath, "-e", editor, join(scene.root, path), stop], { stdout: "pipe" });
  const codes = new Set<string>();
  for (let round = 0; round < 40 && child.exitCode === null; round += 1) {
    const ran = await scene.sloop(["--json", "post", path]);
    if (ran.code !== 0) codes.add((JSON.parse(ran.stderr) as { error: { code: string } }).error.code);
  }
  writeFileSync(stop, "");
  const said = await child.stdout.text();
  expect(said).toStartWith("saved ");
  // How many were quick enough is chance; one in peace is not.
  await scene.data(["post", path]);
  expect(readFileSync(join(scene.root, path), "utf8")).toContain("id: TICK-1\n");
  // Caught in the middle of a save, or by one: told so, whichever it was.
  for (const code of codes) expect(["conflict", "invalid_arguments", "not_found"]).toContain(code);
  expect(scene.query("select id from tickets")).toEqual([{ id: "TICK-1" }]);
  expect(readdirSync(join(scene.root, folder)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

// files.md 13 and 15 D: `sloop reindex` over ticket files, through the compiled binary.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { newScene, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";
import { folder, valid, writeDatabase } from "./posting.ts";
import { expectGist, refusal } from "./refusal.ts";

setDefaultTimeout(60_000);

type Reply = {
  projects_indexed: number;
  tickets_indexed: number;
  tickets_state_changed: number;
  state_changes: { ticket: string; previous_state: string; state: string }[];
  rows_dropped: number;
};

const reindex = async (scene: Scene) => (await scene.data(["reindex"])) as unknown as Reply;

const put = (scene: Scene, name: string, text = valid()): void => scene.write(`${folder}/${name}`, text);

type Row = { id: string; state: string; file_path: string; held_reason: string | null; project_id: string };
const rows = (scene: Scene) => scene.query<Row>("select * from tickets order by id");
const states = (scene: Scene) => Object.fromEntries(rows(scene).map((row) => [row.id, row.state]));

/** All of the index, but when it was written. */
const index = (scene: Scene) =>
  JSON.stringify([
    scene.query("select * from tickets order by id"),
    scene.query("select * from ticket_blockers order by 1, 2"),
    scene.query("select * from projects order by id"),
    scene.query("select * from triggers order by id"),
  ]);

describe("identity", () => {
  test("ids are given in path order, stamped, and the same the second time", async () => {
    await using scene = await newScene();
    put(scene, "b.md");
    put(scene, "a/z.md");
    put(scene, "kept.md", valid("id: TICK-7"));
    put(scene, "c.txt", "not a ticket");
    const first = await reindex(scene);
    expect(first).toEqual({
      projects_indexed: 1,
      tickets_indexed: 3,
      tickets_state_changed: 0,
      state_changes: [],
      rows_dropped: 0,
    });
    expect(rows(scene).map((row) => [row.id, row.file_path])).toEqual([
      ["TICK-7", `${folder}/kept.md`],
      ["TICK-8", `${folder}/a/z.md`],
      ["TICK-9", `${folder}/b.md`],
    ]);
    const stamped = "id: TICK-9\nproject: default\nworktree: sloop/b\nflow: default\n";
    expect(scene.read(`${folder}/b.md`)).toBe(`---\nname: A ticket\nblocked_by: []\n${stamped}---\nDo it.\n`);
    const before = index(scene);
    expect(await reindex(scene)).toEqual(first);
    expect(index(scene)).toBe(before);
    expect(readdirSync(join(scene.root, folder)).sort()).toEqual(["a", "b.md", "c.txt", "kept.md"]);
  });

  test("a renamed file is the same ticket, with its runs and its hold; swapped names too", async () => {
    await using scene = await newScene();
    await scene.post("one");
    expect(await scene.wait("TICK-1")).toBe(0);
    await scene.post("two", "", ["--hold"]);
    const path = (name: string) => join(scene.root, folder, name);
    renameSync(path("one.md"), path("three.md"));
    expect(await reindex(scene)).toMatchObject({ tickets_indexed: 2, tickets_state_changed: 0, rows_dropped: 0 });
    expect(await scene.value("TICK-1")).toMatchObject({ file: `${folder}/three.md`, state: "merged" });
    renameSync(path("two.md"), path("swap.md"));
    renameSync(path("three.md"), path("two.md"));
    renameSync(path("swap.md"), path("three.md"));
    await reindex(scene);
    expect(rows(scene).map((row) => [row.id, row.file_path, row.state])).toEqual([
      ["TICK-1", `${folder}/two.md`, "merged"],
      ["TICK-2", `${folder}/three.md`, "held"],
    ]);
    expect(await scene.value("TICK-1-r1")).toMatchObject({ state: "merged" });
  });

  test("a file without an id is the ticket registered for its path", async () => {
    await using scene = await newScene();
    const { ticket } = (await scene.post("one", "", ["--hold"])) as { ticket: { id: string } };
    put(scene, "one.md");
    put(scene, "zero.md", valid("id: TICK-90"));
    await reindex(scene);
    expect(states(scene)).toEqual({ [ticket.id]: "held", "TICK-90": "ready" });
    expect(scene.read(`${folder}/one.md`)).toContain(`\nid: ${ticket.id}\n`);
  });

  test("symbolic links are followed as `post` follows them, each file once: about in the repository, never out of it", async () => {
    await using scene = await newScene();
    put(scene, "one.md");
    scene.write("elsewhere/two.md", valid());
    mkdirSync(join(scene.dir, "far"));
    writeFileSync(join(scene.dir, "far/three.md"), valid());
    const tickets = join(scene.root, folder);
    symlinkSync(join(scene.root, "elsewhere"), join(tickets, "linked"));
    symlinkSync(join(scene.dir, "far"), join(tickets, "far"));
    symlinkSync("one.md", join(tickets, "again.md"));
    symlinkSync(tickets, join(tickets, "loop"));
    symlinkSync("nowhere.md", join(tickets, "dangling.md"));
    expect(await reindex(scene)).toMatchObject({ tickets_indexed: 2 });
    expect(readFileSync(join(scene.dir, "far/three.md"), "utf8")).toBe(valid());
    expect(rows(scene).map((row) => row.file_path)).toEqual([`${folder}/one.md`, "elsewhere/two.md"]);
    expect(scene.read("elsewhere/two.md")).toContain("id: TICK-2");
  });

  test("what a dead daemon left beside a file is removed, and nothing else", async () => {
    await using scene = await newScene();
    put(scene, "one.md");
    put(scene, ".one.md.sloop-post-4194305-1.tmp");
    put(scene, ".one.md.mine.tmp");
    await reindex(scene);
    expect(readdirSync(join(scene.root, folder)).sort()).toEqual([".one.md.mine.tmp", "one.md"]);
  });
});

describe("a pass that fails", () => {
  const blocked = (id: string, by: string) => valid(`id: ${id}\nblocked_by: [${by}]`);
  type Case = [number: string, files: Record<string, string>, gist: string[]];

  test.each<Case>([
    ["D10", { "a.md": valid("id: T1"), "b.md": valid("id: T1") }, ["duplicate ticket ID `T1`", "a.md", "b.md"]],
    [
      "D10, one of them invalid",
      { "a.md": valid("id: T1"), "b.md": "---\nid: T1\n---\n" },
      ["duplicate ticket ID `T1`"],
    ],
    ["D11", { "a.md": blocked("T1", "T2"), "b.md": blocked("T2", "T1") }, ["blocked_by", "T1 -> T2 -> T1"]],
    ["a cycle of one", { "a.md": blocked("T1", "T1") }, ["T1 -> T1"]],
    [
      "a file that cannot be stamped",
      { "a.md": "---\n{name: X, blocked_by: []}\n---\nDo it.\n" },
      ["a.md", "invalid frontmatter"],
    ],
    ["an empty key where a stamp belongs", { "a.md": valid("flow:") }, ["a.md", "`flow` is present but empty"]],
    [
      "an id that another file had before",
      { "a.md": valid("id: TICK-1"), "known.md": valid() },
      ["duplicate ticket ID `TICK-1`"],
    ],
  ])("%s: nothing is written", async (_number, files, gist) => {
    await using scene = await newScene();
    await scene.post("known");
    expect(await scene.wait("TICK-1")).toBe(0);
    put(scene, "good.md");
    for (const [name, text] of Object.entries(files)) put(scene, name, text);
    const texts = () => readdirSync(join(scene.root, folder)).map((name) => [name, scene.read(`${folder}/${name}`)]);
    const before = [index(scene), texts()];
    const { code, message } = await refusal(scene, ["reindex"]);
    expect(code).toBe("internal");
    expect(message).toStartWith("cannot reindex tickets: ");
    expectGist(message, gist);
    expect([index(scene), texts()]).toEqual(before);
  });

  test("without any project, tickets or not", async () => {
    await using scene = await newScene();
    rmSync(join(scene.root, ".agents/sloop/projects/default.md"));
    scene.write(".agents/sloop/projects/broken.md", "---\nid: [");
    const { code, message } = await refusal(scene, ["reindex"]);
    expect(code).toBe("internal");
    expect(message).toStartWith("cannot reindex projects: no project is indexed");
    expect(message).toContain("broken.md");
  });

  test("with a project file that cannot be stamped", async () => {
    await using scene = await newScene();
    await scene.data(["daemon"]);
    scene.write(".agents/sloop/projects/flow-style.md", "---\n{title: X}\n---\n");
    scene.write(".agents/sloop/projects/new.md", "no id yet\n");
    const { code, message } = await refusal(scene, ["reindex"]);
    expect([code, message]).toEqual(["internal", expect.stringContaining("cannot reindex projects: ")]);
    expectGist(message, ["flow-style.md", "id"]);
    expect(scene.read(".agents/sloop/projects/new.md")).toBe("no id yet\n");
  });
});

describe("held by validation", () => {
  test("D7, D8, D9, D12 and the rest: each with its reason, siblings untouched, released when right", async () => {
    const config = '    codex:\n      cmd: [codex, "{model}", "{prompt}"]\n';
    await using scene = await newScene({ config });
    await scene.post("operator", "", ["--hold"]);
    await scene.post("sibling", "", ["--manual"]);
    const wrong: [name: string, text: string, reason: string[]][] = [
      ["invalid.md", "---\nid: T1\nblocked_by: [TICK-2]\n---\n", ["missing or empty `name`", "empty `body`"]],
      ["cut.md", "---\nname: Cut\nid: T2\nblocked_by: []\n", ["not terminated"]],
      ["yaml.md", "---\nname: [\n---\nDo it.\n", ["invalid frontmatter"]],
      ["project.md", valid("id: T4\nproject: nope"), ["project `nope` is not indexed"]],
      ["flow.md", valid("id: T5\nflow: nope"), ["flow `nope` is not defined"]],
      ["target.md", valid("id: T6\ntarget: nope"), ["agent target `nope` is not configured"]],
      ["model.md", valid("id: T7\ntarget: codex"), ["agent target `codex`", "does not specify `model`"]],
      ["Bad_Stem.md", valid("id: T8"), ["`Bad_Stem` is not a valid worktree slug"]],
      ["blocker.md", valid("id: T9\nblocked_by: [TICK-2, NO-1]"), ["references unknown ticket `NO-1`"]],
    ];
    for (const [name, text] of wrong) put(scene, name, text);
    await reindex(scene);
    const stored = rows(scene);
    for (const [name, text, reason] of wrong) {
      const row = stored.find(({ file_path: path }) => path === `${folder}/${name}`)!;
      expect(row.state).toBe("held");
      expect(row.held_reason).toStartWith(`${folder}/${name}:`);
      expectGist(row.held_reason ?? "", reason);
      expect(row.project_id).toBe("default");
      expect(scene.read(`${folder}/${name}`)).toBe(text);
    }
    const byId = Object.fromEntries(stored.map((row) => [row.id, row]));
    expect(byId["TICK-1"]).toMatchObject({ state: "held", held_reason: null });
    expect(byId["TICK-2"]).toMatchObject({ state: "ready", held_reason: null });
    // Identity is salvaged where it can be read; YAML that does not parse yields nothing.
    expect(stored.find(({ file_path: path }) => path.endsWith("yaml.md"))?.id).toBe("TICK-3");
    expect(byId["T2"]).toMatchObject({ name: "Cut" });
    expect(await scene.value("T1")).toMatchObject({ blocked_by: ["TICK-2"], worktree: "sloop/invalid" });
    expect(await scene.value("T8")).toMatchObject({ worktree: "sloop/T8" });
    expect(await scene.value("T9")).toMatchObject({ blocked_by: [] });
    for (const [name] of wrong) {
      const id = stored.find(({ file_path: path }) => path === `${folder}/${name}`)!.id;
      put(scene, name, valid(`id: ${id}\nworktree: sloop/${id}`));
    }
    const fixed = await reindex(scene);
    expect(fixed.tickets_state_changed).toBe(wrong.length);
    const changes = stored
      .filter((row) => row.held_reason !== null)
      .map(({ id }) => ({ ticket: id, previous_state: "held", state: "ready" }))
      .sort((a, b) => (a.ticket < b.ticket ? -1 : 1));
    expect(fixed.state_changes).toEqual(changes);
    expect(states(scene)["TICK-1"]).toBe("held");
  });

  test("a post of the mended file releases it too; one of a file that is still wrong does not", async () => {
    await using scene = await newScene();
    put(scene, "one.md", valid("id: T1\nflow: nope"));
    await reindex(scene);
    expect((await refusal(scene, ["post", `${folder}/one.md`])).code).toBe("not_found");
    expect(states(scene)).toEqual({ T1: "held" });
    put(scene, "one.md", valid("id: T1"));
    await scene.data(["post", `${folder}/one.md`, "--manual"]);
    expect(states(scene)).toEqual({ T1: "ready" });
  });
});

describe("what goes", () => {
  test("tickets whose files are gone go with everything of theirs, and the rows are counted", async () => {
    await using scene = await newScene({ flows: { fails: "- { name: only, action: { exec: ['false'] } }" } });
    scene.write(".agents/sloop/projects/web.md", "---\nid: web\n---\n");
    await scene.post("gone", "project: web\nflow: fails");
    await scene.wait("TICK-1");
    await scene.post("stays", "blocked_by: [TICK-1]", ["--manual"]);
    await scene.post("other", "project: web", ["--hold"]);
    await scene.data(["run", "--project", "web", "--at", "03:00"]);
    await scene.data(["run", "--only", "TICK-1", "--at", "03:00"]);
    await scene.data(["run", "--only", "TICK-1,TICK-2", "--at", "03:00"]);
    rmSync(join(scene.root, folder, "gone.md"));
    rmSync(join(scene.root, ".agents/sloop/projects/web.md"));
    put(scene, "stays.md", scene.read(`${folder}/stays.md`).replace("[TICK-1]", "[]"));
    put(scene, "other.md", scene.read(`${folder}/other.md`).replace("project: web", "project: default"));
    const tables = ["tickets", "ticket_blockers", "projects", "triggers", "trigger_filters", "runs", "leases"];
    const more = ["run_evidence", "stage_runs", "notes", "request_keys", "budget_reservations"];
    const count = () =>
      [...tables, ...more].reduce(
        (sum, name) => sum + scene.query<{ n: number }>(`select count(*) n from ${name}`)[0]!.n,
        0,
      );
    const before = count();
    const reply = await reindex(scene);
    expect(reply.rows_dropped).toBe(before - count());
    expect(reply.rows_dropped).toBeGreaterThan(5);
    expect(states(scene)).toEqual({ "TICK-2": "ready", "TICK-3": "held" });
    expect(scene.query("select id from projects")).toEqual([{ id: "default" }]);
    expect(scene.query("select * from runs")).toEqual([]);
    // A queued trigger of the project, and one that only the gone ticket could have served, are gone; the third is narrowed.
    expect(scene.query("select state, ticket_id, project_id from triggers")).toEqual([
      { state: "queued", ticket_id: null, project_id: null },
    ]);
    expect(scene.query("select ticket_id from trigger_filters")).toEqual([{ ticket_id: "TICK-2" }]);
    expect(scene.query("pragma foreign_key_check")).toEqual([]);
    expect(await reindex(scene)).toMatchObject({ rows_dropped: 0, tickets_state_changed: 0 });
  });

  test("a trigger that a run which stays was claimed by survives, without its scope", async () => {
    await using scene = await newScene();
    scene.write(".agents/sloop/projects/web.md", "---\nid: web\n---\n");
    await scene.post("one", "project: web", ["--manual"]);
    await scene.data(["run", "--project", "web", "--every", "1d"]);
    writeDatabase(scene, "update triggers set eligible_at_ms = 1");
    await until(() => scene.query("select 1 from runs").length === 1, "the run");
    expect(await scene.wait("TICK-1")).toBe(0);
    rmSync(join(scene.root, ".agents/sloop/projects/web.md"));
    put(scene, "one.md", scene.read(`${folder}/one.md`).replace("project: web", "project: default"));
    await reindex(scene);
    expect(scene.query("select state, project_id from triggers")).toEqual([{ state: "cancelled", project_id: null }]);
    expect(await scene.value("TICK-1-r1")).toMatchObject({ state: "merged" });
  });
});

describe("when runs are active", () => {
  test("D16: refused with their names; --wait tries again until they are over, or the time is", async () => {
    await using scene = await newScene({ agent: 'while [ ! -e "$COUNT/go" ]; do sleep 0.02; done' });
    await scene.post("one");
    await until(() => scene.query("select 1 from runs where state = 'running'").length === 1, "the run");
    const { code, message } = await refusal(scene, ["reindex"]);
    expect(code).toBe("conflict");
    expectGist(message, ["1 run", "TICK-1-r1", "sloop reindex --wait", "sloop cancel", "settles by itself"]);
    const late = await scene.sloop(["--json", "reindex", "--wait", "--timeout", "1"]);
    expect([late.code, late.stdout]).toEqual([1, ""]);
    expect(JSON.parse(late.stderr).error).toMatchObject({ code: "conflict", message });
    const waiting = scene.sloop(["reindex", "--wait"]);
    const asked = () =>
      scene.events().filter(({ event, fields }) => event === "request_handled" && fields?.["verb"] === "reindex");
    await until(() => asked().length >= 3, "another try");
    writeFileSync(join(scene.outside, "go"), "");
    const done = await waiting;
    expect([done.code, done.stdout]).toEqual([
      0,
      "reindexed 1 project and 1 ticket; 0 ticket states changed; 0 rows dropped\n",
    ]);
  });
});

test("a reindex changes nothing that it need not: same bytes, same times, same rows", async () => {
  await using scene = await newScene();
  put(scene, "one.md");
  await reindex(scene);
  const file = join(scene.root, folder, "one.md");
  utimesSync(file, 1, 1);
  writeDatabase(scene, "update tickets set updated_at_ms = 5");
  await reindex(scene);
  expect(Bun.file(file).lastModified).toBe(1000);
  expect(scene.query("select updated_at_ms from tickets")).toEqual([{ updated_at_ms: 5 }]);
});

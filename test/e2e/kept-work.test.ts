// Nothing a run left behind is lost: not at its settlement, not by retention, whatever state its worktree is in.

import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newScene, type Scene, type SceneOptions } from "../support/scene.ts";
import { until } from "../support/until.ts";

const day = 24 * 60 * 60_000;
const start = 1_803_873_600_000;

/** A scene whose daemon takes its time from a file. */
async function clocked(options: SceneOptions = {}): Promise<{ scene: Scene; setNow(ms: number): void }> {
  const scene = await newScene(options);
  const clock = join(scene.dir, "clock");
  const setNow = (ms: number) => writeFileSync(clock, String(ms));
  setNow(start);
  scene.env["SLOOP_TEST_CLOCK_PATH"] = clock;
  return { scene, setNow };
}

type Run = { id: string; state: string; worktree: string; branch: string; wip: { ref: string; files: number } | null };
const runOf = async (scene: Scene, alias = "TICK-1-r1") => (await scene.value(alias)) as Run;
const hidden = (scene: Scene) => scene.git("for-each-ref", "--format=%(refname)", "refs/sloop");
const logged = (scene: Scene, event: string) => scene.events().filter((entry) => entry.event === event);

/** Turns every folder of the object store that is not there yet into a file: nothing more can be stored, as on a full disk. */
const fillObjects =
  'O=$(cd "$(git rev-parse --git-common-dir)" && pwd)/objects; for i in $(seq 0 255); do h=$(printf %02x $i); [ -e "$O/$h" ] || : > "$O/$h"; done';

function emptyObjects(scene: Scene): void {
  for (let first = 0; first < 256; first += 1) {
    const path = join(scene.root, ".git/objects", first.toString(16).padStart(2, "0"));
    if (statSync(path, { throwIfNoEntry: false })?.isFile()) rmSync(path);
  }
}

test("files behind a failing filter and in repositories inside are kept before the directory goes", async () => {
  const agent =
    "echo big > big.lfs; echo p > precious.txt; for n in a b; do mkdir $n; (cd $n; git init -q; echo in > in.txt); done; " +
    "cd b; git add -A; git -c user.name=x -c user.email=x@y.invalid commit -qm x; echo more > more.txt; exit 1";
  const { scene, setNow } = await clocked({ agent });
  await using _ = scene;
  scene.write(".gitattributes", "*.lfs filter=broken\n");
  scene.git("config", "filter.broken.clean", "false");
  scene.git("config", "filter.broken.required", "true");
  scene.commit("set up");
  await scene.post("first");
  expect(await scene.wait("TICK-1")).toBe(1);
  const run = await runOf(scene);
  const ref = `refs/sloop/wip/${run.id}`;
  expect(run.wip).toEqual({ ref, files: 5 });
  setNow(start + 30 * day);
  await until(() => !existsSync(run.worktree), "the directory to go");
  const names = scene.git("diff", "--name-only", `${ref}^1`, ref).split("\n");
  expect(names).toEqual(["a/in.txt", "b/in.txt", "b/more.txt", "big.lfs", "precious.txt"]);
  expect(scene.git("show", `${ref}:big.lfs`)).toBe("big");
}, 60_000);

test("a run settles though nothing can be stored; its directory stays until it can be kept", async () => {
  const { scene, setNow } = await clocked({ agent: `echo precious > precious.txt; ${fillObjects}; exit 1` });
  await using _ = scene;
  scene.commit("set up");
  await scene.post("first");
  expect(await scene.wait("TICK-1")).toBe(1);
  const run = await runOf(scene);
  expect(run).toMatchObject({ state: "failed", wip: null });
  expect(logged(scene, "uncommitted_work_not_kept")).toHaveLength(1);
  setNow(start + 31 * day);
  await until(() => logged(scene, "run_worktree_cleanup_failed").length > 0, "the cleanup to fail");
  expect(readFileSync(join(run.worktree, "precious.txt"), "utf8")).toBe("precious\n");
  emptyObjects(scene);
  await until(() => !existsSync(run.worktree), "the directory to go");
  expect(scene.git("show", `refs/sloop/wip/${run.id}:precious.txt`)).toBe("precious");
  expect((await runOf(scene)).wip).toEqual({ ref: `refs/sloop/wip/${run.id}`, files: 1 });
}, 60_000);

test("what a late cleanup keeps is not dropped at once", async () => {
  const { scene, setNow } = await clocked({ config: "worktree_retention: 60d" });
  await using _ = scene;
  scene.commit("set up");
  for (const stem of ["first", "second"]) {
    await scene.post(stem);
    expect(await scene.wait(stem === "first" ? "TICK-1" : "TICK-2")).toBe(0);
  }
  const [late, other] = [await runOf(scene), await runOf(scene, "TICK-2-r1")];
  writeFileSync(join(late.worktree, "mine"), "precious\n");
  // A second one tells when its references were judged: they are due, and nothing was cleaned late.
  scene.git("update-ref", `refs/sloop/kept/${other.id}`, "HEAD");
  scene.git("worktree", "lock", other.worktree);
  setNow(start + 60 * day);
  await until(() => !existsSync(late.worktree), "the directory to go");
  await until(() => scene.query("select 1 from runs where cleaned_at_ms is not null").length === 1, "its record");
  setNow(start + 60 * day + 2 * 60 * 60_000);
  await until(() => !hidden(scene).includes(other.id), "the other run's reference to go");
  expect(scene.git("show", `refs/sloop/wip/${late.id}:mine`)).toBe("precious");
  setNow(start + 91 * day);
  await until(() => hidden(scene) === "", "its own to go");
}, 60_000);

for (const [what, damage] of [
  ["git's record of its worktree is gone", 'rm -rf "$(git rev-parse --git-dir)"'],
  ["its index is damaged", 'printf x > "$(git rev-parse --git-dir)/index"'],
  ["its .git file is gone", "rm .git"],
] as const) {
  test(`a run settles, and its files are kept, though ${what}`, async () => {
    const { scene, setNow } = await clocked({ agent: `echo precious > precious.txt; ${damage}; exit 1` });
    await using _ = scene;
    scene.commit("set up");
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    const run = await runOf(scene);
    expect(run).toMatchObject({ state: "failed", wip: { files: 1 } });
    setNow(start + 31 * day);
    await until(() => !existsSync(run.worktree), "the directory to go");
    expect(scene.git("show", `refs/sloop/wip/${run.id}:precious.txt`)).toBe("precious");
    expect(logged(scene, "run_worktree_cleanup_failed")).toEqual([]);
  }, 60_000);
}

test("commits on a detached HEAD outlive the worktree", async () => {
  const agent =
    'git checkout -q --detach; echo w > w; git add -A; git commit -qm precious; git rev-parse HEAD > "$COUNT/oid"; exit 1';
  const { scene, setNow } = await clocked({ agent });
  await using _ = scene;
  scene.commit("set up");
  await scene.post("first");
  expect(await scene.wait("TICK-1")).toBe(1);
  const run = await runOf(scene);
  setNow(start + 31 * day);
  await until(() => !existsSync(run.worktree), "the directory to go");
  const oid = readFileSync(join(scene.outside, "oid"), "utf8").trim();
  expect(scene.git("for-each-ref", "--format=%(refname)", "--contains", oid)).toBe(`refs/sloop/kept/${run.id}`);
}, 60_000);

test("the references of a dropped ticket stay as long as any, counted from when it was first missed", async () => {
  const { scene, setNow } = await clocked({ agent: "echo precious > w; exit 1" });
  await using _ = scene;
  scene.commit("set up");
  const ids: string[] = [];
  for (const [index, stem] of ["first", "second"].entries()) {
    await scene.post(stem);
    expect(await scene.wait(`TICK-${index + 1}`)).toBe(1);
    ids.push((await runOf(scene, `TICK-${index + 1}-r1`)).id);
  }
  const record = join(scene.stateDir(), "dropped-runs.json");
  const missed = () => (existsSync(record) ? (JSON.parse(readFileSync(record, "utf8")) as Record<string, number>) : {});
  const dropAt = async (stem: string, id: string, ms: number) => {
    rmSync(join(scene.root, `.agents/sloop/tickets/${stem}.md`));
    await scene.data(["reindex"]);
    setNow(ms);
    await until(() => missed()[id] === ms || !hidden(scene).includes(id), `${stem} to be missed`);
    expect(hidden(scene)).toContain(id);
  };
  setNow(start + 40 * day);
  await until(() => scene.git("worktree", "list").split("\n").length === 1, "the directories to go");
  const first = start + 41 * day;
  await dropAt("first", ids[0]!, first);
  await dropAt("second", ids[1]!, first + day);
  await scene.killDaemon();
  setNow(first + 30 * day);
  await scene.data(["status"]);
  await until(() => !hidden(scene).includes(ids[0]!), "the first ticket's references to go");
  expect(missed()[ids[1]!]).toBe(first + day);
  expect(hidden(scene)).toBe(`refs/sloop/wip/${ids[1]}`);
  setNow(first + 31 * day);
  await until(() => hidden(scene) === "", "the second ticket's references to go");
}, 60_000);

function insertRuns(scene: Scene, names: string[], columns: Record<string, number>, state: string): void {
  const db = new Database(join(scene.stateDir(), "sloop.db"));
  db.run("PRAGMA busy_timeout = 10000");
  const keys = Object.keys(columns);
  const add = db.query(
    `insert into runs (id, trigger_id, ticket_id, state, attempt, branch, worktree_path, created_at_ms, updated_at_ms, ${keys}) values (?, 'TR1', 'TICK-1', ?, ?, ?, ?, 1, 1, ${keys.map(() => "?")})`,
  );
  db.transaction(() => {
    for (const [index, name] of names.entries()) {
      const id = `f${String(index).padStart(31, "0")}`;
      const path = join(scene.root, ".worktrees", name);
      add.run(id, state, 1000 + index, `sloop/${name}`, path, ...Object.values(columns));
    }
  })();
  db.close();
}

test("two hundred old runs that nobody resolved do not hide later ones", async () => {
  const { scene, setNow } = await clocked({ agent: "echo precious > w; exit 1" });
  await using _ = scene;
  scene.commit("set up");
  await scene.post("first");
  expect(await scene.wait("TICK-1")).toBe(1);
  const run = await runOf(scene);
  const names = Array.from({ length: 450 }, (_, index) => `gone-${index}`);
  insertRuns(scene, names, { exited_at_ms: start - 1000 }, "failed");
  setNow(start + 31 * day);
  await until(() => !existsSync(run.worktree), "the directory to go");
  expect(scene.git("show", `refs/sloop/wip/${run.id}:w`)).toBe("precious");
}, 60_000);

test("what cannot be cleaned does not hold up the rest, is tried seldom, and what a person locked stays", async () => {
  const { scene, setNow } = await clocked();
  await using _ = scene;
  scene.commit("set up");
  for (const stem of ["first", "second"]) {
    await scene.post(stem);
    expect(await scene.wait(stem === "first" ? "TICK-1" : "TICK-2")).toBe(0);
  }
  const [locked, free] = [await runOf(scene), await runOf(scene, "TICK-2-r1")];
  scene.git("worktree", "lock", locked.worktree);
  const names = Array.from({ length: 20 }, (_, index) => `mine-${index}`);
  for (const name of names) {
    mkdirSync(join(scene.root, ".worktrees", name));
    writeFileSync(join(scene.root, ".worktrees", name, "mine"), "x");
  }
  const columns = { exited_at_ms: start - 1000, cleanup_eligible_at_ms: start - 1000 };
  insertRuns(scene, names, columns, "cancelled");
  setNow(start + 8 * day);
  await until(() => !existsSync(free.worktree), "the directory that may go");
  const failed = (id: string) =>
    logged(scene, "run_worktree_cleanup_failed").filter(({ fields }) => fields?.["run_id"] === id).length;
  await until(() => failed(locked.id) > 0, "the locked one to be refused");
  expect(existsSync(locked.worktree)).toBe(true);
  expect(scene.git("branch", "--list", locked.branch)).not.toBe("");
  for (const name of names) expect(existsSync(join(scene.root, ".worktrees", name, "mine"))).toBe(true);
  expect(failed(`f${"0".repeat(31)}`)).toBeLessThanOrEqual(3);
  scene.git("worktree", "unlock", locked.worktree);
  await until(() => !existsSync(locked.worktree), "the unlocked one to go");
}, 90_000);

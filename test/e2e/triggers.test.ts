// Every kind of trigger under a clock the test moves: when it is due, what it takes, what becomes of it (engine.md 6).

import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { newScene, type Scene, type SceneOptions } from "../support/scene.ts";
import { until } from "../support/until.ts";

const minute = 60_000;
const at = (iso: string) => Date.parse(iso);

type Clocked = { scene: Scene; set(iso: string): void; advance(ms: number): void };

/** A scene whose daemon takes its time from a file and its local time from `zone`. */
async function clocked(start: string, options: SceneOptions & { zone?: string } = {}): Promise<Clocked> {
  const scene = await newScene(options);
  const file = join(scene.dir, "clock");
  let now = at(start);
  const write = () => writeFileSync(file, String(now));
  write();
  Object.assign(scene.env, { SLOOP_TEST_CLOCK_PATH: file, TZ: options.zone ?? "UTC" });
  return {
    scene,
    set(iso) {
      now = at(iso);
      write();
    },
    advance(ms) {
      now += ms;
      write();
    },
  };
}

type TriggerRow = { id: string; kind: string; state: string; eligible_at_ms: number | null };
const triggersOf = (scene: Scene) =>
  scene.query<TriggerRow>("select id, kind, state, eligible_at_ms from triggers order by rowid");
const merged = (scene: Scene) =>
  scene.query<{ id: string }>("select id from tickets where state = 'merged' order by id").map(({ id }) => id);
const runs = (scene: Scene) => scene.query("select id from runs").length;

/** A pass follows every request, so whatever the clock has made due by now is claimed when this resolves. */
async function quiet(scene: Scene): Promise<void> {
  for (let n = 0; n < 3; n += 1) await scene.data(["status"]);
}

describe("every", () => {
  test("takes one ticket at each instant, collapses what was missed, and keeps its beat", async () => {
    const { scene, advance } = await clocked("2026-06-01T12:00:00Z");
    await using _ = scene;
    for (const stem of ["a", "b", "c"]) await scene.post(stem, "", ["--manual"]);
    await scene.data(["run", "--every", "10m"]);
    const [armed] = triggersOf(scene);
    expect(armed).toMatchObject({ kind: "every", state: "queued", eligible_at_ms: at("2026-06-01T12:10:00Z") });
    await quiet(scene);
    expect(runs(scene)).toBe(0);
    advance(10 * minute);
    await until(() => merged(scene).length === 1, "the first");
    expect(triggersOf(scene)[0]!.eligible_at_ms).toBe(at("2026-06-01T12:20:00Z"));
    advance(35 * minute);
    await until(() => merged(scene).length === 2, "the second");
    expect(triggersOf(scene)).toHaveLength(1);
    expect(triggersOf(scene)[0]).toMatchObject({ state: "queued", eligible_at_ms: at("2026-06-01T12:50:00Z") });
    await quiet(scene);
    expect(runs(scene)).toBe(2);
    // A clock that is set back brings nothing forward.
    advance(-40 * minute);
    await quiet(scene);
    advance(44 * minute);
    await quiet(scene);
    expect(runs(scene)).toBe(2);
    advance(minute);
    await until(() => merged(scene).length === 3, "the third");
  }, 60_000);

  test("pinned to a ticket ends with it, and nobody else's does", async () => {
    const { scene, advance } = await clocked("2026-06-01T12:00:00Z");
    await using _ = scene;
    await scene.post("a", "", ["--manual"]);
    await scene.post("b", "", ["--manual"]);
    await scene.data(["run", "TICK-1", "--every", "5m"]);
    await scene.data(["run", "TICK-1", "--at", "18:00"]);
    await scene.data(["run", "TICK-2", "--every", "1h"]);
    advance(5 * minute);
    await until(() => merged(scene).length === 1, "the ticket");
    expect(triggersOf(scene).map(({ state }) => state)).toEqual(["completed", "completed", "queued"]);
  }, 60_000);
});

describe("at a local time", () => {
  test.each([
    // 02:30 does not exist on the 29th of March: the next one is a day later.
    ["2026-03-28T23:00:00Z", "2026-03-29T12:00:00Z", "2026-03-30T00:30:00Z"],
    // On the 25th of October it comes twice: the first.
    ["2026-10-24T23:00:00Z", "2026-10-25T00:29:59Z", "2026-10-25T00:30:00Z"],
  ])(
    "across a change of clocks: from %s on, not yet at %s, at %s",
    async (start, before, due) => {
      const { scene, set } = await clocked(start, { zone: "Europe/Berlin" });
      await using _ = scene;
      await scene.post("a", "", ["--at", "02:30"]);
      expect(triggersOf(scene)).toEqual([{ id: "TR1", kind: "at", state: "queued", eligible_at_ms: at(due) }]);
      set(before);
      await quiet(scene);
      expect(runs(scene)).toBe(0);
      const { tickets } = (await scene.data(["list"])) as { tickets: { reason: string }[] };
      expect(tickets[0]!.reason).toBe(`queued trigger TR1 is due at ${due}`);
      set(due);
      await until(() => merged(scene).length === 1, "the run");
      expect(triggersOf(scene)[0]!.state).toBe("completed");
    },
    60_000,
  );

  test("posted again it is moved, not doubled", async () => {
    const { scene } = await clocked("2026-06-01T12:00:00Z");
    await using _ = scene;
    await scene.post("a", "", ["--at", "13:00"]);
    await scene.data(["post", ".agents/sloop/tickets/a.md", "--at", "14:00"]);
    expect(triggersOf(scene)).toEqual([
      { id: "TR1", kind: "at", state: "queued", eligible_at_ms: at("2026-06-01T14:00:00Z") },
    ]);
  }, 60_000);
});

describe("running hours", () => {
  const config = "scheduler:\n  running_hours: { start: '22:00', end: '06:00' }";

  test("hold what is due back until they open, also on the night without a 02:00", async () => {
    const { scene, set } = await clocked("2026-03-28T12:00:00Z", { zone: "Europe/Berlin", config });
    await using _ = scene;
    await scene.post("a");
    await scene.post("b", "", ["--manual"]);
    await scene.data(["run", "TICK-2", "--overnight"]);
    const opening = at("2026-03-28T21:00:00Z");
    expect(triggersOf(scene)[1]).toMatchObject({ kind: "overnight", eligible_at_ms: opening });
    const status = (await scene.data(["status"])) as { next_wake: { at_ms?: number } | null };
    expect(JSON.stringify(status)).toContain("21:00:00");
    set("2026-03-28T20:59:59Z");
    await quiet(scene);
    expect(runs(scene)).toBe(0);
    set("2026-03-28T21:00:00Z");
    await until(() => merged(scene).length === 2, "both");
  }, 60_000);

  test("let a run that is going go on when they close", async () => {
    const agent =
      'touch "$COUNT/in"; while [ ! -e "$COUNT/go" ]; do sleep 0.02; done; echo w > w; git add -A; git commit -qm w';
    const { scene, set } = await clocked("2026-06-01T23:00:00Z", { config, agent });
    await using _ = scene;
    await scene.post("a");
    await until(() => runs(scene) === 1, "the run");
    set("2026-06-02T06:00:00Z");
    await scene.post("b");
    writeFileSync(join(scene.outside, "go"), "");
    await until(() => merged(scene).length === 1, "the first");
    await quiet(scene);
    expect(runs(scene)).toBe(1);
  }, 60_000);
});

describe("what a trigger may take", () => {
  test("only those it names, and only of its project", async () => {
    const { scene } = await clocked("2026-06-01T12:00:00Z");
    await using _ = scene;
    scene.write(".agents/sloop/projects/web.md", "---\nid: web\ntitle: Web\n---\n");
    for (const stem of ["a", "b", "c"]) await scene.post(stem, "", ["--manual"]);
    await scene.post("d", "project: web", ["--manual"]);
    await scene.data(["run", "--only", "TICK-2,TICK-3"]);
    await until(() => merged(scene).length === 1, "the first of the two");
    expect(merged(scene)).toEqual(["TICK-2"]);
    await scene.data(["run", "--project", "web"]);
    await until(() => merged(scene).length === 2, "that of the project");
    expect(merged(scene)).toEqual(["TICK-2", "TICK-4"]);
    await quiet(scene);
    expect(runs(scene)).toBe(2);
  }, 60_000);

  test("a ticket that was merged in the meantime needs none: a second start finds nothing to complete", async () => {
    const { scene } = await clocked("2026-06-01T12:00:00Z");
    await using _ = scene;
    await scene.post("a");
    await until(() => merged(scene).length === 1, "the run");
    await scene.data(["stop"]);
    const columns = "id, kind, state, ticket_id, created_at_ms, updated_at_ms";
    using db = new Database(join(scene.stateDir(), "sloop.db"));
    // The daemon that was stopped may still be closing it.
    db.run("PRAGMA busy_timeout = 20000");
    db.run(`insert into triggers (${columns}) values ('TR9', 'auto', 'queued', 'TICK-1', 1, 1)`);
    await scene.data(["status"]);
    expect(triggersOf(scene).at(-1)).toMatchObject({ id: "TR9", state: "completed" });
    await scene.data(["stop"]);
    await scene.data(["status"]);
    const told = scene.events().filter(({ event }) => event === "trigger_completed_on_merged_ticket");
    expect(told).toHaveLength(1);
  }, 60_000);
});

// protocol.md 7.13 and 10: pages of the activity feed, its cursors, scopes and kinds.

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../../support/until.ts";
import { commit, openStage, type Stage, startMs } from "./stage.ts";
import { converse, expectRefusal, type Json, type Wire } from "./wire.ts";

setDefaultTimeout(60_000);

let stage: Stage;
let wire: Wire;
type Event = Json & { sequence: number };
type Page = { events: Event[]; next_cursor: number; latest: number };

const flows = { plain: "stages:\n  - { name: build, action: agent }\n" };

beforeAll(async () => {
  stage = await openStage({ clock: true, flows, config: "worktree_retention: 1d" });
  wire = stage.wire;
  stage.agent("TICK-2", "exit 3");
  await stage.post("first");
  await stage.settled("TICK-1");
  await stage.post("second");
  await stage.settled("TICK-2");
  await wire.ok("retry", { ticket: "TICK-2" });
  await wire.ok("run", { trigger: { kind: "now" }, only: [], ticket: "TICK-2" });
  await stage.settled("TICK-2-r2");
  await stage.post("reviewed", { flow: "plain" });
  await stage.settled("TICK-3");
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const page = async (args: Json = {}) => (await wire.ok("events", args)) as unknown as Page;
const sequences = ({ events }: Page) => events.map(({ sequence }) => sequence);

describe("10 kinds", () => {
  test("10: a plain run gives exactly run_claimed, run_started, run_finished, key by key", async () => {
    const { id: run } = await wire.ok("wait", { run: "TICK-1" });
    const { events } = await page({ scope: run });
    const common = { run, ticket: "TICK-1", alias: "TICK-1-r1", sequence: expect.any(Number), occurred_at_ms: startMs };
    expect(events as Json[]).toEqual([
      { ...common, kind: "run_claimed", data: { attempt: 1 } },
      { ...common, kind: "run_started", data: {} },
      { ...common, kind: "run_finished", data: { outcome: "merged", exit_code: 0, ticket_state: "merged" } },
    ]);
    expect(events.map(({ sequence }) => sequence)).toEqual(sequences({ events } as Page).toSorted((a, b) => a - b));
  });

  test("10: claims count attempts, a finish carries outcome, exit code and the ticket's state", async () => {
    const { events } = await page({ scope: "TICK-2" });
    expect(events).toMatchObject([
      { kind: "run_claimed", alias: "TICK-2-r1", data: { attempt: 1 } },
      { kind: "run_started" },
      { kind: "run_finished", data: { outcome: "failed", exit_code: 3, ticket_state: "failed" } },
      { kind: "run_claimed", alias: "TICK-2-r2", data: { attempt: 2 } },
      { kind: "run_started" },
      { kind: "run_finished" },
    ]);
  });

  test("10, 14.17: a merge by hand: the ticket merged, the run still needs_review; then its worktree cleaned up", async () => {
    const { branch, worktree } = (await stage.value("TICK-3-r1")) as { branch: string; worktree: string };
    const tip = stage.scene.git("rev-parse", branch);
    stage.scene.git("merge", "-q", "--no-ff", "-m", "by hand", branch);
    const merged = stage.scene.git("rev-parse", "main");
    const found = await until(
      async () => (await page({ scope: "TICK-3" })).events.find(({ kind }) => kind === "external_merge_reconciled"),
      "the merge to be noticed",
    );
    expect(found).toMatchObject({ ticket: "TICK-3", alias: "TICK-3-r1" });
    expect(found["data"]).toEqual({ branch, branch_tip: tip, observed_default_tip: merged });
    expect(await stage.value("TICK-3")).toMatchObject({ state: "merged" });
    expect(await stage.value("TICK-3-r1")).toMatchObject({ state: "needs_review" });
    stage.setNow(startMs + 25 * 3_600_000);
    const cleaned = await until(
      async () => (await page({ scope: "TICK-3" })).events.find(({ kind }) => kind === "run_worktree_cleaned"),
      "the worktree to be cleaned up",
    );
    expect(cleaned["data"]).toEqual({ branch, worktree });
    // Kept after cleanup.
    expect(await stage.value("TICK-3-r1")).toMatchObject({ branch, worktree });
  });

  test("10: a launch that fails: run_aborted, nothing in its data", async () => {
    await using other = await openStage({ config: '    none: { cmd: [no-such-program-anywhere, "{prompt}"] }' });
    await other.post("aborted", { front: "target: none" });
    const event = await until(async () => {
      const { events } = (await other.wire.ok("events")) as unknown as Page;
      return events.find(({ kind }) => kind === "run_aborted");
    }, "the launch to fail");
    await other.wire.ok("pause");
    expect(event).toMatchObject({ ticket: "TICK-1", alias: "TICK-1-r1", data: {} });
    expect(await other.value("TICK-1")).toMatchObject({ state: "ready" });
  });
});

describe("7.13 pages", () => {
  test("7.13: the whole feed, and after any of its cursors", async () => {
    const all = await page();
    const { latest } = all;
    expect(Object.keys(all).sort()).toEqual(["events", "latest", "next_cursor"]);
    expect(all.next_cursor).toBe(latest);
    const every = sequences(all);
    expect(every.at(-1)).toBe(latest);
    expect(every).toEqual(every.toSorted((a, b) => a - b));
    expect(await page({ after: 0 })).toEqual(all);
    expect(await page({ after: -5 })).toEqual(all);
    expect(await page({ after: every[3] })).toEqual({ events: all.events.slice(4), next_cursor: latest, latest });
    expect(await page({ after: latest })).toEqual({ events: [], next_cursor: latest, latest });
    expect(await page({ after: latest + 1000 })).toEqual({ events: [], next_cursor: latest + 1000, latest });
    expect(await page({ after: -7, limit: 0 })).toEqual({ events: [], next_cursor: 0, latest });
  });

  test("7.13, 14.18: a cursor beyond the end comes back unchanged, to the last digit", async () => {
    for (const cursor of ["9007199254740993", "9223372036854775807"]) {
      const line = `{"v":1,"id":"a","verb":"events","args":{"after":${cursor}}}`;
      expect(await converse(wire.path, line)).toContain(`"next_cursor":${cursor},`);
    }
  });

  test("7.13 tail: that many before the newest; after wins over it; 0 means only what comes next", async () => {
    const all = await page();
    const { latest } = all;
    expect(await page({ tail: 2 })).toEqual({ events: all.events.slice(-2), next_cursor: latest, latest });
    expect(await page({ tail: 0 })).toEqual({ events: [], next_cursor: latest, latest });
    expect(await page({ tail: 100_000 })).toEqual(all);
    expect(await page({ tail: 1, after: all.events[2]!.sequence })).toEqual({ ...all, events: all.events.slice(3) });
    expect(await page({ tail: 3, limit: 2 })).toMatchObject({ next_cursor: all.events.at(-2)!.sequence });
    // 0 is a cursor like any other.
    expect(await page({ tail: 1, after: 0 })).toEqual(all);
  });

  test("7.13 limit: events scanned, 64 by default, 256 at most, 0 for none", async () => {
    const all = await page({ limit: 256 });
    const [first, second] = all.events;
    expect(await page({ limit: 2 })).toEqual({
      events: [first!, second!],
      next_cursor: second!.sequence,
      latest: all.latest,
    });
    expect(await page({ limit: 0 })).toEqual({ events: [], next_cursor: 0, latest: all.latest });
    expect(await page({ limit: 4_294_967_295 })).toEqual(all);
  });

  test("7.13 scopes: a ticket, a run, a project, a pattern; the cursor moves past what they hide", async () => {
    const all = await page();
    const of = (wanted: (event: Event) => boolean) => ({ ...all, events: all.events.filter(wanted) });
    const { id: run } = await wire.ok("wait", { run: "TICK-2-r1" });
    expect(await page({ scope: "TICK-2" })).toEqual(of(({ ticket }) => ticket === "TICK-2"));
    expect(await page({ scope: "second" })).toEqual(of(({ ticket }) => ticket === "TICK-2"));
    for (const scope of [run, "TICK-2-r1", String(run).slice(0, 16)]) {
      expect(await page({ scope })).toEqual(of((event) => event["run"] === run));
    }
    expect(await page({ scope: "default" })).toEqual(of(({ ticket }) => ticket !== null));
    expect(await page({ scope: "^TICK-[13]$" })).toEqual(
      of(({ ticket }) => ticket === "TICK-1" || ticket === "TICK-3"),
    );
    expect(await page({ scope: "SECON" })).toEqual(of(({ ticket }) => ticket === "TICK-2"));
    expect(await page({ scope: "no-such" })).toEqual(of(() => false));
    expect(await page({ scope: null })).toEqual(all);
    // 14.12: a page may be empty and not the end.
    expect(await page({ scope: "TICK-3", limit: 3 })).toEqual({
      events: [],
      next_cursor: all.events[2]!.sequence,
      latest: all.latest,
    });
    expectRefusal(await wire.refused("events", { scope: "(" }), "invalid_arguments", "invalid ticket pattern `(`");
  });

  test("7.13 scopes: events without a ticket belong to none, not even to the pattern of everything", async () => {
    stage.agent("TICK-4", `while [ ! -e "$COUNT/TICK-4.go" ]; do sleep 0.02; done; ${commit}`);
    await stage.post("slow");
    await wire.ok("restart");
    await wire.ok("resume");
    stage.go("TICK-4");
    await stage.settled("TICK-4");
    const restarts = ({ events }: Page) => events.filter(({ kind }) => kind === "daemon_restart_requested");
    const all = await page();
    expect(restarts(all)).toHaveLength(1);
    expect(restarts(all)[0]).not.toHaveProperty("alias");
    for (const scope of ["", ".*", "default"]) expect(restarts(await page({ scope }))).toEqual([]);
  });

  test("7.13: sequences go on over a restart of the daemon", async () => {
    const { latest, events } = await page();
    await stage.scene.killDaemon();
    await stage.scene.data(["daemon"]);
    expect(await page()).toEqual({ events, next_cursor: latest, latest });
  });

  test("7.13: tail 100 with the default limit gives the oldest 64 of those 100; 256 at most", async () => {
    await using other = await openStage({ paused: true });
    await other.stop();
    const db = new Database(`${other.scene.stateDir()}/sloop.db`);
    db.run("PRAGMA busy_timeout = 20000");
    db.run(`insert into events (occurred_at_ms, kind, run_id, ticket_id, data_json)
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 400)
      select i, case when i % 4 = 0 then 'unheard_of' else 'daemon_restart_requested' end, null, null, '{}' from n`);
    db.close();
    await other.scene.data(["daemon"]);
    const ask = async (args: Json) => (await other.wire.ok("events", args)) as unknown as Page;
    // Three hundred known ones; the kinds that the page does not list are not there at all.
    expect(sequences(await ask({ tail: 100 }))).toHaveLength(64);
    const tail = await ask({ tail: 100, limit: 256 });
    expect(tail.events).toHaveLength(100);
    expect(sequences(await ask({ tail: 100 }))).toEqual(sequences(tail).slice(0, 64));
    expect(tail).toMatchObject({ latest: 399, next_cursor: 399 });
    const first = await ask({ limit: 1000 });
    expect(first.events).toHaveLength(256);
    expect(first.next_cursor).toBe(first.events.at(-1)!.sequence);
    expect(first.events.every(({ kind }) => kind === "daemon_restart_requested")).toBe(true);
  });
});

// protocol.md 7.12 and 9: captured output, its records, pages, selectors and cursors.

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../support/until.ts";
import { commit, meet, openStage, type Stage } from "./stage.ts";
import { converse, expectRefusal, type Json, request, type Wire } from "./wire.ts";

setDefaultTimeout(60_000);

let stage: Stage;
let wire: Wire;
type Entry = Json & { sequence: number };
type Page = { entries: Entry[]; next_cursor: number; complete: boolean; elided: number; terminal: boolean };

const flows = {
  tested: `stages:
  - { name: build, action: agent }
  - { name: test, action: { exec: [sh, -c, 'echo "2 tests failed" >&2; test -e twice'] }, fail_action: { return_to: build, attempts: 1 } }
`,
};

/** The log of a run, for what no agent prints on command: thousands of records, torn ones, ones without a stage. */
const logOf = (run: string) => join(stage.scene.stateDir(), "runs", run, "output.ndjson");
let made = "";

beforeAll(async () => {
  stage = await openStage({ flows });
  wire = stage.wire;
  const agent = `echo out; sleep 0.05; echo err >&2; sleep 0.05; printf '\\377\\376'; sleep 0.05; printf 'é😀\\n'
if [ -e once ]; then touch twice; fi; touch once; ${commit}`;
  stage.agent("TICK-1", agent);
  await stage.post("printer", { flow: "tested" });
  await stage.post("quiet");
  for (const id of ["TICK-1", "TICK-2"]) await stage.settled(id);
  made = (await wire.ok("wait", { run: "TICK-2" }))["id"] as string;
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const page = async (args: Json) => (await wire.ok("logs", args)) as unknown as Page;
const sequences = ({ entries }: Page) => entries.map(({ sequence }) => sequence);
const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n);

/** Replaces the log of TICK-2's run by made ones. */
function write(records: Json[], tail = ""): void {
  writeFileSync(logOf(made), records.map((record) => `${JSON.stringify(record)}\n`).join("") + tail);
}

const record = (sequence: number, more: Json = {}): Json => ({
  sequence,
  timestamp: "2027-03-01T01:03:50.4Z",
  source: "agent",
  stage: "build",
  attempt: 1,
  stream: "stdout",
  encoding: "utf8",
  text: `line ${sequence}\n`,
  ...more,
});

describe("9.1 records", () => {
  test("9.1: every key, sequences from 1 over pipes and stages, bytes that are no text as base64", async () => {
    const all = await page({ run: "TICK-1-r1" });
    expect(Object.keys(all).sort()).toEqual([
      "alias",
      "complete",
      "elided",
      "entries",
      "id",
      "next_cursor",
      "note",
      "stage",
      "terminal",
    ]);
    expect(all).toMatchObject({
      alias: "TICK-1-r1",
      note: null,
      stage: null,
      complete: true,
      elided: 0,
      terminal: true,
    });
    expect(sequences(all)).toEqual(upTo(1, all.entries.length));
    expect(all.next_cursor).toBe(all.entries.length);
    for (const entry of all.entries) {
      const content = entry["encoding"] === "utf8" ? "text" : "data";
      expect(Object.keys(entry).sort()).toEqual(
        ["attempt", content, "encoding", "sequence", "source", "stage", "stream", "timestamp"].sort(),
      );
      expect(entry["timestamp"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,2}[1-9])?Z$/);
      expect(entry["source"]).toBe(entry["stage"] === "build" ? "agent" : "stage");
    }
    const first = all.entries.filter(({ stage: name, attempt }) => name === "build" && attempt === 1);
    const bytes = first.map((entry) =>
      Buffer.from(String(entry["text"] ?? entry["data"]), entry["encoding"] === "utf8" ? "utf8" : "base64"),
    );
    const text = (stream: string) => Buffer.concat(bytes.filter((_, n) => first[n]!["stream"] === stream));
    expect(text("stdout")).toEqual(
      Buffer.concat([Buffer.from("out\n"), Buffer.from([0xff, 0xfe]), Buffer.from("é😀\n")]),
    );
    expect(text("stderr")).toEqual(Buffer.from("err\n"));
    expect(first.some(({ encoding }) => encoding === "base64")).toBe(true);
  });

  test("9.1: the file holds the same objects, one per line", async () => {
    const { entries, ...rest } = await page({ run: "TICK-1" });
    const { id } = rest as unknown as { id: string };
    expect(stage.scene.records(id)).toEqual(entries);
  });

  test("9.1: lines that do not parse are skipped, a torn last one included; no file is an empty, complete page", async () => {
    write([record(1), record(2)], `nonsense\n{"sequence":3}\n${JSON.stringify(record(4))}\n{"sequence":5,"ti`);
    expect(await page({ run: made })).toMatchObject({ next_cursor: 4, complete: true });
    expect(sequences(await page({ run: made }))).toEqual([1, 2, 4]);
    await Bun.file(logOf(made)).delete();
    const nothing = { entries: [], complete: true, elided: 0, terminal: true };
    expect(await page({ run: made })).toMatchObject({ ...nothing, next_cursor: 0 });
    expect(await page({ run: made, after: 7, tail: 3 })).toMatchObject({ ...nothing, next_cursor: 7 });
  });
});

describe("7.12, 9.2 pages", () => {
  test("9.2 forward: 64 entries; complete is false exactly when a further record exists", async () => {
    write(upTo(1, 64).map((n) => record(n)));
    expect(await page({ run: made })).toMatchObject({ next_cursor: 64, complete: true });
    write(upTo(1, 65).map((n) => record(n)));
    const first = await page({ run: made });
    expect(sequences(first)).toEqual(upTo(1, 64));
    expect(first).toMatchObject({ next_cursor: 64, complete: false, elided: 0 });
    expect(sequences(await page({ run: made, after: 64 }))).toEqual([65]);
    expect(await page({ run: made, after: 65 })).toMatchObject({ entries: [], next_cursor: 65, complete: true });
    expect(await page({ run: made, after: 1000 })).toMatchObject({ entries: [], next_cursor: 1000, complete: true });
  });

  test("9.2 forward: a further record counts, matching or not", async () => {
    write([...upTo(1, 64).map((n) => record(n)), record(65, { stage: "merge", source: "stage" })]);
    expect(await page({ run: made, stage: "build" })).toMatchObject({ next_cursor: 64, complete: false });
    expect(await page({ run: made, stage: "build", after: 64 })).toMatchObject({
      entries: [],
      next_cursor: 65,
      complete: true,
    });
  });

  test("7.12 next_cursor: the last record examined, returned or filtered out", async () => {
    write([record(1), record(2, { stage: "merge", source: "stage" }), record(3, { stage: "merge", source: "stage" })]);
    expect(await page({ run: made, stage: "build" })).toMatchObject({ next_cursor: 3, complete: true });
    expect(sequences(await page({ run: made, stage: "build" }))).toEqual([1]);
  });

  test("9.2 tail: the last n, at most 1000, always complete, the rest counted; after applies first", async () => {
    write(upTo(1, 1500).map((n) => record(n, n % 2 === 0 ? {} : { stage: "merge", source: "stage" })));
    const tail = await page({ run: made, tail: 2 });
    expect(sequences(tail)).toEqual([1499, 1500]);
    expect(tail).toMatchObject({ complete: true, elided: 1498, next_cursor: 1500 });
    expect(sequences(await page({ run: made, tail: 2, stage: "build" }))).toEqual([1498, 1500]);
    expect(await page({ run: made, tail: 2, stage: "build" })).toMatchObject({ elided: 748 });
    expect(await page({ run: made, tail: 3, after: 1498 })).toMatchObject({ elided: 0 });
    expect(sequences(await page({ run: made, tail: 3, after: 1498 }))).toEqual([1499, 1500]);
    const most = await page({ run: made, tail: 4_294_967_295 });
    expect(sequences(most)).toEqual(upTo(501, 1500));
    expect(most.elided).toBe(500);
  });

  test("9.2, 2: a page stays under 1,048,576 bytes, escapes and a long id included, with at least one entry", async () => {
    const big = (n: number) => record(n, { text: "\u0001".repeat(8192) });
    write(upTo(1, 60).map(big));
    for (const id of ["a", "\u0001".repeat(50_000)]) {
      for (const args of [{}, { tail: 60 }] as Json[]) {
        const text = await converse(wire.path, request("logs", { run: made, ...args }, { id }));
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_048_576);
        const { data } = JSON.parse(text) as { data: Page };
        expect(data.entries.length).toBeGreaterThan(10);
        expect(data.entries.length).toBeLessThan(60);
        const tailed = "tail" in args;
        expect(data.complete).toBe(tailed);
        expect(data.elided).toBe(tailed ? 60 - data.entries.length : 0);
        expect(data.next_cursor).toBe(tailed ? 60 : data.entries.length);
      }
    }
    write([record(1, { text: "x".repeat(1_100_000) }), record(2)]);
    expect(sequences(await page({ run: made }))).toEqual([1]);
  });

  test("14.18: a cursor beyond 2^53 comes back to the last digit", async () => {
    const line = `{"v":1,"id":"a","verb":"logs","args":{"run":"${made}","after":18446744073709551615}}`;
    expect(await converse(wire.path, line)).toContain('"next_cursor":18446744073709551615,');
  });

  test("9.2, 7.12 follow: a running run is not terminal, and its output goes on", async () => {
    const id = await stage.post("followed", { trigger: { kind: "manual" } });
    stage.agent(id, `echo one; ${meet}; echo two; ${commit}`);
    await wire.ok("run", { trigger: { kind: "now" }, only: [], ticket: id });
    await stage.worker(id);
    const one = await until(async () => {
      const now = await page({ run: id });
      return now.entries.length === 1 ? now : null;
    }, "the first line");
    expect(one).toMatchObject({ complete: true, terminal: false, entries: [{ text: "one\n" }] });
    stage.go(id);
    await stage.settled(id);
    const two = await page({ run: id, after: one.next_cursor });
    expect(two).toMatchObject({ complete: true, terminal: true });
    expect(two.entries[0]).toMatchObject({ text: "two\n", sequence: one.next_cursor + 1 });
  });
});

describe("7.12, 9.2 selectors", () => {
  test("7.12: a stage, an attempt of it; an attempt it never had is an empty page", async () => {
    const all = await page({ run: "TICK-1" });
    const of = (name: string, attempt?: number) =>
      all.entries.filter((entry) => entry["stage"] === name && (attempt === undefined || entry["attempt"] === attempt));
    for (const [selector, entries] of [
      ["build", of("build")],
      ["build#1", of("build", 1)],
      ["build#2", of("build", 2)],
      ["test", of("test")],
      ["test#1", of("test", 1)],
      ["test#99", []],
      ["test#00001", of("test", 1)],
    ] as [string, Entry[]][]) {
      const got = await page({ run: "TICK-1", stage: selector });
      expect(got).toMatchObject({ stage: selector, complete: true });
      expect(got.entries).toEqual(entries);
    }
    expect(of("build", 2).length).toBeGreaterThan(0);
  });

  test("9.2: a record without a stage is the first agent stage's if an agent's, without an attempt it is the first", async () => {
    const bare = { stage: undefined, attempt: undefined };
    write([
      record(1, bare),
      record(2, { ...bare, source: "stage" }),
      record(3, { attempt: undefined }),
      record(4, { attempt: 2 }),
    ]);
    expect(sequences(await page({ run: made, stage: "build" }))).toEqual([1, 3, 4]);
    expect(sequences(await page({ run: made, stage: "build#1" }))).toEqual([1, 3]);
    expect(sequences(await page({ run: made, stage: "merge" }))).toEqual([]);
    const { entries } = await page({ run: made });
    expect(Object.keys(entries[0]!)).not.toContain("stage");
  });

  test("7.12 errors: the reference, the attempt, the stage, the tail, in that order", async () => {
    const refused = (args: Json) => wire.refused("logs", args);
    expectRefusal(await refused({ run: "no-such", stage: "x#y", tail: 0 }), "not_found", "an alias like");
    for (const selector of ["build#", "build#0", "build#-1", "build#x", "build#1.5", "nope#", "#1", "build#1#"]) {
      const error = await refused({ run: "TICK-1", stage: selector, tail: 0 });
      expectRefusal(error, "invalid_arguments", "<stage>#<attempt>");
    }
    for (const selector of ["nope", "nope#1", "Build", "", "build#1#1"]) {
      const error = await refused({ run: "TICK-1", stage: selector, tail: 0 });
      expectRefusal(error, "invalid_arguments", "TICK-1-r1", "tested", "`build`", "`test`");
    }
    expectRefusal(await refused({ run: "TICK-1", stage: "build", tail: 0 }), "invalid_arguments", "`tail`");
    expectRefusal(await refused({ run: "TICK-1", tail: 0 }), "invalid_arguments", "`tail`");
  });

  test("7.12: a run without a flow snapshot takes any stage's name literally", async () => {
    await stage.stop();
    const db = new Database(join(stage.scene.stateDir(), "sloop.db"));
    db.run("PRAGMA busy_timeout = 20000");
    db.run("update runs set flow_json = null where id = ?", [made]);
    db.close();
    await stage.scene.data(["daemon"]);
    write([record(1, { stage: "odd" }), record(2)]);
    appendFileSync(logOf(made), "\n\n");
    expect(sequences(await page({ run: made, stage: "odd" }))).toEqual([1]);
    expect(sequences(await page({ run: made, stage: "nowhere" }))).toEqual([]);
    // 6.5: such a run shows the stages that were recorded.
    expect(await stage.value(made)).toMatchObject({ stages: [{ stage: "build" }, { stage: "merge" }] });
  });
});

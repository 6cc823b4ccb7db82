// `logs`: pages of captured output, their cursors, filters and limits (protocol.md 9.2).

import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Flow } from "../../src/core/flow.ts";
import type { LogsPage } from "../../src/protocol/replies.ts";
import type { Params } from "../../src/protocol/verbs.ts";
import { renderSuccess } from "../../src/server/reply.ts";
import { outputLog } from "../../src/system/paths.ts";
import { ask, refusedWith } from "../support/ask.ts";
import { openContext, type TestDaemon } from "../support/context.ts";
import { addRun, addTicket, runId } from "../support/rows.ts";

const run = runId("c07d1f5e");
const flow: Flow = {
  name: "careful",
  stages: ["sync", "build", "test"].map((name) => ({
    name,
    action: name === "build" ? { kind: "agent" } : { kind: "exec", cmd: ["x"] },
    resultCheck: { kind: "none" },
    failAction: { kind: "fail" },
  })),
};

type Line = Record<string, unknown>;

function record(sequence: number, more: Line = {}): Line {
  const labels = { source: "agent", stage: "build", attempt: 1 };
  const rest = { stream: "stdout", encoding: "utf8", text: `line ${sequence}\n` };
  return { sequence, timestamp: "2027-03-01T01:03:50.4Z", ...labels, ...rest, ...more };
}

function write(daemon: TestDaemon, lines: readonly (Line | string)[]): void {
  const path = outputLog(daemon.paths, run);
  mkdirSync(dirname(path), { recursive: true });
  const text = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
  writeFileSync(path, lines.length === 0 ? "" : `${text}\n`);
}

async function opened(lines: readonly (Line | string)[] | null, snapshot: Flow | null = flow): Promise<TestDaemon> {
  const daemon = await openContext();
  addTicket(daemon, "T");
  addRun(daemon, run, { ticketId: "T", state: "failed", attempt: 2, flow: snapshot });
  addRun(daemon, runId("aa"), { ticketId: "T", state: "failed", attempt: 1 });
  if (lines !== null) write(daemon, lines);
  return daemon;
}

async function page(daemon: TestDaemon, args: Partial<Params<"logs">> = {}): Promise<LogsPage> {
  return await ask(daemon, "logs", { run: "T-r2", ...args });
}

const sequences = (of: LogsPage) => of.entries.map((entry) => entry.sequence);
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n);

describe("pages", () => {
  test("no file yet is an empty, complete page", async () => {
    using daemon = await opened(null);
    expect(await page(daemon)).toEqual({
      id: run,
      alias: "T-r2",
      note: null,
      stage: null,
      entries: [],
      next_cursor: 0,
      complete: true,
      elided: 0,
      terminal: true,
    });
    expect(await page(daemon, { after: 7, tail: 5 })).toMatchObject({ entries: [], next_cursor: 7, complete: true });
  });

  test("the note tells which run a ticket's name meant", async () => {
    using daemon = await opened([record(1)]);
    expect((await ask(daemon, "logs", { run: "T" })).note).toBe("showing T-r2; earlier attempts: r1");
  });

  test("forward: 64 at a time, until nothing is left", async () => {
    using daemon = await opened(range(1, 150).map((n) => record(n)));
    const seen: number[] = [];
    const pages: [number, boolean][] = [];
    for (let after = 0, complete = false; !complete; ) {
      const next = await page(daemon, { after });
      seen.push(...sequences(next));
      pages.push([next.entries.length, next.complete]);
      after = Number(next.next_cursor);
      complete = next.complete;
    }
    expect(seen).toEqual(range(1, 150));
    expect(pages).toEqual([
      [64, false],
      [64, false],
      [22, true],
    ]);
  });

  test("a page that fills up exactly at the end is complete", async () => {
    using daemon = await opened(range(1, 64).map((n) => record(n)));
    expect(await page(daemon)).toMatchObject({ complete: true, next_cursor: 64 });
    write(daemon, [...range(1, 64).map((n) => record(n)), record(65, { stage: "test" })]);
    expect(await page(daemon, { stage: "build" })).toMatchObject({ complete: false, next_cursor: 64 });
  });

  test("tail: the newest, what was dropped is counted, and after still applies", async () => {
    using daemon = await opened(range(1, 100).map((n) => record(n)));
    const tail = await page(daemon, { tail: 3 });
    expect(sequences(tail)).toEqual([98, 99, 100]);
    expect(tail).toMatchObject({ next_cursor: 100, complete: true, elided: 97 });
    expect(await page(daemon, { tail: 3, after: 90 })).toMatchObject({ elided: 7 });
    expect(sequences(await page(daemon, { tail: 50, after: 98 }))).toEqual([99, 100]);
    expect(sequences(await page(daemon, { tail: 4_294_967_295 }))).toEqual(range(1, 100));
  });

  test("a tail above 1000 is 1000", async () => {
    using daemon = await opened(range(1, 1500).map((n) => record(n)));
    expect(await page(daemon, { tail: 1500 })).toMatchObject({ entries: { length: 1000 }, elided: 500 });
  });

  test("a cursor beyond 2^53 comes back as it went", async () => {
    using daemon = await opened([record(1)]);
    const after = 18_446_744_073_709_551_615n;
    const reply = await page(daemon, { after });
    expect(reply).toMatchObject({ entries: [], next_cursor: after, complete: true });
    expect(renderSuccess("x", reply)).toContain(`"next_cursor":${after}`);
  });

  test("lines that are no records are skipped, a torn last one too", async () => {
    using daemon = await opened([record(1), "garbage", "", '{"sequence":2}', record(3), '{"sequence":4,"timest']);
    expect(sequences(await page(daemon))).toEqual([1, 3]);
  });

  test("bytes that are no text come as they are stored", async () => {
    const { text: _, ...rest } = record(1, { encoding: "base64", data: "/w==" });
    using daemon = await opened([rest]);
    expect((await page(daemon)).entries).toEqual([rest as unknown as LogsPage["entries"][number]]);
  });

  test("a page stays under a mebibyte, whichever way it is read, and holds at least one", async () => {
    const wide = "\u0001".repeat(8192);
    using daemon = await opened(range(1, 64).map((n) => record(n, { text: wide })));
    const forward = await page(daemon);
    expect(forward.complete).toBe(false);
    expect(forward.entries.length).toBeGreaterThan(15);
    expect(renderSuccess("i".repeat(1000), forward).length).toBeLessThan(1_048_576);
    const backward = await page(daemon, { tail: 64 });
    expect(backward).toMatchObject({ complete: true, elided: 64 - backward.entries.length });
    expect(sequences(backward).at(-1)).toBe(64);
    expect(renderSuccess("i".repeat(1000), backward).length).toBeLessThan(1_048_576);
    write(daemon, [record(1, { text: "x".repeat(2_000_000) }), record(2)]);
    expect(sequences(await page(daemon))).toEqual([1]);
  });
});

describe("the stage filter", () => {
  const mixed = [
    record(1, { stage: "sync", source: "stage" }),
    record(2),
    record(3, { stage: "test", source: "stage", attempt: 1 }),
    record(4, { attempt: 2 }),
    { ...record(5), stage: undefined, attempt: undefined },
    { ...record(6, { source: "stage" }), stage: undefined },
    record(7, { stage: "test", source: "stage", attempt: 2 }),
  ];

  test.each([
    ["build", [2, 4, 5], 7],
    ["build#1", [2, 5], 7],
    ["build#2", [4], 7],
    ["build#9", [], 7],
    ["test", [3, 7], 7],
    ["sync", [1], 7],
  ])("%s", async (stage, wanted, cursor) => {
    using daemon = await opened(mixed);
    const got = await page(daemon, { stage });
    expect(sequences(got)).toEqual(wanted);
    expect(got).toMatchObject({ next_cursor: cursor, complete: true, stage, elided: 0 });
  });

  test("with a tail, the count is of what matched", async () => {
    using daemon = await opened(mixed);
    expect(await page(daemon, { stage: "build", tail: 1 })).toMatchObject({
      entries: [{ sequence: 5 }],
      elided: 2,
      next_cursor: 7,
    } as object);
  });

  test("without a snapshot any name is taken literally, and unlabelled records belong to none", async () => {
    using daemon = await opened(mixed, null);
    expect(sequences(await page(daemon, { stage: "build" }))).toEqual([2, 4]);
    expect(sequences(await page(daemon, { stage: "whatever" }))).toEqual([]);
  });
});

describe("refusals", () => {
  test.each([
    [{ stage: "build#" }, ["<stage>#<attempt>"]],
    [{ stage: "build#0" }, ["<stage>#<attempt>"]],
    [{ stage: "build#x" }, ["<stage>#<attempt>"]],
    [{ stage: "#1" }, ["<stage>#<attempt>"]],
    [{ stage: "build#-1", tail: 0 }, ["<stage>#<attempt>"]],
    [{ stage: "lint" }, ["`T-r2`", "`careful`", "`sync`, `build`, `test`"]],
    [{ stage: "", tail: 0 }, ["`careful`"]],
    [{ tail: 0 }, ["`tail`"]],
    [{ stage: "build", tail: 0 }, ["`tail`"]],
  ])("%j", async (args, literals) => {
    using daemon = await opened([record(1)]);
    await expect(page(daemon, args)).rejects.toMatchObject(refusedWith("invalid_arguments", ...literals) as object);
  });

  test("the reference is looked at first", async () => {
    using daemon = await opened(null);
    await expect(page(daemon, { run: "nope", tail: 0, stage: "#" })).rejects.toMatchObject({ code: "not_found" });
  });
});

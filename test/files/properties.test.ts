// files.md 16, invariant 7, and the promises of a reindex: whatever the files say, all of it happens or nothing does.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { SloopError } from "../../src/core/errors.ts";
import { builtInFlow } from "../../src/core/flow.ts";
import { parseTicket } from "../../src/parse/ticket.ts";
import { ask } from "../support/ask.ts";
import { openContext, type TestDaemon } from "../support/context.ts";
import { folder } from "./posting.ts";

setDefaultTimeout(120_000);

let daemon: TestDaemon;
let tickets: string;
beforeAll(async () => {
  const base = await openContext({ ticketDir: folder });
  daemon = { ...base, [Symbol.dispose]: base[Symbol.dispose], flows: new Map([[builtInFlow.name, builtInFlow]]) };
  tickets = join(daemon.root, folder);
  mkdirSync(join(daemon.root, daemon.config.projectDir), { recursive: true });
  writeFileSync(join(daemon.root, daemon.config.projectDir, "default.md"), "---\nid: default\n---\n");
  writeFileSync(join(daemon.root, daemon.config.projectDir, "web.md"), "---\nid: web\n---\n");
  mkdirSync(tickets);
  await ask(daemon, "reindex", {});
});
afterAll(() => daemon[Symbol.dispose]());

const ids = ["T1", "T2", "TICK-3", "TICK-9"];
const id = fc.constantFrom(...ids);
const field = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom("name: A", "name: B", "blocked_by: []", "blocked_by: []", "# note") },
  { weight: 2, arbitrary: id.map((value) => `id: ${value}`) },
  { weight: 2, arbitrary: fc.array(id, { maxLength: 2 }).map((list) => `blocked_by: [${list.join(", ")}]`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "project: web",
      "project: nope",
      "flow: nope",
      "target: nope",
      "model: m",
      "id:",
      "name: ~",
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom("worktree: w", "worktree: a b", "title: [", "- x", "priority: high") },
);
const good = fc.array(field, { maxLength: 3 }).map((lines) => {
  const keys = new Set(["name", "blocked_by"]);
  const kept = lines.filter((line) => {
    const key = line.split(":")[0] ?? "";
    return key.startsWith("#") || (!keys.has(key) && keys.add(key));
  });
  return `---\n${["name: A ticket", "blocked_by: []", ...kept].join("\n")}\n---\nDo it.\n`;
});
const wild = fc.array(field, { maxLength: 6 }).map((lines) => `---\n${lines.join("\n")}\n---\nDo it.\n`);
const text = fc.oneof({ weight: 4, arbitrary: good }, { weight: 3, arbitrary: wild }, fc.string());
const name = fc.constantFrom("a.md", "b.md", "c-d.md", "sub/a.md", "Bad Stem.md");
const files = fc.dictionary(name, text, { maxKeys: 4 });

/** Everything of the index but when it was written, and every file. */
function snapshot(): string {
  const read = (sql: string) => daemon.store.sqlite.query(sql).values();
  const names = readdirSync(tickets, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  return JSON.stringify([
    read("select * from tickets order by id"),
    read("select * from ticket_blockers order by ticket_id, position"),
    read("select * from triggers order by id"),
    read("select * from id_counters order by kind"),
    names.map((path) => [path, readFileSync(path, "utf8")]),
  ]);
}

function clear(): void {
  for (const entry of readdirSync(tickets)) rmSync(join(tickets, entry), { recursive: true });
}

function put(all: Record<string, string>): void {
  for (const [path, content] of Object.entries(all)) {
    mkdirSync(join(tickets, path, ".."), { recursive: true });
    writeFileSync(join(tickets, path), content);
  }
}

async function outcome<T>(asked: Promise<T>): Promise<T | SloopError> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof SloopError) return error;
    throw error;
  }
}

const trigger = fc.constantFrom(
  { kind: "auto" as const },
  { kind: "manual" as const },
  { kind: "hold" as const },
  { kind: "at" as const, time: "03:00" },
);

test("a post registers, stamps and queues, or leaves file, index and counters as they were", async () => {
  let taken = 0;
  const property = fc.asyncProperty(files, trigger, async (all, wanted) => {
    clear();
    put(all);
    for (const path of Object.keys(all)) {
      const before = snapshot();
      const result = await outcome(ask(daemon, "post", { file: `${folder}/${path}`, trigger: wanted }));
      if (result instanceof SloopError) {
        expect(snapshot()).toBe(before);
        continue;
      }
      taken += 1;
      const stamped = parseTicket(readFileSync(join(tickets, path), "utf8"), path);
      const { ticket } = result;
      expect([stamped.id, stamped.project, stamped.worktree, stamped.flow]).toEqual([
        ticket.id,
        ticket.project,
        ticket.worktree,
        ticket.flow,
      ]);
      const queues = wanted.kind === "auto" || wanted.kind === "at";
      expect(result.trigger?.kind ?? null).toBe(queues ? wanted.kind : null);
      expect(
        daemon.store.sqlite.query("select id from tickets where file_path = ?").values(`${folder}/${path}`),
      ).toEqual([[ticket.id]]);
    }
  });
  await fc.assert(property, { numRuns: 150 });
  // Files are made by chance; that hardly any was right would make the test say nothing.
  expect(taken).toBeGreaterThan(10);
});

test("a reindex twice is a reindex once, and one that fails touches nothing", async () => {
  let done = 0;
  const property = fc.asyncProperty(files, async (all) => {
    clear();
    put(all);
    const before = snapshot();
    const first = await outcome(ask(daemon, "reindex", {}));
    if (first instanceof SloopError) {
      expect(first.code).toBe("internal");
      expect(snapshot()).toBe(before);
      return;
    }
    done += 1;
    expect(first.tickets_indexed).toBe(Object.keys(all).length);
    const after = snapshot();
    const second = await ask(daemon, "reindex", {});
    expect(second).toEqual({ ...first, tickets_state_changed: 0, state_changes: [], rows_dropped: 0 });
    expect(snapshot()).toBe(after);
    const held = daemon.store.sqlite.query("select file_path from tickets where held_reason is not null").values();
    const heldFiles = new Set(held.flat().map(String));
    for (const [path, content] of Object.entries(all)) {
      const now = readFileSync(join(tickets, path), "utf8");
      if (heldFiles.has(`${folder}/${path}`)) expect(now).toBe(content);
      else expect(parseTicket(now, path).flow).toBe("default");
    }
    expect(daemon.store.sqlite.query("pragma foreign_key_check").values()).toEqual([]);
  });
  await fc.assert(property, { numRuns: 120 });
  expect(done).toBeGreaterThan(10);
});

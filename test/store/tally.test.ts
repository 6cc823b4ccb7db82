// What is remembered of tickets between requests is what reading all of them anew would give, whatever happened since: own
// writes, writes that were rolled back, writes of other programs, cascades, and more of them than are looked at one by one.

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { newestFirst } from "../../src/core/recency.ts";
import { listMatching } from "../../src/store/names.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { listRecent } from "../../src/store/report.ts";
import { countTickets } from "../../src/store/tally.ts";
import { openMoment, touchedSince } from "../../src/store/touched.ts";

setDefaultTimeout(60_000);

let directory: string;
let path: string;
let store: Store;
let foreign: Database;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "sloop-tally-"));
  path = join(directory, "sloop.db");
  store = openStore(path, 1);
  foreign = new Database(path, { strict: true });
  foreign.run("PRAGMA busy_timeout=10000");
  foreign.run("PRAGMA foreign_keys=ON");
  foreign.run(
    "insert into projects (id, file_path, source_ref, title, created_at_ms, updated_at_ms) values ('p', 'p', 'p', 'P', 1, 1)",
  );
});
afterEach(() => {
  foreign.close();
  store.close();
  rmSync(directory, { recursive: true, force: true });
});

const insert = `insert into tickets (id, project_id, file_path, source_ref, state, name, created_at_ms, updated_at_ms)
  values (?1, 'p', ?1, ?1, ?2, ?1, 1, 1) on conflict do nothing`;

/** The counts by their definition. */
function counted(): Record<string, number> {
  const blocked = `exists (select 1 from ticket_blockers b join tickets k on k.id = b.blocker_id
    where b.ticket_id = t.id and k.state <> 'merged')`;
  const rows = foreign
    .query<{ state: string; n: number }, []>(
      `select case when state = 'ready' and ${blocked} then 'blocked' else state end state, count(*) n from tickets t group by 1`,
    )
    .all();
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
}

/** Other programs' changes are looked for once in a turn of the event loop. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

async function check(): Promise<void> {
  await nextTurn();
  const counts = Object.entries(countTickets(store)).filter(([, n]) => n > 0);
  expect(Object.fromEntries(counts)).toEqual(counted());
  const names = foreign.query("select id from tickets where name like '%a%' or id like '%a%'").all() as {
    id: string;
  }[];
  const found = listMatching(store, (text) => text.includes("a")).map(({ id }) => id);
  expect(found.sort()).toEqual(names.map(({ id }) => id).sort());
}

const ids = ["T1", "T2", "T3", "a4", "a5", "b6"];
const id = fc.constantFrom(...ids);
const state = fc.constantFrom("ready", "ready", "held", "merged", "failed");
const statement = fc.oneof(
  fc.tuple(id, state).map((values) => ({ sql: insert, values })),
  fc.tuple(state, id).map((values) => ({ sql: "update tickets set state = ?1 where id = ?2", values })),
  fc
    .tuple(fc.constantFrom("a", "b", "ab"), id)
    .map((values) => ({ sql: "update tickets set name = ?1 where id = ?2", values })),
  fc.tuple(id).map((values) => ({
    sql: "delete from tickets where id = ?1 and not exists (select 1 from ticket_blockers where blocker_id = ?1)",
    values,
  })),
  fc.tuple(id, id).map((values) => ({
    sql: `insert into ticket_blockers select ?1, ?2, 0 where ?1 in (select id from tickets)
      and ?2 in (select id from tickets) on conflict do nothing`,
    values,
  })),
  fc
    .tuple(id, id)
    .map((values) => ({ sql: "delete from ticket_blockers where ticket_id = ?1 and blocker_id = ?2", values })),
);
const step = fc.record({
  how: fc.constantFrom("own", "own", "own", "rolled back", "foreign"),
  statements: fc.array(statement, { minLength: 1, maxLength: 4 }),
  look: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

function carryOut({ how, statements }: Step): void {
  const run = (on: Database) => {
    for (const { sql, values } of statements) on.query(sql).run(...values);
  };
  if (how === "foreign") {
    foreign.transaction(() => run(foreign)).immediate();
    return;
  }
  const write = () =>
    store.write(() => {
      run(store.sqlite);
      // Inside of it, what is asked for is right as well, and is not remembered.
      countTickets(store);
      listMatching(store, () => true);
      if (how === "rolled back") throw new Error("rolled back");
    });
  if (how === "own") write();
  else expect(write).toThrow("rolled back");
}

test("whatever happens, counts and names are those of the rows", async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
    for (const one of steps) {
      carryOut(one);
      if (one.look) await check();
    }
    await check();
  });
  await fc.assert(property, { numRuns: 250 });
});

test("more changes at once than are looked at one by one", async () => {
  store.write(() => {
    for (let n = 0; n < 1200; n += 1) store.sqlite.query(insert).run(`a${n}`, "ready");
  });
  await check();
  store.write(() => {
    const edge = store.sqlite.query("insert into ticket_blockers values (?, ?, 0)");
    for (let n = 1; n < 1200; n += 1) edge.run(`a${n}`, "a0");
  });
  await check();
  expect(countTickets(store)).toMatchObject({ ready: 1, blocked: 1199 });
  // One change that frees more than a thousand.
  store.sqlite.run("update tickets set state = 'merged' where id = 'a0'");
  await check();
  expect(countTickets(store)).toMatchObject({ ready: 1199, blocked: 0 });
});

describe("what is noted", () => {
  test("ids once each, nothing twice, nothing of what was rolled back, nothing for a column that nobody counts", () => {
    const moment = openMoment(store)!;
    store.write(() => {
      store.sqlite.query(insert).run("T1", "ready");
      store.sqlite.run("update tickets set state = 'held'");
    });
    expect(touchedSince(store, moment)).toEqual(["T1"]);
    expect(touchedSince(store, moment)).toEqual([]);
    expect(() =>
      store.write(() => {
        store.sqlite.run("update tickets set state = 'ready'");
        throw new Error("no");
      }),
    ).toThrow("no");
    store.sqlite.run("update tickets set updated_at_ms = 7, body = 'x'");
    expect(touchedSince(store, moment)).toEqual([]);
    store.sqlite.run("update tickets set name = 'N'");
    expect(touchedSince(store, moment)).toEqual(["T1"]);
  });

  test("nothing can be told across another program's write, or inside a transaction", async () => {
    const moment = openMoment(store)!;
    store.write(() => {
      expect(openMoment(store)).toBeNull();
      expect(touchedSince(store, moment)).toBeNull();
    });
    foreign.query(insert).run("T1", "ready");
    await nextTurn();
    expect(touchedSince(store, moment)).toBeNull();
  });
});

describe("newest first, from the index", () => {
  const number = fc.oneof(
    fc.nat(12).map(String),
    fc.nat(12).map((n) => `00${n}`),
    fc.bigInt({ min: 2n ** 52n, max: 2n ** 70n }).map(String),
    fc.constantFrom("", "x", "1x", "-7", "1-2"),
  );
  const ticketId = fc.oneof(
    fc.tuple(fc.constantFrom("T-", "T1-", "a-b-", "T", ""), number).map((parts) => parts.join("")),
    fc.stringMatching(/^[A-Za-z0-9-]{1,6}$/),
  );
  const rows = fc.uniqueArray(fc.record({ id: ticketId, createdAtMs: fc.nat(2) }), { selector: (row) => row.id });

  test("is the order of the page, with and without a limit and a filter", () => {
    const property = fc.property(rows, fc.nat(8), (all, limit) => {
      store.sqlite.run("delete from tickets");
      for (const row of all) {
        store.sqlite.query(insert).run(row.id, "ready");
        store.sqlite.query("update tickets set created_at_ms = ? where id = ?").run(row.createdAtMs, row.id);
      }
      const wanted = newestFirst(all, null).map((row) => row.id);
      expect(listRecent(store.db, null)).toEqual(wanted);
      expect(listRecent(store.db, limit + 1)).toEqual(wanted.slice(0, limit + 1));
      expect(listRecent(store.db, limit + 1, { states: ["ready"] })).toEqual(wanted.slice(0, limit + 1));
    });
    fc.assert(property, { numRuns: 300 });
  });

  test("reads no more of the index than it lists", () => {
    const explained: string[] = [];
    const { prepare } = store.sqlite;
    const sqlite = store.sqlite;
    sqlite.prepare = ((text: string) => {
      explained.push(
        ...(sqlite.query(`explain query plan ${text}`).all(1) as { detail: string }[]).map((row) => row.detail),
      );
      return prepare.call(sqlite, text);
    }) as typeof prepare;
    listRecent(store.db, 20);
    sqlite.prepare = prepare;
    expect(explained).toEqual(["SCAN tickets USING COVERING INDEX tickets_by_recency"]);
  });
});

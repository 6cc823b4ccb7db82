// The figures that must not grow with what is registered or remembered.

import type { BenchContext } from "./bench.ts";
import { interleave } from "./measure.ts";
import type { Place } from "./place.ts";
import { residentMib } from "./process-facts.ts";
import { atMost, makeRow, type Row, type Target } from "./row.ts";
import { ask, type Json } from "./wire.ts";

type Figure = { what: string; target: Target | null; verb: string; args: Json; check(data: Json): boolean };

const rowsOf = (data: Json) => (data["tickets"] as unknown[]).length;

const asked: Figure[] = [
  {
    what: "`status` right after a change",
    target: atMost(3),
    verb: "status",
    args: {},
    check: (data) => "runs" in data,
  },
  {
    what: "`list` of 20",
    target: atMost(5),
    verb: "list",
    args: { limit: 20 },
    check: (data) => rowsOf(data) === 20,
  },
  {
    what: "`show` of a text that 10 names hold",
    target: atMost(10),
    verb: "show",
    args: { ref: "ask 0045" },
    check: (data) => rowsOf(data) === 10,
  },
  {
    what: "`show` of a pattern",
    target: atMost(10),
    verb: "show",
    args: { ref: "^task 0045[0-4]$" },
    check: (data) => rowsOf(data) === 5,
  },
  { what: "the dashboard (`sloop status`)", target: null, verb: "show", args: {}, check: (data) => "recent" in data },
  {
    what: "`show` of one ticket",
    target: null,
    verb: "show",
    args: { ref: "TICK-3" },
    check: (data) => data["kind"] === "ticket",
  },
  {
    what: "`events`, the newest 64",
    target: null,
    verb: "events",
    args: { tail: 64 },
    check: (data) => Array.isArray(data["events"]),
  },
];

/** A change before every question: a daemon that only remembers its last answer would otherwise look fast. */
function asker({ socket }: Place, { verb, args, check }: Figure, newest: string): () => Promise<number> {
  let held = false;
  return async () => {
    await ask(socket, held ? "ready" : "hold", { ticket: newest });
    held = !held;
    const start = performance.now();
    const data = await ask(socket, verb, args);
    const ms = performance.now() - start;
    if (!check(data)) throw new Error(`${verb} ${JSON.stringify(args)} answered something else`);
    return ms;
  };
}

/** One row per figure, and the daemon's memory afterwards. `size` says what is in the database. */
export async function figures(bench: string, context: BenchContext, place: Place, size: string): Promise<Row[]> {
  const { tickets } = (await ask(place.socket, "list", { limit: 1 })) as { tickets: { id: string }[] };
  const newest = tickets[0]?.id ?? "";
  const contestants = Object.fromEntries(asked.map((figure) => [figure.what, asker(place, figure, newest)]));
  const times = await interleave(context.pick(30, 3), contestants);
  const rows = asked.flatMap(({ what, target }) => {
    const measured = times[what];
    return measured === undefined ? [] : [makeRow(bench, { what: `${size}: ${what}`, unit: "ms", measured, target })];
  });
  const weight = residentMib(place.pid);
  const measured = { median: weight, min: weight, max: weight, samples: 1 };
  return [...rows, makeRow(bench, { what: `${size}: daemon afterwards, resident`, unit: "MiB", measured })];
}

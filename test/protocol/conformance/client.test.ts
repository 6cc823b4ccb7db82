// protocol.md 12: what the CLI writes to the sockets, seen by a made-up daemon that only listens.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import type { Ran } from "../../support/bin.ts";
import { newScene, type Scene } from "../../support/scene.ts";
import type { Json } from "./wire.ts";

setDefaultTimeout(60_000);

type Sent = { v: number; id: string; verb: string; args: Json; token?: string | null };

let scene: Scene;
let operator = "";
const servers: Server[] = [];
let sent: Sent[] = [];
let lines: string[] = [];
/** What the made-up daemon answers, by verb, one after another; the last one again and again. */
let answers: Record<string, unknown[]> = {};

const refusal = { code: "conflict", message: "not now", details: {} };

function answer(request: Sent): string {
  const list = answers[request.verb] ?? [null];
  const data = list.length > 1 ? list.shift() : list[0];
  const reply = data === null ? { ok: false, error: refusal } : { ok: true, data };
  return `${JSON.stringify({ id: request.id, ...reply })}\n`;
}

function listen(path: string): Promise<void> {
  const server = createServer((socket) => {
    let rest = "";
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk) => {
      const parts = (rest + chunk).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) {
        lines.push(line);
        const request = JSON.parse(line) as Sent;
        sent.push(request);
        socket.write(answer(request));
      }
    });
  });
  servers.push(server);
  return new Promise((resolve) => server.listen(path, resolve));
}

beforeAll(async () => {
  scene = await newScene();
  operator = (await scene.data(["daemon"]))["socket"] as string;
  await scene.data(["stop"]);
  mkdirSync(dirname(operator), { recursive: true });
  rmSync(operator, { force: true });
  await listen(operator);
});

afterAll(async () => {
  for (const server of servers) server.close();
  await scene[Symbol.asyncDispose]();
});

/** Runs a command against the made-up daemon; what it sent stands in `sent`. */
async function cli(args: string[], replies: Record<string, unknown[]> = {}, env: Json = {}): Promise<Ran> {
  sent = [];
  lines = [];
  answers = replies;
  return await scene.sloop(args, { env: env as Record<string, string> });
}

const asked = () => sent.map(({ verb, args }) => ({ [verb]: args }));

const table: [string, string[], Json][] = [
  ["status", ["status"], { show: {} }],
  ["show", ["show"], { show: {} }],
  ["show x -n 2", ["show", "x", "-n", "2"], { show: { ref: "x", limit: 2 } }],
  ["show -5", ["show", "-5"], { show: { limit: 5 } }],
  ["logs r", ["logs", "r"], { logs: { run: "r", tail: 64 } }],
  [
    "logs r --tail --stage",
    ["logs", "r", "--tail", "9", "--stage", "s#2"],
    { logs: { run: "r", stage: "s#2", tail: 9 } },
  ],
  ["run", ["run"], { run: { trigger: { kind: "now" }, only: [] } }],
  ["run t", ["run", "t"], { run: { trigger: { kind: "now" }, only: [], ticket: "t" } }],
  ["run --at", ["run", "--at", "03:00"], { run: { trigger: { kind: "at", local_time: "03:00" }, only: [] } }],
  ["run --every", ["run", "--every", "30m"], { run: { trigger: { kind: "every", interval_ms: 1_800_000 }, only: [] } }],
  ["hold", ["hold", "t"], { hold: { ticket: "t" } }],
  ["ready", ["ready", "t"], { ready: { ticket: "t" } }],
  ["retry", ["retry", "t"], { retry: { ticket: "t" } }],
  ["cancel", ["cancel", "r"], { cancel: { run: "r" } }],
  ["pause", ["pause"], { pause: {} }],
  ["resume", ["resume"], { resume: {} }],
  ["reindex", ["reindex"], { reindex: {} }],
  ["daemon restart", ["daemon", "restart"], { restart: {} }],
  ["stop", ["stop"], { stop: { force: false } }],
  ["stop --force", ["stop", "--force"], { stop: { force: true } }],
];

describe("12 requests", () => {
  for (const [name, args, expected] of table) {
    test(`12: \`sloop ${name}\``, async () => {
      await cli(args);
      expect(asked()[0]).toEqual(expected as Record<string, Json>);
      const { v, id, token } = sent[0]!;
      expect({ v, token }).toEqual({ v: 1, token: null });
      expect(id).toMatch(/^req-[0-9]+-1$/);
      expect(lines[0]).toContain('"token":null');
    });
  }

  test("12: `sloop post`, its triggers; unset arguments are left out", async () => {
    const file = scene.ticket("posted");
    await cli(["post", file]);
    expect(sent[0]).toMatchObject({ verb: "post", args: { trigger: { kind: "auto" } } });
    expect(Object.keys(sent[0]!.args).sort()).toEqual(["file", "trigger"]);
    await cli(["post", file, "--at", "03:00"]);
    expect(sent[0]!.args).toMatchObject({ trigger: { kind: "at", time: "03:00" } });
    await cli(["post", file, "--hold"]);
    expect(sent[0]!.args).toMatchObject({ trigger: { kind: "hold" } });
    await cli(["post", file, "--manual"]);
    expect(sent[0]!.args).toMatchObject({ trigger: { kind: "manual" } });
  });

  test("12: ids count within the process", async () => {
    const page = { id: "i", alias: "a-r1", note: null, stage: null, entries: [], elided: 0 };
    const more = { ...page, next_cursor: 5, complete: false, terminal: false };
    const last = { ...page, next_cursor: 9, complete: true, terminal: true };
    const ran = await cli(["--json", "logs", "r", "--follow"], { logs: [more, last] });
    expect(ran.code).toBe(0);
    expect(asked()).toEqual([{ logs: { run: "r" } }, { logs: { run: "r", after: 5 } }]);
    const pid = sent[0]!.id.split("-")[1];
    expect(sent.map(({ id }) => id)).toEqual([`req-${pid}-1`, `req-${pid}-2`]);
  });

  test("12: show --follow and watch: show, the tail, then after the cursor; settled by what show says", async () => {
    const run = {
      kind: "run",
      ref: "r",
      value: { id: "i", alias: "T-r1", state: "merged", terminal: true, stages: [] },
    };
    const events = [{ events: [], next_cursor: 7, latest: 7 }];
    const ran = await cli(["--json", "show", "r", "--follow"], { show: [run], events });
    expect(ran.code).toBe(0);
    expect(asked().slice(0, 2)).toEqual([{ show: { ref: "r" } }, { events: { tail: 20, scope: "r" } }]);
    for (const request of asked().slice(2)) {
      expect([JSON.stringify({ events: { after: 7, scope: "r" } }), JSON.stringify({ show: { ref: "r" } })]).toContain(
        JSON.stringify(request),
      );
    }
    const failed = { ...run, value: { ...run.value, state: "failed" } };
    expect((await cli(["--json", "watch", "r", "--tail", "3"], { show: [failed], events })).code).toBe(1);
    expect(asked()[1]).toEqual({ events: { tail: 3, scope: "r" } });
  });

  test("12: wait: `wait` once, then as watch with tail 0", async () => {
    const wait = {
      id: "i",
      alias: "T-r1",
      note: null,
      state: "merged",
      terminal: true,
      exit_code: 0,
      reason: null,
      classification: null,
    };
    const run = {
      kind: "run",
      ref: "r",
      value: { id: "i", alias: "T-r1", state: "merged", terminal: true, stages: [] },
    };
    const events = [{ events: [], next_cursor: 7, latest: 7 }];
    const ran = await cli(["wait", "r", "--timeout", "20"], { wait: [wait], show: [run], events });
    expect([ran.code, ran.stdout]).toEqual([0, ""]);
    expect(asked()[0]).toEqual({ wait: { run: "r" } });
    expect(sent.filter(({ verb }) => verb === "wait")).toHaveLength(1);
  });

  test("12: outcomes: success on standard output and 0, failure on standard error and 1; --json is one line", async () => {
    const good = await cli(["--json", "pause"], { pause: [{ paused: true }] });
    expect(good).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(good.stdout)).toEqual({ id: sent[0]!.id, ok: true, data: { paused: true } });
    expect(good.stdout.trimEnd()).not.toContain("\n");
    const bad = await cli(["--json", "pause"]);
    expect(bad).toMatchObject({ code: 1, stdout: "" });
    expect(JSON.parse(bad.stderr)).toMatchObject({ ok: false, error: refusal });
  });

  test("12: a usage error sends nothing: invalid_arguments, id null, exit 2", async () => {
    const ran = await cli(["--json", "logs"]);
    expect([ran.code, ran.stdout, sent]).toEqual([2, "", []]);
    expect(JSON.parse(ran.stderr)).toMatchObject({ id: null, ok: false, error: { code: "invalid_arguments" } });
  });
});

describe("12 workers", () => {
  test("12: worker envelopes: `req-<pid>`, the token of the environment, the reply line as received", async () => {
    const socket = join(scene.dir, "w.sock");
    await listen(socket);
    const env = { SLOOP_SOCKET: socket, SLOOP_TOKEN: "tok" };
    const note = { note: { id: "N1", run: "r", text: "hello" } };
    const ran = await cli(["note", "hello"], { note: [note] }, env);
    expect(sent).toMatchObject([{ v: 1, verb: "note", args: { text: "hello" }, token: "tok" }]);
    expect(sent[0]!.id).toMatch(/^req-[0-9]+$/);
    expect(ran).toMatchObject({ code: 0, stdout: answer(sent[0]!), stderr: "" });
    await cli(["brief"], {}, env);
    expect(asked()).toEqual([{ brief: {} }]);
    await cli(["verdict", "pass", "--reason", "fine", "--confidence", "high"], {}, env);
    expect(asked()).toEqual([{ verdict: { verdict: "pass", reason: "fine", confidence: "high" } }]);
    await cli(["verdict", "fail"], {}, env);
    expect(asked()).toEqual([{ verdict: { verdict: "fail" } }]);
    await cli(["show", "T-1"], {}, env);
    expect(sent).toMatchObject([{ verb: "show", args: { ref: "T-1" }, token: "tok" }]);
  });

  test("12: without its environment a worker verb is unauthorized here, with one of the two no daemon is started", async () => {
    for (const args of [["brief"], ["note", "x"], ["verdict", "pass"]]) {
      for (const env of [{}, { SLOOP_SOCKET: operator }, { SLOOP_TOKEN: "t" }]) {
        const ran = await cli(["--json", ...args], {}, env);
        expect([ran.code, ran.stdout, sent]).toEqual([1, "", []]);
        expect(JSON.parse(ran.stderr)).toMatchObject({ error: { code: "unauthorized" } });
      }
    }
  });

  test("12: inside a run `show --follow` is refused and no operator verb starts a daemon", async () => {
    const env = { SLOOP_SOCKET: join(scene.dir, "nobody.sock"), SLOOP_TOKEN: "t" };
    expect((await cli(["show", "x", "--follow"], {}, env)).code).not.toBe(0);
    expect(sent).toEqual([]);
    await using other = await newScene();
    const ran = await other.sloop(["--json", "pause"], { env });
    expect([ran.code, ran.stdout]).toEqual([1, ""]);
    expect(existsSync(join(other.dir, "state/sloop"))).toBe(false);
  });
});

test("13: a client ignores members and kinds it does not know", async () => {
  const event = {
    sequence: 7,
    occurred_at_ms: 1,
    kind: "brand_new",
    run: null,
    ticket: null,
    data: { a: 1 },
    later: [],
  };
  const page = { events: [event], next_cursor: 7, latest: 7, more: true };
  const plain = await cli(["events"], { events: [page] });
  expect([plain.code, plain.stderr]).toEqual([0, ""]);
  expect(plain.stdout).toContain("brand_new");
  const json = await cli(["--json", "events"], { events: [page] });
  expect(JSON.parse(json.stdout)).toMatchObject({ data: page });
});

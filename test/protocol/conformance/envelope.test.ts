// protocol.md 3: the envelope, and the ladder of checks on both sockets, over the compiled binary's sockets.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { commit, meet, openStage, type Stage } from "./stage.ts";
import { expectRefusal, type Json, replies, reply, request, type Wire } from "./wire.ts";

setDefaultTimeout(60_000);

let stage: Stage;
let wire: Wire;
/** Both doors: rungs 1 to 9 are the same behind each. */
let sockets: string[] = [];

beforeAll(async () => {
  stage = await openStage();
  wire = stage.wire;
  stage.agent("TICK-1", `${meet}\n${commit}`);
  await stage.post("first");
  sockets = [wire.path, (await stage.worker("TICK-1")).socket];
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

type Expected = [code: string, message: RegExp, details?: Json];

/** The line is refused alike on both sockets, without an id. */
async function failsAt(line: string | Uint8Array, [code, message, details = {}]: Expected): Promise<void> {
  for (const socket of sockets) {
    const { id, error } = await reply(socket, line);
    expect(id).toBeNull();
    expect(error).toEqual({ code, message: expect.stringMatching(message), details });
  }
}

const bytes = (text: string, ...tail: number[]) => Buffer.concat([Buffer.from(text), Buffer.from(tail)]);
const padded = (length: number) => {
  const empty = request("daemon", {}, { id: "n", x: "" });
  return request("daemon", {}, { id: "n", x: "a".repeat(length - empty.length) });
};

describe("3.2 the ladder", () => {
  test.each<[string, string | Uint8Array, Expected]>([
    ["1: a line of one byte too many", `${"x".repeat(1_048_576)}\n`, ["invalid_request", /too large/]],
    ["1 before 2: too long and not UTF-8", Buffer.alloc(1_048_577, 0xff), ["invalid_request", /too large/]],
    ["2: not UTF-8", bytes('{"v":1,"id":"', 0xff, 0x22, 0x7d, 0x0a), ["invalid_request", /UTF-8/]],
    ["2: a character cut short", bytes('"', 0xc3, 0x0a), ["invalid_request", /UTF-8/]],
    ["2: a surrogate as bytes", bytes('"', 0xed, 0xa0, 0x80, 0x22, 0x0a), ["invalid_request", /UTF-8/]],
    ["3: an empty line", "\n", ["invalid_request", /^malformed JSON/]],
    ["3: half an object", '{"v":1', ["invalid_request", /^malformed JSON/]],
    ["3: two objects on one line", "{}{}\n", ["invalid_request", /^malformed JSON/]],
    ["3: a byte-order mark is not stripped", '\ufeff{"v":1}\n', ["invalid_request", /^malformed JSON/]],
    ["3: single quotes", "{'v':1}\n", ["invalid_request", /^malformed JSON/]],
    ["3: nesting without end", `${"[".repeat(500_000)}\n`, ["invalid_request", /^(malformed JSON|.*object)/]],
    ["4: an array", "[]\n", ["invalid_request", /JSON object/]],
    ["4: null", "null\n", ["invalid_request", /JSON object/]],
    ["4: a string", '"status"\n', ["invalid_request", /JSON object/]],
    ["5: no v", "{}\n", ["invalid_request", /`v`/]],
    ["5: v is text", '{"v":"1"}\n', ["invalid_request", /`v`/]],
    ["5: v is a fraction", '{"v":1.5}\n', ["invalid_request", /`v`/]],
    ["5: v is negative", '{"v":-1}\n', ["invalid_request", /`v`/]],
    ["5: v is null", '{"v":null}\n', ["invalid_request", /`v`/]],
    ["6: another version", '{"v":99}\n', ["unsupported_version", /99/, { supported: [1], received: 99 }]],
    ["6: version 0", '{"v":0}\n', ["unsupported_version", /0/, { supported: [1], received: 0 }]],
    [
      "6 before 7: the version before the verb",
      '{"v":2,"verb":7}\n',
      ["unsupported_version", /2/, { supported: [1], received: 2 }],
    ],
    ["7: no verb", '{"v":1,"id":"a","args":{}}\n', ["invalid_request", /`verb`/]],
    ["7: a verb that is no text", '{"v":1,"verb":["status"]}\n', ["invalid_request", /`verb`/]],
    ["8: an unknown verb", request("merge"), ["unknown_verb", /`merge`/, { verb: "merge" }]],
    ["8: verbs are case-sensitive", request("Status"), ["unknown_verb", /`Status`/, { verb: "Status" }]],
    ["8: not even the empty one", request(""), ["unknown_verb", /``/, { verb: "" }]],
    [
      "8: a name of every object",
      request("hasOwnProperty"),
      ["unknown_verb", /hasOwnProperty/, { verb: "hasOwnProperty" }],
    ],
    ["8: search lives elsewhere", request("search"), ["unknown_verb", /`search`/, { verb: "search" }]],
    [
      "8 before 9: the verb before id and args",
      '{"v":1,"verb":"merge","id":5}\n',
      ["unknown_verb", /`merge`/, { verb: "merge" }],
    ],
  ])("3.2 rung %s", async (_name, line, expected) => {
    await failsAt(line, expected);
  });

  const rung9: [string, string, string][] = [
    ["no id", '{"v":1,"verb":"status","args":{}}', "`id`"],
    ["id is a number", request("status", {}, { id: 7 }), "`id`"],
    ["id is null", request("status", {}, { id: null }), "`id`"],
    ["no args (14.1)", '{"v":1,"id":"a","verb":"status"}', "`args`"],
    ["args is null", request("status", null), "`args`"],
    ["args is an array", request("status", []), "`args`"],
    ["args is text", request("status", "{}"), "`args`"],
    ["token is a number", request("status", {}, { token: 5 }), "`token`"],
    ["token is an object", request("brief", {}, { token: {} }), "`token`"],
    ["an argument missing", request("hold"), "`ticket`"],
    ["a required argument null", request("cancel", { run: null }), "`run`"],
    ["text where a number is wanted", request("list", { limit: "5" }), "`limit`"],
    ["a number where text is wanted", request("hold", { ticket: 7 }), "`ticket`"],
    ["true where text is wanted", request("note", { text: true }), "`text`"],
    ["stop.force null", request("stop", { force: null }), "`force`"],
    ["stop.force a number", request("stop", { force: 1 }), "`force`"],
    ["run.only missing", request("run", { trigger: { kind: "now" } }), "`only`"],
    ["run.only null", request("run", { trigger: { kind: "now" }, only: null }), "`only`"],
    ["run.only holding a number", request("run", { trigger: { kind: "now" }, only: ["a", 1] }), "only"],
    ["an array where an object is wanted", request("post", { file: "a", trigger: [] }), "`trigger`"],
    ["no kind", request("post", { file: "a", trigger: {} }), "kind"],
    ["a kind not on the list", request("post", { file: "a", trigger: { kind: "later" } }), "later"],
    ["a kind of the other verb", request("run", { trigger: { kind: "auto" }, only: [] }), "auto"],
    ["post wants time", request("post", { file: "a", trigger: { kind: "at", local_time: "1" } }), "time"],
    ["run wants local_time (14.6)", request("run", { only: [], trigger: { kind: "at", time: "1" } }), "local_time"],
    ["every without interval", request("run", { only: [], trigger: { kind: "every" } }), "interval_ms"],
    ["a verdict not on the list", request("verdict", { verdict: "maybe" }), "maybe"],
    ["confidence 0.8 (14.5)", request("verdict", { verdict: "pass", confidence: 0.8 }), "0.8"],
    ["a confidence not on the list", request("verdict", { verdict: "pass", confidence: "High" }), "High"],
    ["list.states no array", request("list", { states: "ready" }), "states"],
  ];
  for (const [name, line, literal] of rung9) {
    test(`3.2 rung 9: ${name}`, async () => {
      await failsAt(line, ["invalid_request", new RegExp(`^invalid request envelope.*${RegExp.escape(literal)}`)]);
    });
  }

  const all: Json = {
    daemon: {},
    restart: {},
    stop: {},
    pause: {},
    resume: {},
    post: { file: "f", trigger: { kind: "auto" } },
    run: { trigger: { kind: "now" }, only: [] },
    retry: { ticket: "t" },
    hold: { ticket: "t" },
    ready: { ticket: "t" },
    cancel: { run: "r" },
    reindex: {},
    show: {},
    logs: { run: "r" },
    events: {},
    status: {},
    list: {},
    wait: { run: "r" },
    init: {},
    brief: {},
    note: { text: "t" },
    verdict: { verdict: "pass" },
  };
  for (const [verb, args] of Object.entries(all)) {
    test(`1, 3.1: ${verb} is a verb, and an unknown argument of it is refused`, async () => {
      const message = /^invalid request envelope.*`unheard_of`/;
      await failsAt(request(verb, { ...(args as Json), unheard_of: null }), ["invalid_request", message]);
    });
  }

  test("3.2 rungs 1-9 carry no id even when it can be read, rung 10 echoes it", async () => {
    expect((await reply(wire.path, request("hold", {}, { id: "mine" }))).id).toBeNull();
    expect((await reply(wire.path, request("brief", {}, { id: "mine" }))).id).toBe("mine");
  });

  test("3.2, 14.3: garbage on the worker socket is not unauthorized", async () => {
    for (const line of ["garbage", request("status", { x: 1 }), request("nope")]) {
      expect((await reply(sockets[1]!, line)).error?.code).not.toBe("unauthorized");
    }
  });

  test("3.2: a JSON-RPC object anywhere but first fails rung 5 and says which dialect is spoken here", async () => {
    const rpc = '{"jsonrpc":"2.0","id":1,"method":"x"}';
    const [, second] = await replies(wire.path, `${request("daemon")}\n${rpc}\n`);
    expect(second).toEqual({
      id: null,
      ok: false,
      error: { code: "invalid_request", message: expect.stringContaining("`v`"), details: { dialect: "envelope" } },
    });
    expect((await reply(sockets[1]!, rpc)).error?.details).toEqual({ dialect: "envelope" });
  });

  test("3.2: none of these failures affects the daemon or the connection", async () => {
    const all = await replies(wire.path, `nonsense\n\n[]\n{"v":7}\n${request("daemon", {}, { id: "after" })}\n`);
    expect(all.map(({ ok }) => ok)).toEqual([false, false, false, false, true]);
    expect(all.at(-1)?.id).toBe("after");
  });
});

describe("3.1 numbers", () => {
  const integers: [verb: string, args: (number: string) => string, least: string, greatest: string][] = [
    ["show.limit", (n) => `"show","args":{"limit":${n}}`, "0", "4294967295"],
    ["list.limit", (n) => `"list","args":{"limit":${n}}`, "0", "4294967295"],
    ["events.limit", (n) => `"events","args":{"limit":${n}}`, "0", "4294967295"],
    ["events.tail", (n) => `"events","args":{"tail":${n}}`, "0", "4294967295"],
    ["events.after", (n) => `"events","args":{"after":${n}}`, "-9223372036854775808", "9223372036854775807"],
    ["logs.tail", (n) => `"logs","args":{"run":"TICK-1","tail":${n}}`, "0", "4294967295"],
    ["logs.after", (n) => `"logs","args":{"run":"TICK-1","after":${n}}`, "0", "18446744073709551615"],
    [
      "run.trigger.interval_ms",
      (n) => `"run","args":{"only":[],"ticket":"no-such","trigger":{"kind":"every","interval_ms":${n}}}`,
      "0",
      "18446744073709551615",
    ],
  ];
  const envelope = (rest: string) => `{"v":1,"id":"a","verb":${rest}}`;

  for (const [name, args, least, greatest] of integers) {
    test(`3.1: ${name} takes integers from ${least} to ${greatest}, no fraction, no text`, async () => {
      const above = String(BigInt(greatest) + 1n);
      const below = String(BigInt(least) - 1n);
      const fractions = ["0.5", "1.5", "1e-1", "1.00000000000000000001", "4294967294.9999999999"];
      for (const wrong of [above, below, "1e30", "-1e30", "1e400", '"5"', "true", "{}", "[5]", ...fractions]) {
        const { error } = await reply(wire.path, envelope(args(wrong)));
        expect(`${wrong}: ${error?.message}`).toStartWith(`${wrong}: invalid request envelope`);
        expect(error?.message).toContain(name.slice(name.indexOf(".") + 1));
      }
      for (const right of [least, greatest, "5", "5.0", "0.05e2", "-0", "null"]) {
        if (right === "null" && name.startsWith("run.")) continue;
        const { error } = await reply(wire.path, envelope(args(right)));
        expect(`${right}: ${error?.code}`).not.toBe(`${right}: invalid_request`);
      }
    });
  }

  test("3.1: `v` may be written 1.0", async () => {
    expect((await reply(wire.path, '{"v":1.0,"id":"a","verb":"daemon","args":{}}')).ok).toBe(true);
  });
});

describe("3.1 the rest of the request", () => {
  test("3.1: the id is echoed whatever it is, the empty one too", async () => {
    for (const id of ["", "c-41", "é😀\u2028", '"\\\n\t', "a".repeat(20_000)]) {
      expect((await reply(wire.path, request("daemon", {}, { id }))).id).toBe(id);
    }
    expect((await reply(wire.path, '{"v":1,"id":"\\ud800","verb":"daemon","args":{}}')).id).toBe("\ud800");
  });

  test("3.1: unknown members of the envelope and of trigger are ignored, a repeated key takes its last value", async () => {
    expect((await wire.ask("daemon", {}, { more: [1], jsonrpc_: 2, constructor: null })).ok).toBe(true);
    const trigger = { kind: "now", local_time: 7, surprise: {} };
    expectRefusal(await wire.refused("run", { trigger, only: [], ticket: "no-such" }), "not_found");
    const twice = '{"v":9,"id":"a","verb":"nope","verb":"daemon","args":5,"args":{},"id":"b","v":1}';
    expect(await reply(wire.path, twice)).toMatchObject({ id: "b", ok: true });
  });

  test("3.1: null equals absent for every optional argument, and for the token", async () => {
    expect(await wire.ask("list", { limit: null, project: null, states: null }, { token: null })).toMatchObject({
      ok: true,
    });
    expect((await wire.ask("events", { after: null, tail: null, limit: null, scope: null })).ok).toBe(true);
    expect((await wire.ask("logs", { run: "TICK-1", stage: null, tail: null, after: null })).ok).toBe(true);
    expect(await wire.ok("show", { ref: null, limit: null })).toMatchObject({ kind: "dashboard" });
  });

  test("2: blanks around a line are ignored, a carriage return too", async () => {
    const all = await replies(wire.path, ` \t${request("daemon")} \r\n\t${request("daemon")}\v\f \n`);
    expect(all.map(({ ok }) => ok)).toEqual([true, true]);
  });

  test("2: a request of exactly 1,048,576 bytes is served, with its newline or up to the end of the stream", async () => {
    for (const line of [`${padded(1_048_575)}\n`, padded(1_048_576)]) {
      expect(line).toHaveLength(1_048_576);
      expect(await reply(wire.path, line)).toMatchObject({ id: "n", ok: true });
      await failsAt(line.replace("aa", "aaa"), ["invalid_request", /too large/]);
    }
  });

  test("3.4: init is known and not performed", async () => {
    const { id, error } = await wire.ask("init", {}, { id: "i" });
    expect(id).toBe("i");
    expect(error).toEqual({
      code: "invalid_request",
      message: expect.stringMatching(/`init`.*not implemented/),
      details: { verb: "init" },
    });
  });
});

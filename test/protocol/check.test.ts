// The ladder of protocol.md 3.2, rungs 1 to 9, line by line; and that no line whatsoever makes it throw.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { argsProblem, readRequest, tooLargeReply } from "../../src/protocol/check.ts";
import { type Verb, verbs } from "../../src/protocol/verbs.ts";

type Failed = { code: string; message: string; details: unknown };

function failed(line: string | Uint8Array): Failed {
  const read = readRequest(line);
  if (read.ok) throw new Error(`accepted: ${line.slice(0, 200)}`);
  expect(Object.keys(read.reply).sort()).toEqual(["error", "id", "ok"]);
  expect(read.reply.id).toBeNull();
  return read.reply.error;
}

function line(verb: string, args: unknown, more: Record<string, unknown> = {}): string {
  return JSON.stringify({ v: 1, id: "c-41", verb, args, ...more });
}

describe("rungs 1 to 8", () => {
  test.each<[string, string | Uint8Array, [string, RegExp, object]]>([
    ["1 too long", "x".repeat(1_048_577), ["invalid_request", /too large/, {}]],
    ["2 not UTF-8", new Uint8Array([0x22, 0xff, 0x22]), ["invalid_request", /UTF-8/, {}]],
    ["2 a cut character", new Uint8Array([0x22, 0xc3]), ["invalid_request", /UTF-8/, {}]],
    ["3 an empty line", "", ["invalid_request", /^malformed JSON/, {}]],
    ["3 blanks", " \t\r", ["invalid_request", /^malformed JSON/, {}]],
    ["3 half an object", '{"v": 1', ["invalid_request", /^malformed JSON/, {}]],
    ["3 two objects", "{}{}", ["invalid_request", /^malformed JSON/, {}]],
    ["3 a byte-order mark", '\ufeff{"v":1}', ["invalid_request", /^malformed JSON/, {}]],
    ["3 a mark as bytes", new TextEncoder().encode('\ufeff{"v":1}'), ["invalid_request", /^malformed JSON/, {}]],
    ["4 an array", "[1]", ["invalid_request", /object/, {}]],
    ["4 null", "null", ["invalid_request", /object/, {}]],
    ["4 a number", "5", ["invalid_request", /object/, {}]],
    ["5 nothing", "{}", ["invalid_request", /`v`/, {}]],
    ["5 a string", '{"v":"1"}', ["invalid_request", /`v`/, {}]],
    ["5 a fraction", '{"v":1.5}', ["invalid_request", /`v`/, {}]],
    ["5 negative", '{"v":-1}', ["invalid_request", /`v`/, {}]],
    ["5 null", '{"v":null}', ["invalid_request", /`v`/, {}]],
    ["5 the other dialect", '{"jsonrpc":"2.0","v":1}', ["invalid_request", /`v`/, { dialect: "envelope" }]],
    ["6 another version", '{"v":99}', ["unsupported_version", /99/, { supported: [1], received: 99 }]],
    ["6 zero", '{"v":0}', ["unsupported_version", /0/, { supported: [1], received: 0 }]],
    ["7 no verb", '{"v":1}', ["invalid_request", /`verb`/, {}]],
    ["7 a number", '{"v":1,"verb":5}', ["invalid_request", /`verb`/, {}]],
    ["8 unknown", '{"v":1,"verb":"merge"}', ["unknown_verb", /`merge`/, { verb: "merge" }]],
    [
      "8 a name every object has",
      '{"v":1,"verb":"constructor"}',
      ["unknown_verb", /`constructor`/, { verb: "constructor" }],
    ],
    ["8 another case", '{"v":1,"verb":"Status"}', ["unknown_verb", /`Status`/, { verb: "Status" }]],
  ])("%s", (_name, text, [code, message, details]) => {
    expect(failed(text)).toEqual({ code, message: expect.stringMatching(message), details });
  });

  test("the limit counts every byte that is given, a newline too", () => {
    const fill = (length: number) => {
      const empty = line("status", {}, { x: "" });
      return line("status", {}, { x: "a".repeat(length - empty.length) });
    };
    expect(readRequest(fill(1_048_576)).ok).toBe(true);
    expect(readRequest(`${fill(1_048_575)}\n`).ok).toBe(true);
    expect(failed(fill(1_048_577))).toEqual(tooLargeReply().error);
    expect(failed(`${fill(1_048_576)}\n`)).toEqual(tooLargeReply().error);
  });
});

describe("rung 9", () => {
  test.each<[string, string, string]>([
    ["no id", '{"v":1,"verb":"status","args":{}}', "`id`"],
    ["a numeric id", line("status", {}, { id: 5 }), "`id`"],
    ["a null id", line("status", {}, { id: null }), "`id`"],
    ["no args", '{"v":1,"id":"","verb":"status"}', "`args`"],
    ["null args", line("status", null), "`args`"],
    ["an array for args", line("status", []), "`args`"],
    ["a numeric token", line("status", {}, { token: 5 }), "`token`"],
    ["an unknown argument", line("status", { deep: 1 }), "`deep`"],
    ["an unknown argument of init", line("init", { x: 1 }), "`x`"],
    ["__proto__", '{"v":1,"id":"","verb":"status","args":{"__proto__":1}}', "__proto__"],
    ["a missing argument", line("hold", {}), "`ticket`"],
    ["null for a required one", line("hold", { ticket: null }), "`ticket`"],
    ["a number for a string", line("hold", { ticket: 7 }), "`ticket`"],
    ["a string for a number", line("list", { limit: "5" }), "`limit`"],
    ["a fraction", line("list", { limit: 1.5 }), "`limit`"],
    ["negative", line("show", { limit: -1 }), "`limit`"],
    ["beyond 32 bits", line("logs", { run: "x", tail: 4_294_967_296 }), "`tail`"],
    ["after of logs negative", line("logs", { run: "x", after: -1 }), "`after`"],
    [
      "after of logs beyond 64 bits",
      '{"v":1,"id":"","verb":"logs","args":{"run":"x","after":18446744073709551616}}',
      "`after`",
    ],
    [
      "after of events beyond 64 bits",
      '{"v":1,"id":"","verb":"events","args":{"after":9223372036854775808}}',
      "`after`",
    ],
    ["after of events far below", '{"v":1,"id":"","verb":"events","args":{"after":-9223372036854775809}}', "`after`"],
    ["after of events in the stars", '{"v":1,"id":"","verb":"events","args":{"after":1e30}}', "`after`"],
    ["after of events at 1e19", '{"v":1,"id":"","verb":"events","args":{"after":1e19}}', "`after`"],
    ["after of events in the depths", '{"v":1,"id":"","verb":"events","args":{"after":-1e300}}', "`after`"],
    ["after of logs in the stars", '{"v":1,"id":"","verb":"logs","args":{"run":"","after":1e300}}', "`after`"],
    ["after of logs at 2e19", '{"v":1,"id":"","verb":"logs","args":{"run":"","after":2e19}}', "`after`"],
    [
      "an interval in the stars",
      '{"v":1,"id":"","verb":"run","args":{"only":[],"trigger":{"kind":"every","interval_ms":1e300}}}',
      "`trigger.interval_ms`",
    ],
    [
      "a fraction no double can tell from an integer",
      '{"v":1,"id":"","verb":"list","args":{"limit":1.00000000000000000001}}',
      "`limit` is a fraction",
    ],
    ["a fraction too small for a double", '{"v":1,"id":"","verb":"events","args":{"after":-1e-400}}', "`after`"],
    ["infinity", '{"v":1,"id":"","verb":"events","args":{"after":1e400}}', "`after`"],
    ["force null", line("stop", { force: null }), "`force`"],
    ["force a number", line("stop", { force: 1 }), "`force`"],
    ["states no array", line("list", { states: "ready" }), "`states`"],
    ["states of numbers", line("list", { states: [1] }), "`states[0]`"],
    ["a verdict not on the list", line("verdict", { verdict: "maybe" }), '"maybe"'],
    ["a confidence of a wrong type", line("verdict", { verdict: "pass", confidence: 0.8 }), "0.8"],
    ["a confidence not on the list", line("verdict", { verdict: "pass", confidence: "sure" }), '"sure"'],
    ["a trigger kind not on the list", line("post", { file: "a", trigger: { kind: "later" } }), '"later"'],
    ["now is no trigger of post", line("post", { file: "a", trigger: { kind: "now" } }), '"now"'],
    ["auto is no trigger of run", line("run", { only: [], trigger: { kind: "auto" } }), '"auto"'],
    ["a trigger without kind", line("post", { file: "a", trigger: {} }), "`trigger.kind`"],
    ["a trigger that is an array", line("post", { file: "a", trigger: [] }), "`trigger`"],
    ["no time", line("post", { file: "a", trigger: { kind: "at" } }), "`trigger.time`"],
    [
      "local_time where time is wanted",
      line("post", { file: "a", trigger: { kind: "at", local_time: "1" } }),
      "`trigger.time`",
    ],
    [
      "time where local_time is wanted",
      line("run", { only: [], trigger: { kind: "at", time: "1" } }),
      "`trigger.local_time`",
    ],
    ["no interval", line("run", { only: [], trigger: { kind: "every" } }), "`trigger.interval_ms`"],
    [
      "a negative interval",
      line("run", { only: [], trigger: { kind: "every", interval_ms: -1 } }),
      "`trigger.interval_ms`",
    ],
    ["no only", line("run", { trigger: { kind: "now" } }), "`only`"],
    ["only of numbers", line("run", { trigger: { kind: "now" }, only: ["a", 5] }), "`only[1]`"],
  ])("%s", (_name, text, literal) => {
    const error = failed(text);
    expect(error.code).toBe("invalid_request");
    expect(error.message).toStartWith("invalid request envelope");
    expect(error.message).toContain(literal);
    expect(error.message).not.toContain("\n");
    expect(error.details).toEqual({});
  });

  test("the verb is looked at before the arguments, the version before the verb", () => {
    expect(failed(JSON.stringify({ v: 2, verb: "nope" })).code).toBe("unsupported_version");
    expect(failed(JSON.stringify({ v: 1, verb: "nope", args: 5 })).code).toBe("unknown_verb");
  });

  test("a long value is not quoted back whole", () => {
    expect(failed(line("verdict", { verdict: "x".repeat(100_000) })).message.length).toBeLessThan(300);
  });
});

describe("what passes", () => {
  test.each<[string, string, Verb, unknown]>([
    [
      "the example",
      '{"v": 1, "id": "c-41", "verb": "hold", "args": {"ticket": "TICK-7"}, "token": null}',
      "hold",
      { ticket: "TICK-7" },
    ],
    ["blanks around", ' \t{"v":1,"id":"","verb":"status","args":{}} \t\r', "status", {}],
    ["odd blanks around", '\v\f{"v":1,"id":"","verb":"status","args":{}}\f\r\v', "status", {}],
    ["unknown fields on top", '{"v":1,"id":"a","verb":"pause","args":{},"x":1,"constructor":2}', "pause", {}],
    ["a repeated key", '{"v":9,"v":1,"id":"a","id":"b","verb":"pause","args":{}}', "pause", {}],
    ["a whole number with a point", '{"v":1.0,"id":"","verb":"list","args":{"limit":5.0}}', "list", { limit: 5 }],
    ["an exponent", '{"v":1,"id":"","verb":"list","args":{"limit":1e2}}', "list", { limit: 100 }],
    [
      "nulls for optional ones",
      line("list", { limit: null, project: null, states: null }),
      "list",
      { limit: null, project: null, states: null },
    ],
    [
      "unknown fields in a trigger",
      line("post", { file: "a", trigger: { kind: "auto", time: 5, x: 1 } }),
      "post",
      { file: "a", trigger: { kind: "auto", time: 5, x: 1 } },
    ],
    ["the greatest 32-bit limit", line("list", { limit: 4_294_967_295 }), "list", { limit: 4_294_967_295 }],
    ["zero limits, which the verb refuses", line("list", { limit: 0 }), "list", { limit: 0 }],
    ["minus zero", '{"v":1,"id":"","verb":"list","args":{"limit":-0}}', "list", { limit: -0 }],
    [
      "a great cursor with a point",
      '{"v":1,"id":"","verb":"events","args":{"after":9223372036854775807.0}}',
      "events",
      { after: 9_223_372_036_854_775_807n },
    ],
    ["negative after of events", line("events", { after: -1 }), "events", { after: -1 }],
    [
      "the greatest cursor",
      '{"v":1,"id":"","verb":"events","args":{"after":9223372036854775807}}',
      "events",
      { after: 9_223_372_036_854_775_807n },
    ],
    [
      "the greatest cursor of logs",
      '{"v":1,"id":"","verb":"logs","args":{"run":"","after":18446744073709551615}}',
      "logs",
      { run: "", after: 18_446_744_073_709_551_615n },
    ],
    [
      "an interval too long, which the verb refuses",
      '{"v":1,"id":"","verb":"run","args":{"only":[],"trigger":{"kind":"every","interval_ms":18446744073709551615}}}',
      "run",
      { only: [], trigger: { kind: "every", interval_ms: 2 ** 64 } },
    ],
    ["force", line("stop", { force: true }), "stop", { force: true }],
    [
      "a verdict",
      line("verdict", { verdict: "pass", confidence: null, reason: null }, { token: "t" }),
      "verdict",
      { verdict: "pass", confidence: null, reason: null },
    ],
  ])("%s", (_name, text, verb, args) => {
    const read = readRequest(text);
    if (!read.ok) throw new Error(read.reply.error.message);
    expect(read.request.verb).toBe(verb);
    expect(read.request.args as unknown).toEqual(args);
  });

  test("the id and the token are kept as sent, null and absent tokens are one", () => {
    const ids = ["", "é😀", '"\\', "\ud800", "a".repeat(10_000)];
    for (const id of ids) {
      const read = readRequest(line("status", {}, { id, token: "t" }));
      expect(read.ok && read.request.id).toBe(id);
      expect(read.ok && read.request.token).toBe("t");
    }
    for (const token of [null, undefined]) {
      const read = readRequest(line("status", {}, { token }));
      expect(read.ok && read.request.token).toBeNull();
    }
  });

  test("bytes and text are read alike", () => {
    const text = line("note", { text: "häß😀" });
    expect(readRequest(new TextEncoder().encode(text))).toEqual(readRequest(text));
  });
});

describe("any line", () => {
  test("is answered or accepted, never thrown", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.json(), fc.uint8Array()), (any) => {
        const read = readRequest(any);
        expect(typeof read.ok).toBe("boolean");
      }),
      { numRuns: 300 },
    );
  });

  test("deep nesting is refused like anything else", () => {
    const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    expect(failed("[".repeat(100_000)).code).toBe("invalid_request");
    expect(failed(deep).code).toBe("invalid_request");
    for (const args of [
      `{"trigger":${deep},"file":"a"}`,
      `{"file":${deep},"trigger":{"kind":"auto"}}`,
      `{"x":${deep}}`,
    ]) {
      const error = failed(`{"v":1,"id":"","verb":"post","args":${args}}`);
      expect(error.message).toStartWith("invalid request envelope");
    }
    expect(failed(`{"v":12345678901234567890,"x":${deep}}`).code).toMatch(/^(invalid_request|unsupported_version)$/);
  });

  test("every argument problem is one line that says so", () => {
    const names = fc.constantFrom(...(Object.keys(verbs) as Verb[]));
    const keys = fc.constantFrom("ticket", "run", "limit", "only", "trigger", "file", "text", "verdict", "after", "x");
    const values = fc.oneof(
      fc.jsonValue(),
      fc.record({ kind: fc.constantFrom("at", "every", "now", "auto", "?") }),
      fc.bigInt(),
    );
    fc.assert(
      fc.property(names, fc.dictionary(keys, values), (verb, args) => {
        const problem = argsProblem(verb, args);
        if (problem !== null) expect(problem).toMatch(/^(missing field|unknown field|field) `[^\n]*$/);
      }),
      { numRuns: 300 },
    );
  });
});

// Vendor rejections: the catalogue's rules, framing, chunk borders, and what must never match (engine.md 12.2).

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { checkCatalogues, loadRules } from "../../src/core/catalogue.ts";
import { RejectionScanner } from "../../src/core/rejection.ts";

type Stream = "stdout" | "stderr";

function classify(pieces: [Stream, string][], exitCode: number | null = 1): string | null {
  const scanner = new RejectionScanner(loadRules());
  for (const [stream, text] of pieces) scanner.feed(stream, text);
  return scanner.finish(exitCode)?.id ?? null;
}

const header = "Missing bearer or basic authentication in header";
const model = "model is not supported when using Codex with a ChatGPT account";
const limit = "You've hit your";
const apiError = (text: string) => JSON.stringify({ is_api_error_message: true, message: text });

const table: [string, Stream, string, string | null][] = [
  ["codex 401", "stderr", `unexpected status 401 Unauthorized: ${header}`, "codex.authentication.missing-header"],
  ["codex 401 in JSON", "stderr", `{"status":401,"m":"${header}"}`, "codex.authentication.missing-header"],
  ["status_code with a blank", "stderr", `{"status_code": 401} ${header}`, "codex.authentication.missing-header"],
  ["upper case", "stderr", `STATUS=401 ${header}`, "codex.authentication.missing-header"],
  ["wrong stream", "stdout", `status 401 ${header}`, null],
  ["a longer number", "stderr", `status 4010 ${header}`, null],
  ["another number", "stderr", `status 400 ${header}`, null],
  ["no status", "stderr", `401 ${header}`, null],
  ["signature alone", "stderr", header, null],
  ["status alone", "stderr", "status 401", null],
  ["a signature is exact", "stderr", `status 401 ${header.toLowerCase()}`, null],
  ["codex model", "stderr", `status: 400 The 'x' ${model}.`, "codex.configuration.unsupported-chatgpt-model"],
  [
    "opencode",
    "stderr",
    "Error: Unexpected server error. Check server logs for details.\n",
    "opencode.rejection.unexpected-server-error",
  ],
  ["opencode on stdout", "stdout", "Unexpected server error. Check server logs for details.", null],
  ["claude in plain text", "stdout", `${limit} limit`, "claude.rate-limit.usage-limit"],
  ["claude on stderr", "stderr", `${limit} limit`, "claude.rate-limit.usage-limit"],
  ["claude in a marked record", "stdout", `${apiError(`${limit} weekly limit`)}\n`, "claude.rate-limit.usage-limit"],
  [
    "claude in a failed result",
    "stdout",
    `{"type":"result","is_error":true,"result":"API Error: 529 Overloaded"}\n`,
    "claude.rate-limit.api-overloaded",
  ],
  ["a result that is no error", "stdout", `{"type":"result","is_error":false,"result":"529 Overloaded"}\n`, null],
  ["an agent that reads one", "stdout", `{"type":"tool_result","content":"${limit} limit; 529 Overloaded"}\n`, null],
  ["a predicate deeper down", "stdout", `{"m":{"is_api_error_message":true},"t":"${limit}"}\n`, null],
  ["a marked record elsewhere does not free the next line", "stdout", `${apiError("fine")}\n{"t":"${limit}"}\n`, null],
  ["a line that only starts like JSON is text", "stdout", `{oops ${limit}\n`, "claude.rate-limit.usage-limit"],
  ["an array is text", "stdout", `["${limit}"]\n`, "claude.rate-limit.usage-limit"],
  ["an unfinished last line", "stdout", `${limit}`, "claude.rate-limit.usage-limit"],
  ["a signature across two framed lines", "stdout", `You've hit\nyour limit`, null],
];

describe("the built-in rules", () => {
  test.each(table)("%s", (_name, stream, text, id) => expect(classify([[stream, text]])).toBe(id));

  test("an exit 0 that printed a rejection is rejected", () => {
    expect(classify([["stdout", limit]], 0)).toBe("claude.rate-limit.usage-limit");
  });

  test("conditions must hold within one stream", () => {
    const rule = { id: "x", class: "rate_limited", diagnostic: "d", status: 429, signatures: ["slow down"] };
    const rules = checkCatalogues([{ version: 1, vendor: "v", rules: [rule] }]);
    const scanner = new RejectionScanner(rules);
    scanner.feed("stdout", "status 429");
    scanner.feed("stderr", "slow down");
    expect(scanner.finish(1)).toBeNull();
  });

  test("the first catalogue in order wins", () => {
    expect(
      classify([
        ["stdout", limit],
        ["stderr", `status 401 ${header}`],
      ]),
    ).toBe("codex.authentication.missing-header");
  });

  test("a framed line longer than 8 MiB is dropped, the next one is read", () => {
    const scanner = new RejectionScanner(loadRules());
    const mega = "x".repeat(1 << 20);
    for (let n = 0; n < 9; n += 1) scanner.feed("stdout", mega);
    scanner.feed("stdout", `${limit}\n`);
    scanner.feed("stdout", "529 Overloaded\n");
    expect(scanner.finish(1)?.id).toBe("claude.rate-limit.api-overloaded");
  });

  test("however the output is cut into reads, the answer is the same", () => {
    const texts = table.map(([, stream, text]) => [stream, text] as const);
    fc.assert(
      fc.property(fc.constantFrom(...texts), fc.array(fc.nat(200), { maxLength: 12 }), ([stream, text], cuts) => {
        const points = [...new Set(cuts.filter((cut) => cut < text.length))].sort((a, b) => a - b);
        const pieces: [Stream, string][] = [0, ...points].map((from, index) => [
          stream,
          text.slice(from, points[index] ?? undefined),
        ]);
        expect(classify(pieces)).toBe(classify([[stream, text]]));
      }),
      { numRuns: 500 },
    );
  });
});

describe("a catalogue", () => {
  const rule = { id: "r", class: "rate_limited", diagnostic: "d", signatures: ["s"] };
  const of = (change: object, rules: object[] = [rule]) => [{ version: 1, vendor: "v", rules, ...change }];
  const bad: [string, unknown[]][] = [
    ["of another version", of({ version: 2 })],
    ["with an unknown key", of({ extra: 1 })],
    ["with an unknown rule key", of({}, [{ ...rule, extra: 1 }])],
    ["with an unknown class", of({}, [{ ...rule, class: "angry" }])],
    ["with an empty id", of({}, [{ ...rule, id: "" }])],
    ["with an empty diagnostic", of({}, [{ ...rule, diagnostic: " " }])],
    ["without signatures", of({}, [{ ...rule, signatures: [] }])],
    ["with an empty signature", of({}, [{ ...rule, signatures: [""] }])],
    ["with predicates but no framing", of({}, [{ ...rule, records: [{ a: 1 }] }])],
    ["with an empty predicate", of({}, [{ ...rule, framing: "ndjson", records: [{}] }])],
    ["with an id twice", of({}, [rule, rule])],
    ["with an id of another catalogue", [...of({}), ...of({ vendor: "w" })]],
  ];
  test.each(bad)("%s is refused", (_name, catalogues) =>
    expect(() => checkCatalogues(catalogues)).toThrow("vendor catalogue"),
  );
  test("that is right is taken", () => expect(checkCatalogues(of({}))).toHaveLength(1));
});

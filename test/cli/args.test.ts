// The command line's grammar, row by row: what is accepted and what it means.

import { expect, test } from "bun:test";
import { type Parsed, parseCommandLine, wantsJson } from "../../src/cli/args.ts";
import { Refusal } from "../../src/cli/refusal.ts";

function parse(line: string): Parsed {
  return parseCommandLine(line === "" ? [] : line.split(" "));
}

function command(line: string) {
  const parsed = parse(line);
  if (parsed.kind !== "command") throw new Error(`${line}: ${parsed.kind}`);
  const { switches, texts, numbers, lists, words } = parsed.values;
  return {
    name: parsed.command.name,
    json: parsed.json,
    colour: parsed.colour,
    switches: [...switches].filter((name) => name !== "json").sort(),
    values: Object.fromEntries<unknown>([...texts, ...numbers, ...lists]),
    words: [...words],
  };
}

function refusal(argv: string[]): Refusal {
  try {
    parseCommandLine(argv);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error(`accepted: ${argv.join(" ")}`);
}

test.each([
  ["show", { name: "show", words: [] }],
  ["--json show", { name: "show", json: true }],
  ["show --json", { json: true }],
  ["show TICK-1 --json", { json: true, words: ["TICK-1"] }],
  ["show --json --json", { json: true }],
  ["show -5", { values: { limit: 5 } }],
  ["list -20", { name: "list", values: { limit: 20 } }],
  ["--json --color never show -5 foo", { values: { limit: 5 }, words: ["foo"], json: true, colour: "never" }],
  ["show -n 2 x", { values: { limit: 2 }, words: ["x"] }],
  ["show -n2", { values: { limit: 2 } }],
  ["show --limit=2", { values: { limit: 2 } }],
  ["show -- -5", { words: ["-5"], values: {} }],
  ["show -f -q TICK-1", { switches: ["follow", "quiet"], words: ["TICK-1"] }],
  ["show -fq TICK-1", { switches: ["follow", "quiet"] }],
  ["show x -f --timeout 90", { values: { timeout: 90_000 } }],
  ["show x -f --timeout 1h30m", { values: { timeout: 5_400_000 } }],
  ["wait r --timeout 0", { values: { timeout: 0 } }],
  ["post f --at 03:00", { values: { at: "03:00" }, words: ["f"] }],
  ["post f --hold --project p --flow x", { switches: ["hold"], values: { project: "p", flow: "x" } }],
  ["run", { words: [] }],
  ["run T --every 30m", { values: { every: 1_800_000 }, words: ["T"] }],
  ["run --every 500ms", { values: { every: 500 } }],
  ["run --every 1w", { values: { every: 604_800_000 } }],
  ["run --only A,B --only C", { values: { only: ["A", "B", "C"] } }],
  ["run --only A,,B,", { values: { only: ["A", "B"] } }],
  ["list --state ready,held --state failed", { values: { state: ["ready", "held", "failed"] } }],
  ["events --tail 0", { values: { tail: 0 } }],
  ["events x --after 12 --limit 256", { values: { after: 12, limit: 256 }, words: ["x"] }],
  ["logs r --stage test#2 --tail 4294967295", { values: { stage: "test#2", tail: 4_294_967_295 } }],
  ["daemon --foreground", { switches: ["foreground"] }],
  ["stop --force", { switches: ["force"] }],
  ["show --color always", { colour: "always" }],
  ["--color always show --no-color", { colour: "never" }],
  ["--color never show --color always", { colour: "always" }],
  ["verdict pass --confidence low", { words: ["pass"], values: { confidence: "low" } }],
  ["verdict fail --reason=-x", { values: { reason: "-x" } }],
  ["note a b", { words: ["a", "b"], json: false }],
  ["note a --json", { words: ["a", "--json"], json: false }],
  ["note --json a b", { words: ["a", "b"], json: true }],
  ["--json note a b", { words: ["a", "b"], json: true }],
  ["note a -- b", { words: ["a", "--", "b"] }],
  ["note a --help -5", { words: ["a", "--help", "-5"] }],
  ["note -- -5", { words: ["-5"] }],
  ["note --color never a", { words: ["a"], colour: "never" }],
] as [string, object][])("%s", (line, expected) => {
  expect(command(line)).toMatchObject(expected);
});

test("a reason may begin with a dash when it is no flag", () => {
  const parsed = parseCommandLine(["verdict", "fail", "--reason", "- tests fail"]);
  expect(parsed.kind === "command" && parsed.values.texts.get("reason")).toBe("- tests fail");
});

test.each([
  ["", "compact"],
  ["--help", "compact"],
  ["-h", "compact"],
  ["help", "compact"],
  ["--json", "compact"],
  ["--help --all", "full"],
  ["--all --help", "full"],
  ["help --all", "full"],
  ["show --help", "topic show"],
  ["show -h", "topic show"],
  ["show --bogus --help", "topic show"],
  ["help show", "topic show"],
  ["help states", "topic states"],
])("help: sloop %s", (line, page) => {
  const parsed = parse(line);
  if (parsed.kind !== "help") throw new Error(parsed.kind);
  expect(parsed.page.kind === "topic" ? `topic ${parsed.page.name}` : parsed.page.kind).toBe(page);
});

test.each(["--version", "-V", "--json --version", "--version show"])("version: sloop %s", (line) => {
  expect(parse(line).kind).toBe("version");
});

const usage: [string, RegExp, string][] = [
  ["shwo", /unknown command `shwo`[\s\S]*did you mean `show`/, "sloop [OPTIONS] [COMMAND]"],
  [
    "tickets",
    /`tickets` is not a command; did you mean `show` or `list`\? run `sloop show` or `sloop list`/,
    "sloop [",
  ],
  ["ls", /did you mean `show` or `list`/, "sloop ["],
  ["start", /did you mean `run`\?/, "sloop ["],
  ["kill", /did you mean `cancel`\?/, "sloop ["],
  ["abort", /did you mean `cancel`\?/, "sloop ["],
  ["statsu", /did you mean `status`/, "sloop ["],
  ["wacth", /did you mean `watch`/, "sloop ["],
  ["wiat", /did you mean `wait`/, "sloop ["],
  ["--all", /`--all` needs `--help`/, "sloop ["],
  ["--bogus show", /unexpected argument `--bogus`/, "sloop ["],
  ["--version=x", /takes no value/, "sloop ["],
  ["show --bogus", /unexpected argument `--bogus`/, "sloop show"],
  ["show --folow", /did you mean `--follow`/, "sloop show"],
  ["show -V", /unexpected argument `-V`/, "sloop show"],
  ["show -abc", /unexpected argument `-abc`/, "sloop show"],
  ["show -0", /`--limit <N>`/, "sloop show"],
  ["show --limit abc", /`abc`[\s\S]*`--limit <N>`/, "sloop show"],
  ["show --limit 1.5", /--limit/, "sloop show"],
  ["show --limit 1e3", /--limit/, "sloop show"],
  ["show --limit 4294967296", /4294967295/, "sloop show"],
  ["show --limit", /needs a value/, "sloop show"],
  ["show --limit -5x", /needs a value/, "sloop show"],
  ["show -n 1 -n 2", /given twice/, "sloop show"],
  ["show -f -f", /given twice/, "sloop show"],
  ["show a b", /unexpected argument `b`/, "sloop show"],
  ["show -q", /`--quiet` needs `--follow`/, "sloop show"],
  ["show --timeout 5", /`--timeout` needs `--follow`/, "sloop show"],
  ["show --json=x", /`--json` takes no value/, "sloop show"],
  ["show --color sometimes", /auto, always, never/, "sloop show"],
  ["status x", /unexpected argument `x`/, "sloop status"],
  ["list --state reddy", /ready, held, blocked, claimed, merged, failed, needs_review/, "sloop list"],
  ["list --state ,", /names no state/, "sloop list"],
  ["logs", /`<RUN>` is missing/, "sloop logs"],
  ["logs r --tail 0", /--tail/, "sloop logs"],
  ["logs r --timeout 3", /needs `--follow`/, "sloop logs"],
  ["events --tail 1 --after 2", /cannot be used with/, "sloop events"],
  ["events --limit 257", /256/, "sloop events"],
  ["wait", /`<RUN>` is missing/, "sloop wait"],
  ["wait r --timeout soon", /`soon`/, "sloop wait"],
  ["wait r --timeout -1", /needs a value/, "sloop wait"],
  ["post", /`<FILE>` is missing/, "sloop post"],
  ["post f --at 3:00", /HH:MM/, "sloop post"],
  ["post f --at 24:00", /HH:MM/, "sloop post"],
  ["post f --at +5:00", /HH:MM/, "sloop post"],
  ["post f --auto --hold", /`--auto` cannot be used with `--hold`/, "sloop post"],
  ["post f --at 03:00 --manual", /cannot be used with/, "sloop post"],
  ["run --every later", /--every/, "sloop run"],
  ["run --every 30", /--every/, "sloop run"],
  ["run --every 0m", /--every/, "sloop run"],
  ["run --every 99999999999999999999h", /--every/, "sloop run"],
  ["run --auto", /unexpected argument `--auto`/, "sloop run"],
  ["run T --project p", /`<TICKET>` cannot be used with `--project`/, "sloop run"],
  ["run --only ,", /names no ticket/, "sloop run"],
  ["run --overnight --every 1h", /cannot be used with/, "sloop run"],
  ["hold", /`<TICKET>` is missing/, "sloop hold"],
  ["cancel a b", /unexpected argument `b`/, "sloop cancel"],
  ["template tickte", /ticket, flow, project, config[\s\S]*did you mean `ticket`/, "sloop template"],
  ["verdict", /one of pass, fail/, "sloop verdict"],
  ["verdict maybe", /pass, fail/, "sloop verdict"],
  ["verdict pass --confidence 0.8", /low, medium, high/, "sloop verdict"],
  ["verdict pass --reason --confidence low", /`--reason <TEXT>` needs a value/, "sloop verdict"],
  ["note", /`<TEXT>` is missing/, "sloop note"],
  ["note -5", /unexpected argument `-5`/, "sloop note"],
  ["hold -5", /unexpected argument `-5`/, "sloop hold"],
  ["daemon reload", /invalid value `reload`/, "sloop daemon"],
];

test.each(usage)("usage error: sloop %s", (line, message, usageStart) => {
  const error = refusal(line.split(" "));
  expect(error.exitCode).toBe(2);
  expect(error.code).toBe("invalid_arguments");
  expect(error.details).toEqual({});
  expect(error.message).toMatch(message);
  expect(error.message).toContain(`\n\nUsage: ${usageStart}`);
  expect(error.message).toEndWith("\n\nFor more information, try '--help'.");
});

test("an empty word is an unknown command, and an empty limit no number", () => {
  expect(refusal([""]).message).toContain("unknown command ``");
  expect(refusal(["show", "--limit", ""]).message).toContain("--limit");
  expect(refusal(["show", "--limit="]).message).toContain("--limit");
});

test("parse failures are JSON when the exact token stands anywhere", () => {
  expect(wantsJson(["note", "a", "--json"])).toBe(true);
  expect(wantsJson(["show", "--json=x"])).toBe(false);
});

// Hostile lines for the daemon's sockets: valid requests of every verb bent in every way, and things that are no requests.

import type { Random } from "./random.ts";

type Member = [key: string, value: string];

const limitBytes = 1_048_576;

/** A valid request of each verb, members as JSON text. None of them ends the daemon, nor a run. */
const valid: readonly [verb: string, args: readonly Member[]][] = [
  ["daemon", []],
  ["restart", []],
  ["stop", []],
  ["pause", []],
  ["resume", []],
  [
    "post",
    [
      ["file", '".agents/sloop/tickets/posted.md"'],
      ["trigger", '{"kind":"manual"}'],
      ["project", "null"],
      ["flow", '"default"'],
    ],
  ],
  [
    "run",
    [
      ["trigger", '{"kind":"every","interval_ms":1800000}'],
      ["only", '["NOPE-1"]'],
      ["ticket", '"NOPE-2"'],
      ["project", "null"],
    ],
  ],
  ["retry", [["ticket", '"TICK-2"']]],
  ["hold", [["ticket", '"TICK-2"']]],
  ["ready", [["ticket", '"NOPE-1"']]],
  ["cancel", [["run", '"NOPE-1-r1"']]],
  ["reindex", []],
  [
    "show",
    [
      ["ref", '"TICK-1"'],
      ["limit", "5"],
    ],
  ],
  [
    "logs",
    [
      ["run", '"TICK-1"'],
      ["stage", '"build#1"'],
      ["tail", "5"],
      ["after", "0"],
    ],
  ],
  [
    "events",
    [
      ["after", "-1"],
      ["tail", "10"],
      ["limit", "64"],
      ["scope", '"TICK.*"'],
    ],
  ],
  ["status", []],
  [
    "list",
    [
      ["limit", "5"],
      ["project", '"default"'],
      ["states", '["ready","held"]'],
    ],
  ],
  ["wait", [["run", '"TICK-1-r1"']]],
  ["init", []],
  ["brief", []],
  ["note", [["text", '"noted"']]],
  [
    "verdict",
    [
      ["verdict", '"pass"'],
      ["reason", '"because"'],
      ["confidence", '"high"'],
    ],
  ],
];

const numbers =
  "0 -0 1 -1 1.5 5.0 1e2 1e-2 1e30 -1e30 1e400 -1e400 1e-400 4294967295 4294967296 9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 01 +1 .5 1. 0x10 NaN Infinity 1e 1.00000000000000000001".split(
    " ",
  );

const values = [
  ...numbers,
  "null",
  "true",
  "[]",
  "{}",
  '""',
  "[[]]",
  '{"kind":"now"}',
  '{"kind":"at","time":"25:00","local_time":7}',
  '{"kind":"every","interval_ms":-1}',
  '{"kind":"hold","kind":"auto"}',
  '"TICK-2"',
  '"TICK-1-r1"',
  '"(a+)+$"',
  '"(?=x)"',
  '"["',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '"\u2028"',
  '"../../etc/passwd"',
  '"/dev/zero"',
  '"build#99999999999999999999"',
  '"deadbeef"',
  '"__proto__"',
  '"\t"',
  "'x'",
  "undefined",
];

const keys = [
  ..."v id verb args token trigger kind ticket run ref limit tail after scope only force file text".split(" "),
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "\\ud800",
  "",
];

function deep(random: Random): string {
  const depth = 1 + random.below(random.oneIn(4) ? 200_000 : 500);
  const [open, close] = random.pick([
    ["[", "]"],
    ['{"a":', "}"],
    ['[{"kind":', "}]"],
  ] as const);
  const closed = random.oneIn(2) ? close.repeat(depth) : "";
  return `${open.repeat(depth)}0${closed}`;
}

function anyValue(random: Random): string {
  const kind = random.below(20);
  if (kind === 0) return deep(random);
  if (kind === 1) return JSON.stringify("x".repeat(random.below(20_000)));
  if (kind === 2) return JSON.stringify(String.fromCodePoint(random.below(0x110000)));
  if (kind === 3) return `1${"0".repeat(random.below(5_000))}`;
  if (kind === 4) return `0.${"0".repeat(random.below(5_000))}1`;
  return random.pick(values);
}

function bend(random: Random, members: readonly Member[]): Member[] {
  const bent = [...members];
  const at = random.below(bent.length + 1);
  const key = random.pick(keys);
  const whole = bent[at];
  switch (random.below(4)) {
    case 0:
      bent.splice(at, 1);
      break;
    case 1:
      bent.splice(at, 0, [key, anyValue(random)]);
      break;
    case 2:
      // The last of two equal keys counts.
      if (whole !== undefined) bent.push([whole[0], anyValue(random)]);
      break;
    default:
      if (whole !== undefined) bent[at] = [whole[0], anyValue(random)];
  }
  return bent;
}

function objectText(members: readonly Member[]): string {
  return `{${members.map(([key, value]) => `"${key}":${value}`).join(",")}}`;
}

/** A request of some verb; `token` is what the run's worker holds. */
function requestText(random: Random, token: string): string {
  const [verb, args] = random.pick(valid);
  const chosen = args.filter(() => !random.oneIn(4));
  const inner = random.oneIn(2) ? bend(random, chosen) : args;
  const credential = random.pick(["null", `"${token}"`, `"${token}"`, '""', `"${token.slice(1)}"`]);
  const members: Member[] = [
    ["v", "1"],
    ["id", `"f-${random.below(1000)}"`],
    ["verb", `"${verb}"`],
    ["args", objectText(inner)],
    ["token", credential],
  ];
  return objectText(random.oneIn(3) ? bend(random, members) : members);
}

function bytes(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.below(256)));
}

/** A piece cut out, another put in, anywhere: inside a string, a number, a character. */
function splice(random: Random, text: string): Buffer {
  const input = Buffer.from(text);
  const start = random.below(input.length + 1);
  const end = Math.min(input.length, start + random.below(6));
  const put = random.oneIn(2) ? bytes(random, random.below(4)) : Buffer.from(random.pick(values));
  return Buffer.concat([input.subarray(0, start), put, input.subarray(end)]);
}

/** A request whose line is about as long as a line may be, to the byte. */
function longLine(random: Random): Buffer {
  const length = limitBytes - 2 + random.below(5);
  const head = '{"v":1,"id":"long","verb":"daemon","args":{},"x":"';
  const fill = random.oneIn(3) ? "\u00e9" : "a";
  const room = length - head.length - 2;
  const text = head + fill.repeat(Math.floor(room / Buffer.byteLength(fill)));
  return Buffer.from(`${text}${"b".repeat(room - Buffer.byteLength(text) + head.length)}"}`);
}

/** The next line, without its newline; it may hold newlines of its own. */
export function nextLine(random: Random, token: string): Buffer {
  const kind = random.below(400);
  if (kind === 0) return longLine(random);
  if (kind < 10) return bytes(random, random.below(300));
  if (kind < 16) return Buffer.from(deep(random));
  if (kind < 24) return Buffer.from(anyValue(random));
  const text = requestText(random, token);
  if (kind < 60) return Buffer.from(text.slice(0, random.below(text.length)));
  return kind < 160 ? splice(random, text) : Buffer.from(text);
}

const lineEnds = ["\n", "\n", "\n", "\r\n", " \t\n", "\n\n"];

/** What one connection sends, and whether its last line lacks a newline. */
export function nextConversation(random: Random, token: string): Buffer {
  const lines: Buffer[] = [];
  for (let left = 1 + random.below(random.oneIn(30) ? 200 : 4); left > 0; left -= 1) {
    lines.push(nextLine(random, token), Buffer.from(left === 1 && random.oneIn(3) ? "" : random.pick(lineEnds)));
  }
  return Buffer.concat(lines);
}

/** The lines a connection must answer: every one that ends, the rest if there is one, none behind one that is too long. */
export function linesOf(sent: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < sent.length; ) {
    const newline = sent.indexOf(0x0a, start);
    const end = newline < 0 ? sent.length : newline + 1;
    const line = sent.subarray(start, end);
    lines.push(line);
    if (line.length > limitBytes) break;
    start = end;
  }
  return lines;
}

const ending = /"stop"|"cancel"|jsonrpc/;

/** Whether a line might end what is being fuzzed, or speak the other dialect; such a line is not sent. */
export function endsTheGame(sent: Buffer): boolean {
  const text = sent.toString("latin1");
  if (!ending.test(text)) return false;
  return /"force"|TICK-1|deadbeef|jsonrpc/.test(text);
}

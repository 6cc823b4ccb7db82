// `bun run fuzz [--socket] [--seconds N] [--seed S]`: hostile inputs at every parser, or at a daemon's sockets; any crash, hang
// or changed verdict ends it with the seed.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { decodeUtf8 } from "../src/parse/source.ts";
import { nextInput, readCorpus } from "./inputs.ts";
import { type Parser, parsers } from "./parsers.ts";
import { openRandom } from "./random.ts";

const hangMs = 50;
/** A slow reading is looked at again: the compiler or the garbage collector is no hang. */
const secondLooks = 4;

function options(): { seconds: number; seed: number; socket: boolean } {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "60" },
      seed: { type: "string" },
      socket: { type: "boolean", default: false },
    },
    strict: true,
  });
  const seconds = Number(values.seconds);
  const seed = values.seed === undefined ? crypto.getRandomValues(new Uint32Array(1))[0] : Number(values.seed);
  if (!(seconds > 0) || seed === undefined || !Number.isSafeInteger(seed) || seed < 0) {
    console.error("usage: bun run fuzz [--socket] [--seconds N] [--seed S]");
    process.exit(2);
  }
  return { seconds, seed, socket: values.socket };
}

type Reading = { verdict: string; ms: number };

function readOnce({ read }: Parser, text: string): Reading {
  // Not the clock on the wall: others use the machine too.
  const began = process.cpuUsage();
  const result = read(text);
  const { user, system } = process.cpuUsage(began);
  const ms = (user + system) / 1000;
  // Not JSON: it would not tell `undefined` from an absent key.
  return { verdict: Bun.inspect(result, { depth: 20 }), ms };
}

/** What is wrong with a parser's reading of a text; null when nothing is. */
function problemWith(parser: Parser, text: string): string | null {
  try {
    const first = readOnce(parser, text);
    const second = readOnce(parser, text);
    if (first.verdict !== second.verdict) return "its verdict changed on re-reading";
    let fastest = Math.min(first.ms, second.ms);
    for (let look = 0; fastest > hangMs && look < secondLooks; look += 1) {
      fastest = Math.min(fastest, readOnce(parser, text).ms);
    }
    return fastest > hangMs ? `it took ${fastest.toFixed(0)} ms` : null;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}

function fail(found: { parser: Parser; input: Buffer; problem: string; seed: number; count: number }): never {
  const { parser, input, problem, seed, count } = found;
  const file = join(mkdtempSync(join(tmpdir(), "sloop-fuzz-")), "input");
  writeFileSync(file, input);
  console.error(`seed ${seed}, input ${count}, parser ${parser.name}: ${problem}`);
  console.error(`input (${input.length} bytes) kept in ${file}`);
  process.exit(1);
}

function run(seconds: number, seed: number): void {
  const random = openRandom(seed);
  const corpus = readCorpus();
  const end = performance.now() + seconds * 1000;
  let count = 0;
  let undecodable = 0;
  console.log(
    `seed ${seed}, ${seconds} s, ${parsers.length} parsers, ${corpus.short.length + corpus.long.length} files to start from`,
  );
  while (performance.now() < end) {
    const input = nextInput(random, corpus);
    const parser = random.pick(parsers);
    count += 1;
    const text = decodeUtf8(input);
    // Invalid UTF-8 is refused before any parser; the same bytes read leniently are still a text.
    if (text === null) undecodable += 1;
    const problem = problemWith(parser, text ?? input.toString());
    if (problem !== null) fail({ parser, input, problem, seed, count });
  }
  console.log(`${count} inputs, ${undecodable} of them not UTF-8: no crash, no hang, no verdict that changed`);
}

const { seconds, seed, socket } = options();
if (socket) {
  const { fuzzSockets } = await import("./socket.ts");
  process.exitCode = (await fuzzSockets(seconds, seed)) ? 0 : 1;
} else run(seconds, seed);

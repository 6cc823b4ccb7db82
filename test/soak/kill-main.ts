// `bun run kills [--count N] [--seed S]`: the kill matrix; exit 1 and the seed at the first difference.

import { parseArgs } from "node:util";
import "../support/preload.ts";
import { killMatrix } from "./kills.ts";

const { values } = parseArgs({ options: { count: { type: "string" }, seed: { type: "string" } }, strict: true });
const count = Number(values.count ?? "200");
const seed = Number(values.seed ?? Date.now() % 1_000_000);
if (!Number.isInteger(count) || count < 1 || !Number.isInteger(seed)) {
  console.error("usage: bun run kills [--count N] [--seed S]");
  process.exit(2);
}
console.log(`${count} kills, seed ${seed}`);
try {
  console.log(JSON.stringify(await killMatrix({ count, seed, say: (line) => console.log(line) })));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

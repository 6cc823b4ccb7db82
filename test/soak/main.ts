// `bun run soak [--minutes N] [--seed S]`: the soak for as long as one likes; exit 1 and the seed when something is wrong.

import { parseArgs } from "node:util";
import "../support/preload.ts";
import { soak } from "./soak.ts";

const { values } = parseArgs({ options: { minutes: { type: "string" }, seed: { type: "string" } }, strict: true });
const minutes = Number(values.minutes ?? "10");
const seed = Number(values.seed ?? Date.now() % 1_000_000);
if (!(minutes > 0) || !Number.isInteger(seed)) {
  console.error("usage: bun run soak [--minutes N] [--seed S]");
  process.exit(2);
}
console.log(`soaking for ${minutes} min, seed ${seed}`);
try {
  const result = await soak({ milliseconds: minutes * 60_000, seed, say: (line) => console.log(line) });
  console.log(JSON.stringify(result));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

// A short soak and a small kill matrix in every run of the suite; `bun run soak` and `bun run kills` go on for longer.

import { expect, test } from "bun:test";
import { killMatrix } from "./kills.ts";
import { soak } from "./soak.ts";

const say = () => undefined;

test("random tickets, failures, cancels, stops and kills keep every invariant", async () => {
  const result = await soak({ milliseconds: 20_000, seed: 20_261, say });
  expect(result.runs).toBeGreaterThan(3);
  expect(result.kills).toBeGreaterThan(1);
}, 180_000);

test("a run whose daemon is killed at random instants ends like one that nobody disturbed", async () => {
  const { kills } = await killMatrix({ count: 6, seed: 7, say });
  expect(kills).toBeGreaterThanOrEqual(6);
}, 180_000);

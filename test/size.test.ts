// Files stay small enough to be read in one go: 300 lines, tests 400.

import { expect, test } from "bun:test";
import { join } from "node:path";

const root = join(import.meta.dir, "..");

async function tooLong(patterns: string[], limit: number): Promise<{ seen: number; over: string[] }> {
  const files = patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root })]);
  const over: string[] = [];
  for (const file of files) {
    const lines = (await Bun.file(join(root, file)).text()).trimEnd().split("\n").length;
    if (lines > limit) over.push(`${file}: ${lines} lines`);
  }
  return { seen: files.length, over };
}

test("source files have at most 300 lines", async () => {
  const { seen, over } = await tooLong(["src/**/*.ts", "bench/**/*.ts", "*.ts"], 300);
  expect(seen).toBeGreaterThan(80);
  expect(over).toEqual([]);
});

test("test files have at most 400 lines", async () => {
  const { seen, over } = await tooLong(["test/**/*.ts"], 400);
  expect(seen).toBeGreaterThan(20);
  expect(over).toEqual([]);
});

// The benchmark command itself: it runs and says what it found in the shape that is promised. No time is judged here.

import { expect, test } from "bun:test";
import { join } from "node:path";
import { bin, command, projectRoot } from "../support/bin.ts";

type Row = Record<string, unknown>;

const summary = { median: expect.any(Number), min: expect.any(Number), max: expect.any(Number), samples: 8 };

test("one quick bench prints its rows as JSON and leaves no file", async () => {
  const argv = [process.execPath, join(projectRoot, "bench/main.ts"), "--quick", "--only", "version", "--json"];
  const ran = await command(argv, { env: { SLOOP_BIN: await bin() } });
  expect(ran.code).toBe(0);
  const result = JSON.parse(ran.stdout) as { rows: Row[] };
  expect(result).toMatchObject({ quick: true, failures: [], bun: Bun.version });
  expect(result.rows).toHaveLength(1);
  const [row] = result.rows;
  expect(row).toEqual({
    bench: "version",
    what: "`sloop --version`, whole process",
    unit: "ms",
    measured: summary,
    rival: { what: "empty program", measured: summary },
    ratio: expect.any(Number),
    target: { of: "ratio", bound: 1.3, sense: "at most" },
    met: expect.any(Boolean),
    note: null,
  });
  expect(ran.stderr).not.toContain("written");
}, 60_000);

test("an unknown bench is refused with the names there are", async () => {
  const ran = await command([process.execPath, join(projectRoot, "bench/main.ts"), "--only", "nonsense"]);
  expect(ran.code).toBe(2);
  expect(ran.stderr).toContain("no bench is named `nonsense`");
  expect(ran.stderr).toContain("status-pipelined");
});

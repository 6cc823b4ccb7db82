// What a plain command loads: each of these modules costs milliseconds of a start that people feel (docs/decisions/0005).

import { expect, test } from "bun:test";
import { dirname, join, resolve } from "node:path";

const src = resolve(import.meta.dir, "../../src");
const statement = /^(?:import|export)\s+(?!type\b)[^;"]*?\bfrom\s+"([^"]+)"|^import\s+"([^"]+)"/gm;

/** Everything that `files` load at once, by static imports of values; packages and built-ins by name. */
async function loaded(...files: string[]): Promise<Set<string>> {
  const found = new Set<string>();
  const waiting = files.map((file) => join(src, file));
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file)) continue;
    found.add(file);
    for (const [, from, bare] of (await Bun.file(file).text()).matchAll(statement)) {
      const name = from ?? bare ?? "";
      if (name.startsWith(".")) waiting.push(resolve(dirname(file), name));
      else found.add(name);
    }
  }
  return found;
}

const packages = (found: Set<string>) => [...found].filter((name) => !name.startsWith("/")).sort();

test("help and version load next to nothing", async () => {
  expect(packages(await loaded("main.ts", "cli/main.ts"))).toEqual([]);
});

test("a request and its reply as JSON load no file system, no YAML, no help, no pages", async () => {
  const found = await loaded("main.ts", "cli/main.ts", "cli/run.ts", "cli/operator.ts");
  expect(packages(found)).toEqual(["node:path"]);
  const ours = [...found].filter((name) => name.startsWith("/")).map((name) => name.slice(src.length + 1));
  expect(ours.length).toBeGreaterThan(15);
  expect(ours.filter((name) => /^(daemon|store|verbs|server|supervisor|git)\//.test(name))).toEqual([]);
  expect(
    ours.filter((name) => /^cli\/(help|manual|topics|render|detail|dashboard|hint|failure|worker)/.test(name)),
  ).toEqual([]);
});

// Replacing a file under somebody's hands: edits at every moment of it, and names that cannot be replaced.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exchangeNames } from "../../src/system/libc.ts";
import {
  dropReplacement,
  leftBy,
  type Prepared,
  prepareReplacement,
  replaceUnchanged,
  syncPrepared,
} from "../../src/system/rewrite.ts";

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "sloop-rewrite-"));
  file = join(directory, "one.md");
  writeFileSync(file, "old");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const text = () => readFileSync(file, "utf8");
const names = () => readdirSync(directory);
const isOld = (bytes: Uint8Array) => Buffer.from(bytes).toString() === "old";

const saves: [how: string, save: (text: string) => void][] = [
  ["in place", (edit) => writeFileSync(file, edit)],
  [
    "by renaming",
    (edit) => {
      writeFileSync(`${file}.swp`, edit);
      renameSync(`${file}.swp`, file);
    },
  ],
];

/** Replaces the file; `moments[n]` happens right after the n-th time its text was looked at. */
function replaceWhile(next: Prepared, moments: (() => void)[]): "replaced" | "changed" {
  let looked = 0;
  return replaceUnchanged(next, (bytes) => {
    const result = isOld(bytes);
    moments[looked]?.();
    looked += 1;
    return result;
  });
}

test("replaces, keeps the permission bits, leaves nothing", () => {
  chmodSync(file, 0o604);
  const next = prepareReplacement(file, "new");
  expect(text()).toBe("old");
  expect(replaceUnchanged(next, isOld)).toBe("replaced");
  expect([text(), statSync(file).mode & 0o7777, names()]).toEqual(["new", 0o604, ["one.md"]]);
});

describe.each(saves)("an edit saved %s", (_how, save) => {
  test("before it was looked at", () => {
    const next = prepareReplacement(file, "new");
    save("edit");
    expect(replaceUnchanged(next, isOld)).toBe("changed");
    expect([text(), names()]).toEqual(["edit", ["one.md"]]);
  });

  test("between the look and the exchange", () => {
    const next = prepareReplacement(file, "new");
    expect(replaceWhile(next, [() => save("edit")])).toBe("changed");
    expect([text(), names()]).toEqual(["edit", ["one.md"]]);
  });

  test("and another over our text, before the first could be given back", () => {
    const next = prepareReplacement(file, "new");
    expect(replaceWhile(next, [() => save("edit"), () => save("newer edit")])).toBe("changed");
    expect([text(), names()]).toEqual(["newer edit", ["one.md"]]);
  });

  test("over our text once it is in place", () => {
    const next = prepareReplacement(file, "new");
    expect(replaceWhile(next, [() => undefined, () => save("edit")])).toBe("replaced");
    expect([text(), names()]).toEqual(["edit", ["one.md"]]);
  });
});

describe("a name that cannot be replaced", () => {
  test("a directory took it: it stays", () => {
    const next = prepareReplacement(file, "new");
    const swap = () => {
      rmSync(file);
      mkdirSync(file);
    };
    expect(replaceWhile(next, [swap])).toBe("changed");
    expect([statSync(file).isDirectory(), names()]).toEqual([true, ["one.md"]]);
  });

  test("it is gone: it stays gone", () => {
    const next = prepareReplacement(file, "new");
    rmSync(file);
    expect(replaceUnchanged(next, isOld)).toBe("changed");
    expect(names()).toEqual([]);
  });

  test("the prepared text is gone: an error, and the file as it was", () => {
    const next = prepareReplacement(file, "new");
    dropReplacement(next);
    expect(() => replaceUnchanged(next, isOld)).toThrow("ENOENT");
    expect([text(), names()]).toEqual(["old", ["one.md"]]);
  });
});

test("several are brought to the disk at once", async () => {
  const all = Array.from({ length: 100 }, (_, index) => {
    const path = join(directory, `${index}.md`);
    writeFileSync(path, "old");
    return prepareReplacement(path, "new", false);
  });
  await syncPrepared(all);
  for (const next of all) dropReplacement(next);
  expect(names()).toHaveLength(101);
  await expect(syncPrepared(all.slice(0, 3))).rejects.toThrow("ENOENT");
});

test("a prepared text says by its name whose it is", () => {
  const next = prepareReplacement(file, "new");
  expect(leftBy(next.temporary)).toBe(process.pid);
  dropReplacement(next);
  expect([leftBy(file), leftBy(join(directory, ".one.md.tmp"))]).toEqual([null, null]);
});

test("two names are exchanged, or nothing happens", () => {
  writeFileSync(join(directory, "two"), "two");
  expect(exchangeNames(file, join(directory, "two"))).toBe(true);
  expect(text()).toBe("two");
  expect(exchangeNames(file, join(directory, "absent"))).toBe(false);
  expect([text(), existsSync(join(directory, "absent"))]).toEqual(["two", false]);
});

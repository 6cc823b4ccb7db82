// Files are on the disk when `syncFiles` says so, whether the system can write out whole file systems or not.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { syncFiles } from "../../src/system/sync.ts";

let directory: string;
const searched = process.env["PATH"];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "sloop-sync-"));
});
afterEach(() => {
  process.env["PATH"] = searched;
  rmSync(directory, { recursive: true, force: true });
});

function files(count: number): string[] {
  mkdirSync(join(directory, "more"));
  return Array.from({ length: count }, (_, n) => {
    const path = join(directory, n % 2 === 0 ? "." : "more", `${n}.txt`);
    writeFileSync(path, String(n));
    return path;
  });
}

/** Makes `sync` a script that says what it was asked, and ends with `code`. */
function insteadOfSync(code: number): () => Promise<string> {
  const bin = join(directory, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "sync"), `#!/bin/sh\necho "$@" > '${directory}/asked'\nexit ${code}\n`);
  chmodSync(join(bin, "sync"), 0o755);
  process.env["PATH"] = bin;
  return async () =>
    (await Bun.file(join(directory, "asked")).exists()) ? Bun.file(join(directory, "asked")).text() : "";
}

const missing = () => join(directory, "missing.txt");

test("few files one after another, without any program", async () => {
  const asked = insteadOfSync(0);
  await syncFiles(files(63));
  expect(await asked()).toBe("");
  await expect(syncFiles([missing()])).rejects.toThrow("missing.txt");
});

describe("many files", () => {
  test("as the system does it", async () => {
    await syncFiles(files(200));
  });

  test("each file system once, by one of its directories", async () => {
    const asked = insteadOfSync(0);
    await syncFiles(files(64));
    expect(await asked()).toMatch(process.platform === "linux" ? /^-f -- \S+\n$/ : /^$/);
  });

  test("one after another where there is no such program, or it fails", async () => {
    const all = files(64);
    process.env["PATH"] = join(directory, "nothing-here");
    await syncFiles(all);
    await expect(syncFiles([...all, missing()])).rejects.toThrow("missing.txt");
    insteadOfSync(1);
    await syncFiles(all);
    await expect(syncFiles([...all, missing()])).rejects.toThrow("missing.txt");
  });
});

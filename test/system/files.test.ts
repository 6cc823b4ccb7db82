// Files replaced whole, private directories, child environments and the operational log.

import { expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { childEnvironment, gitLocalVariables } from "../../src/system/environment.ts";
import { fileSource, privateDirectory, readIfPresent, writeAtomic } from "../../src/system/files.ts";
import { openLog, silentLog } from "../../src/system/log.ts";

function scratch(): { dir: string } & Disposable {
  const dir = mkdtempSync(join(tmpdir(), "sloop-files-"));
  return { dir, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}

test("a missing file is null, a directory in its place an error", () => {
  using place = scratch();
  expect(readIfPresent(join(place.dir, "no"))).toBeNull();
  writeFileSync(join(place.dir, "file"), "x");
  expect(readIfPresent(join(place.dir, "file/below"))).toBeNull();
  expect(() => readIfPresent(place.dir)).toThrow();
  expect(fileSource.list(place.dir)).toEqual(["file"]);
  expect(fileSource.list(join(place.dir, "no"))).toBeNull();
});

test("a file is replaced whole, with the mode asked for, and nothing is left beside it", () => {
  using place = scratch();
  const path = join(place.dir, "ümlaut name");
  writeAtomic(path, "one", { mode: 0o600, sync: true });
  writeAtomic(path, new Uint8Array([0xff, 0x00]), { mode: 0o600 });
  expect([...readFileSync(path)]).toEqual([0xff, 0x00]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(place.dir)).toEqual(["ümlaut name"]);
});

test("a failed replacement leaves the old file and no temporary one", () => {
  using place = scratch();
  mkdirSync(join(place.dir, "target"));
  expect(() => writeAtomic(join(place.dir, "target"), "x")).toThrow();
  expect(readdirSync(place.dir)).toEqual(["target"]);
});

test("a private directory is 0700 whatever it was, and must be a directory", () => {
  using place = scratch();
  const path = join(place.dir, "a/b");
  privateDirectory(path);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  chmodSync(path, 0o755);
  privateDirectory(path);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  writeFileSync(join(place.dir, "file"), "");
  expect(() => privateDirectory(join(place.dir, "file"))).toThrow();
});

test("a directory or link of somebody else is refused", () => {
  if (process.geteuid?.() !== 0) return;
  using place = scratch();
  const foreign = join(place.dir, "foreign");
  mkdirSync(foreign);
  Bun.spawnSync(["chown", "65534", foreign]);
  expect(() => privateDirectory(foreign)).toThrow("another user");
  const own = join(place.dir, "own");
  mkdirSync(own);
  symlinkSync(own, join(place.dir, "link"));
  Bun.spawnSync(["chown", "-h", "65534", join(place.dir, "link")]);
  expect(() => privateDirectory(join(place.dir, "link"))).toThrow("another user");
});

test("a child never sees what ties it to another daemon, another program mode or a hook's repository", () => {
  const asked = Bun.spawnSync(["git", "rev-parse", "--local-env-vars"]).stdout.toString().trim().split("\n");
  expect(asked.filter((name) => !gitLocalVariables.includes(name))).toEqual([]);
  const base = Object.fromEntries(
    [...asked, "SLOOP_REMOTE_TOKEN", "BUN_OPTIONS", "BUN_BE_BUN"].map((name) => [name, "x"]),
  );
  const made = childEnvironment(
    { ...base, KEEP: "1", SLOOP_TOKEN: "t", GONE: undefined, EMPTY: "" },
    { add: { NEW: "2", KEEP: "3" }, remove: ["SLOOP_TOKEN"] },
  );
  expect(made).toEqual({ KEEP: "3", EMPTY: "", NEW: "2" });
});

test("an event is one JSON line, in the file before the call returns", () => {
  using place = scratch();
  const path = join(place.dir, "daemon.ndjson");
  const log = openLog(path);
  log.info("sloop::daemon", "daemon_started");
  log.warn("sloop::driver", "stragglers_killed", { run_id: "a", n: 2 });
  const lines = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines[0]).toEqual({
    timestamp: expect.stringMatching(/Z$/),
    level: "info",
    target: "sloop::daemon",
    event: "daemon_started",
  });
  expect(Object.keys(lines[1])).toEqual(["timestamp", "level", "target", "event", "fields"]);
  expect(lines[1]).toMatchObject({ level: "warn", fields: { run_id: "a", n: 2 } });
  log.close();
  log.error("sloop::daemon", "after_close");
  expect(readFileSync(path, "utf8").trimEnd().split("\n")).toHaveLength(2);
});

test("a line torn by a crash is ended before the next one is written", () => {
  using place = scratch();
  const path = join(place.dir, "daemon.ndjson");
  appendFileSync(path, '{"timestamp":"2026');
  const log = openLog(path);
  log.info("sloop::daemon", "daemon_started");
  log.close();
  const lines = readFileSync(path, "utf8").split("\n");
  expect(lines[0]).toBe('{"timestamp":"2026');
  expect(JSON.parse(lines[1] ?? "")).toMatchObject({ event: "daemon_started" });
});

test("a log that cannot be written to disturbs nobody", () => {
  if (!existsSync("/dev/full")) return;
  const log = openLog("/dev/full");
  log.error("sloop::daemon", "storage_full");
  log.close();
  silentLog.info("sloop::daemon", "x");
});

// The daemon's clock and the pause points of tests.

import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openClock, waitUntil } from "../../src/system/clock.ts";
import { openHooks } from "../../src/system/hooks.ts";
import { until } from "../support/until.ts";

function scratch(): { dir: string } & Disposable {
  const dir = mkdtempSync(join(tmpdir(), "sloop-clock-"));
  return { dir, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}

test("without a file the system's clock is read", () => {
  const before = Date.now();
  const now = openClock({}).now();
  expect(now).toBeGreaterThanOrEqual(before);
  expect(now).toBeLessThanOrEqual(Date.now());
});

test("a clock file is read anew at every use, keeps its last good value, and is 0 before the first", () => {
  using place = scratch();
  const file = join(place.dir, "clock");
  const clock = openClock({ SLOOP_TEST_CLOCK_PATH: file });
  expect(clock.now()).toBe(0);
  writeFileSync(file, "\n  1700000000000 \n");
  expect(clock.now()).toBe(1_700_000_000_000);
  for (const half of ["", "17000x", "1e3", "99999999999999999999"]) {
    writeFileSync(file, half);
    expect(clock.now()).toBe(1_700_000_000_000);
  }
  rmSync(file);
  expect(clock.now()).toBe(1_700_000_000_000);
  writeFileSync(file, "5");
  expect(clock.now()).toBe(5);
});

test("a wait on a clock file ends when the file says so, not before", async () => {
  using place = scratch();
  const file = join(place.dir, "clock");
  writeFileSync(file, "1000");
  const clock = openClock({ SLOOP_TEST_CLOCK_PATH: file });
  let over = false;
  const wait = waitUntil(clock, 2000, new AbortController().signal).then(() => {
    over = true;
  });
  writeFileSync(file, "1999");
  let looks = 0;
  const counting = { pollMs: 1, now: () => (looks++ < 5 ? 0 : 10) };
  await waitUntil(counting, 10, new AbortController().signal);
  expect(over).toBe(false);
  writeFileSync(file, "2000");
  await wait;
  expect(over).toBe(true);
});

test("an aborted wait ends at once, however far the instant", async () => {
  const stop = new AbortController();
  const wait = waitUntil({ now: () => 0 }, Number.MAX_SAFE_INTEGER, stop.signal);
  stop.abort();
  await wait;
  await waitUntil({ now: () => 0 }, 1, stop.signal);
});

test("an instant in the past is no wait", async () => {
  await waitUntil({ now: () => 10 }, 10, new AbortController().signal);
});

test("a hook holds only where it is armed, until it is released", async () => {
  using place = scratch();
  const hook = openHooks({ SLOOP_TEST_HOOK_DIR: place.dir });
  await hook("after-stage-build");
  expect(existsSync(join(place.dir, "after-stage-build.reached"))).toBe(false);
  writeFileSync(join(place.dir, "after-stage-build.armed"), "");
  let passed = false;
  const held = hook("after-stage-build").then(() => {
    passed = true;
  });
  await until(() => existsSync(join(place.dir, "after-stage-build.reached")));
  expect(passed).toBe(false);
  writeFileSync(join(place.dir, "after-stage-build.release"), "");
  await held;
  rmSync(join(place.dir, "after-stage-build.reached"));
  await hook("after-stage-build");
  expect(existsSync(join(place.dir, "after-stage-build.reached"))).toBe(true);
});

test("a hook whose sign cannot be written, or without a directory, does not hold", async () => {
  await openHooks({})("anything");
  await openHooks({ SLOOP_TEST_HOOK_DIR: "" })("anything");
  await openHooks({ SLOOP_TEST_HOOK_DIR: "/nonexistent/folder" })("anything");
  using place = scratch();
  writeFileSync(join(place.dir, "x.armed"), "");
  writeFileSync(join(place.dir, "x.release"), "");
  await openHooks({ SLOOP_TEST_HOOK_DIR: place.dir })("x");
});

// One merge at a time, and whoever does not want to merge any more does not wait for the others.

import { expect, test } from "bun:test";
import { openQueueLock } from "../../src/daemon/merge-lock.ts";

test("bodies run one after the other, in order, also after one that failed", async () => {
  const lock = openQueueLock();
  const seen: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const first = lock.run(async () => {
    await promise;
    seen.push("first");
    throw new Error("no");
  });
  const second = lock.run(async () => {
    seen.push("second");
    return 2;
  });
  resolve();
  await expect(first).rejects.toThrow("no");
  expect(await second).toBe(2);
  expect(seen).toEqual(["first", "second"]);
});

test("a wait that is not wanted any more ends, and its body never runs", async () => {
  const lock = openQueueLock();
  const { promise, resolve } = Promise.withResolvers<void>();
  const holder = lock.run(() => promise);
  let ran = false;
  const waiting = lock.run(
    async () => {
      ran = true;
    },
    () => {
      throw new Error("cancelled");
    },
  );
  await expect(waiting).rejects.toThrow("cancelled");
  resolve();
  await holder;
  expect(await lock.run(async () => "next")).toBe("next");
  expect(ran).toBe(false);
});

// protocol.md 2: the thirty seconds of a connection that never produces a line; alone in its file, for they are real ones.

import { expect, setDefaultTimeout, test } from "bun:test";
import { rawClient } from "../../support/socket.ts";
import { openStage } from "./stage.ts";

setDefaultTimeout(120_000);

test("2 idle connection: without a full line for 30 s it is closed without a reply", async () => {
  await using stage = await openStage({ paused: true });
  const { path } = stage.wire;
  const begun = performance.now();
  using silent = await rawClient(path);
  using half = await rawClient(path);
  half.send('{"v":1,"id":"');
  const dripping = setInterval(() => half.send("x"), 500);
  try {
    await silent.untilClosed(90_000);
    await half.untilClosed(90_000);
  } finally {
    clearInterval(dripping);
  }
  expect(performance.now() - begun).toBeGreaterThan(29_900);
  expect([...silent.lines, ...half.lines]).toEqual([]);
});

// Silence of an agent across daemons, on the steered clock: warned about once, never measured anew, ended in the end.

import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { newScene } from "../support/scene.ts";
import { until } from "../support/until.ts";

const minute = 60_000;
const start = 1_803_873_600_000;

test("one warning per silence, also over a restart; output begins a new one; two hours end the agent", async () => {
  const agent = `echo one; echo run >> "$COUNT/agent"; while [ ! -e "$COUNT/go" ]; do sleep 0.02; done; echo two; echo run >> "$COUNT/agent"; sleep 300`;
  await using scene = await newScene({ agent, config: "scheduler: { cancel_grace: 1s }" });
  const clock = join(scene.dir, "clock");
  const setNow = (ms: number) => writeFileSync(clock, String(ms));
  setNow(start);
  scene.env["SLOOP_TEST_CLOCK_PATH"] = clock;
  const warnings = () => scene.events().filter((line) => line.event === "run_output_stalled");
  const silentFor = async () =>
    ((await scene.value("TICK-1-r1"))["stages"] as { silent_for_ms: number | null }[])[0]!.silent_for_ms;

  await scene.post("first");
  await until(() => scene.count("agent") === 1, "the agent");
  await until(() => scene.query<{ state: string }>("select state from runs")[0]?.state === "running", "the checkpoint");
  // The clock stands until it was captured: a record carries the instant of its capture.
  const captured = () => scene.records(scene.query<{ id: string }>("select id from runs")[0]!.id).length;
  await until(() => captured() === 1, "the first line to be captured");
  setNow(start + 10 * minute - 1);
  expect(await silentFor()).toBeNull();
  setNow(start + 12 * minute);
  await until(() => warnings().length === 1, "the warning");
  expect(warnings()[0]!.fields).toMatchObject({ stage: "build", silent_for_ms: 12 * minute, last_output_sequence: 1 });
  expect(await silentFor()).toBe(12 * minute);
  expect((await scene.sloop(["show", "TICK-1-r1"])).stdout).toContain("(no output 12m0s)");

  await scene.killDaemon();
  setNow(start + 13 * minute);
  await until(async () => (await silentFor()) === 13 * minute, "the silence to be known again");
  expect(warnings()).toHaveLength(1);

  await Bun.write(join(scene.outside, "go"), "");
  await until(() => captured() === 2, "the second line to be captured");
  await until(async () => (await silentFor()) === null, "the silence to be over");
  setNow(start + 24 * minute);
  await until(() => warnings().length === 2, "the second warning");

  await scene.killDaemon();
  setNow(start + 13 * minute + 120 * minute);
  expect(await scene.wait("TICK-1-r1")).toBe(1);
  expect(await scene.value("TICK-1-r1")).toMatchObject({ state: "failed", reason: "stalled: no output for 2h" });
  expect(warnings()).toHaveLength(2);
}, 60_000);

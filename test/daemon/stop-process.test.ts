// No process is ever signalled but the one that was recorded (engine.md 14.1, 16.1, invariant 26).

import { afterEach, beforeEach, expect, test } from "bun:test";
import { stopRecordedProcess } from "../../src/daemon/stop-process.ts";
import { requestCancel, storeStageProcess, storeStall } from "../../src/store/evidence.ts";
import { processAlive, processStart, signalGroup } from "../../src/system/process.ts";
import { openContext, startMs, type TestDaemon } from "../support/context.ts";
import { addRun, addTicket } from "../support/rows.ts";

const runId = "a".repeat(32);
let daemon: TestDaemon;
let bystander: Bun.Subprocess;

beforeEach(async () => {
  daemon = await openContext({ cancelGraceMs: 50 });
  bystander = Bun.spawn(["sleep", "600"], { detached: true });
  addTicket(daemon, "TICK-1", { state: "claimed" });
});
afterEach(async () => {
  if (processAlive(bystander.pid)) signalGroup(bystander.pid, "SIGKILL");
  await bystander.exited;
  daemon[Symbol.dispose]();
});

type Recorded = { start?: number | null; group?: number; state?: "running" | "driving" };

function record({ start = processStart(bystander.pid), group = bystander.pid, state = "driving" }: Recorded): void {
  const { pid } = bystander;
  addRun(daemon, runId, { ticketId: "TICK-1", state, pid, pidStartTime: start, processGroupId: group });
  if (state === "running") return;
  const process = { stage: "test", attempt: 1, pid, pid_start_time: start, process_group_id: group };
  daemon.store.write((tx) => storeStageProcess(tx, runId, { ...process, phase: "action" }, startMs));
}

const refused: [what: string, recorded: Recorded, wish: "cancel" | "stall", event: string][] = [
  ["whose pid was given to another", { start: 1 }, "cancel", "sloop::driver stale_stage_group_not_signalled"],
  ["that cannot be told apart", { start: null }, "cancel", "sloop::driver stage_cancel_signal_refused"],
  ["that leads no group", { group: 1 }, "cancel", "sloop::driver stage_cancel_signal_refused"],
  ["of an agent", { start: null, state: "running" }, "cancel", "sloop::driver agent_cancel_signal_refused"],
  ["of a silent agent", { start: null, state: "running" }, "stall", "sloop::dispatcher output_stall_signal_refused"],
];

test.each(refused)("a process %s is left alone, and the log says so", async (_what, recorded, wish, event) => {
  record(recorded);
  const stall = { stage: "build", last_output_at_ms: 1, threshold_ms: 1, last_output_sequence: null };
  if (wish === "stall") daemon.store.write((tx) => storeStall(tx, runId, stall, startMs));
  else daemon.store.write((tx) => requestCancel(tx, runId, startMs));
  expect(await stopRecordedProcess(daemon, runId)).toBe(false);
  expect(daemon.logged).toEqual([`warn ${event}`]);
  expect(processAlive(bystander.pid)).toBe(true);
});

test("one that matches is ended with its group", async () => {
  record({});
  expect(await stopRecordedProcess(daemon, runId)).toBe(true);
  expect(processAlive(bystander.pid)).toBe(false);
  expect(daemon.logged).toEqual([]);
});

test("a run that stands on none signals nobody", async () => {
  addRun(daemon, runId, { ticketId: "TICK-1", state: "driving" });
  expect(await stopRecordedProcess(daemon, runId)).toBe(false);
  expect(processAlive(bystander.pid)).toBe(true);
});

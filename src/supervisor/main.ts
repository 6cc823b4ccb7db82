// The hidden mode of the program that outlives the daemon: one stage process, watched to its end (engine.md 10.4).

import { writeSync } from "node:fs";
import { type Clock, openClock } from "../system/clock.ts";
import { OutputLog } from "../system/output.ts";
import { signalGroup, stopGroup } from "../system/process.ts";
import type { ChannelEvent, Greeting, SpawnFacts, SupervisorRequest } from "../system/stage-process.ts";
import { trimCode } from "../system/trim.ts";
import { watchAttendance } from "./attendance.ts";
import { startCapture } from "./capture.ts";
import { Channel, type ChannelOrder } from "./channel.ts";
import { type Command, endStragglers, startCommand } from "./command.ts";
import { noticeOutput } from "./notice.ts";
import { claimExecution, claimHeld, completeClaim, storeExitRecord, withdrawClaim } from "./record.ts";
import { readRequest } from "./request.ts";

const drainMs = 5000;
/** A command that lives longer than this will probably live long. */
const trimAfterMs = 500;

/** What a supervisor holds once everything but the command is ready. */
type Post = { request: SupervisorRequest; clock: Clock; log: OutputLog; channel: Channel };

type ExitedEvent = Extract<ChannelEvent, { type: "exited" }>;

/** The command, as soon as there is one, and its end; the channel may be taken earlier, or later. */
type Held = { command: Command | null; facts: SpawnFacts | null; exited: ExitedEvent | null };

function greet(greeting: Greeting): void {
  try {
    writeSync(1, `${JSON.stringify(greeting)}\n`);
  } catch {
    // The daemon died in this very moment, which is noticed soon enough.
  }
}

function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function obey(command: Command, order: ChannelOrder): void {
  switch (order.type) {
    case "gate":
      command.gate.open();
      return;
    case "terminate":
      void stopGroup(command.pid, order.grace_ms);
      return;
    case "kill":
      signalGroup(command.pid, "SIGKILL");
      return;
  }
}

/** Everything that can fail before the command is spawned; when it does, no record is left. */
function takePost(request: SupervisorRequest, held: Held): Post {
  claimExecution(request.startRecord);
  try {
    const log = OutputLog.open(request.outputLog, request.labels);
    const channel: Channel = new Channel(request.channel, {
      onAttach: () => {
        if (held.facts !== null) channel.send({ type: "spawned", ...held.facts });
        if (held.exited !== null) channel.send(held.exited);
      },
      onCommand: (order) => {
        if (held.command !== null) obey(held.command, order);
      },
      onDetach: () => held.command?.gate.refuse(),
    });
    return { request, clock: openClock(process.env), log, channel };
  } catch (error) {
    withdrawClaim(request.startRecord);
    throw error;
  }
}

function spawnFacts(command: Command, startedAtMs: number): SpawnFacts {
  return {
    pid: command.pid,
    pid_start_time: command.startTime,
    process_group_id: command.pid,
    started_at_ms: startedAtMs,
  };
}

/** How long a failure is left standing for a daemon to hear of it. */
const heardMs = 300;

async function begin(post: Post, held: Held): Promise<void> {
  const startedAtMs = post.clock.now();
  // We may have been stopped for so long that a daemon gave us up, and somebody else has the execution.
  if (!claimHeld(post.request.startRecord)) return;
  try {
    held.command = startCommand(post.request);
  } catch (error) {
    withdrawClaim(post.request.startRecord);
    post.channel.send({ type: "failed", problem: problemOf(error) });
    // A connection that is closed at once may not even have been reported to who made it.
    await Bun.sleep(heardMs);
    return;
  }
  const facts = spawnFacts(held.command, startedAtMs);
  held.facts = facts;
  post.channel.send({ type: "spawned", ...facts });
  // A daemon that left before there was a gate to refuse will not open it either.
  if (!post.channel.attached) held.command.gate.refuse();
  // The channel writes at the end of this turn; the record comes after it.
  await Promise.resolve();
  completeClaim(post.request.startRecord, facts);
}

/** From the spawn to the last byte of output; null when the gate was refused, for then nothing ever ran. */
async function observe(post: Post, command: Command, facts: SpawnFacts): Promise<ExitedEvent | null> {
  const { request, clock, log, channel } = post;
  let lastAtMs = facts.started_at_ms;
  const notices = noticeOutput(() => channel.send({ type: "output", sequence: log.lastSequence, at_ms: lastAtMs }));
  const onOutput = () => {
    lastAtMs = clock.now();
    notices.note();
  };
  const { stdout, stderr } = command;
  const capture = startCapture({ log, clock, stdout, stderr, onOutput });
  const trimming = setTimeout(trimCode, trimAfterMs);
  const { code, signal } = await command.exited;
  clearTimeout(trimming);
  const finishedAtMs = clock.now();
  const attendance = watchAttendance(channel, signal !== null);
  const stragglers = await endStragglers(command.pid, request.runId);
  const attended = await attendance;
  if (command.gate.state === "refused") return null;
  const holders = await capture.drain(drainMs);
  notices.stop();
  log.sync();
  const record = {
    ...facts,
    exit_code: signal === null ? code : null,
    signal,
    finished_at_ms: finishedAtMs,
    capture_complete: log.complete,
    stragglers_killed: stragglers,
    last_sequence: log.lastSequence,
    attended,
  };
  return { type: "exited", record, holders };
}

/** From the spawn to the exit record. */
async function watch(post: Post, command: Command, held: Held): Promise<void> {
  const { request, channel } = post;
  if (held.facts === null) return;
  held.exited = await observe(post, command, held.facts);
  if (held.exited === null) {
    withdrawClaim(request.startRecord);
    return;
  }
  // Told before it is written: a full disk must not keep the end from a daemon that is there, or comes while we try.
  channel.send(held.exited);
  // The channel writes at the end of this turn.
  await Promise.resolve();
  await storeExitRecord(request, held.exited.record);
}

/** A signal to everybody, as at a shutdown, ends the command; we stay to write down how. */
function outliveSignals(): void {
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, () => undefined);
}

const longestWaitMs = 30_000;
const lookMs = 20;

/** Whether a daemon took the channel; false once who started us is gone, or never comes. */
async function awaitDaemon({ channel, request }: Post): Promise<boolean> {
  const until = performance.now() + longestWaitMs;
  while (!channel.taken) {
    if (process.ppid !== request.starter || performance.now() > until) return false;
    await Promise.race([channel.firstTaken, Bun.sleep(lookMs)]);
  }
  return true;
}

async function supervise(post: Post, held: Held): Promise<void> {
  if (!(await awaitDaemon(post))) {
    // Nothing was spawned, so nothing has to be told.
    withdrawClaim(post.request.startRecord);
    return;
  }
  await begin(post, held);
  if (held.command !== null) await watch(post, held.command, held);
}

/** Reads its request on standard input and carries it out. Resolves to the exit code; the caller exits with it. */
export async function superviseMain(): Promise<number> {
  const request = await readRequest();
  if (request === null) {
    greet({ type: "failed", problem: "no request on standard input" });
    return 2;
  }
  outliveSignals();
  const held: Held = { command: null, facts: null, exited: null };
  let post: Post;
  try {
    post = takePost(request, held);
  } catch (error) {
    greet({ type: "failed", problem: problemOf(error) });
    return 1;
  }
  greet({ type: "ready" });
  try {
    await supervise(post, held);
    return 0;
  } catch (error) {
    // Nobody would watch the command any more, so it must not go on.
    if (held.command !== null) signalGroup(held.command.pid, "SIGKILL");
    post.channel.send({ type: "failed", problem: problemOf(error) });
    return 1;
  } finally {
    await post.channel.close();
  }
}

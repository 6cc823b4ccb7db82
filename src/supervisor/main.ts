// The hidden mode of the program that outlives the daemon: one stage process, watched to its end (engine.md 10.4).

import { mkdirSync, writeFileSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { type Clock, openClock } from "../system/clock.ts";
import { removeIfPresent, systemCode, writeAtomic } from "../system/files.ts";
import { OutputLog } from "../system/output.ts";
import { processStart, signalGroup, stopGroup } from "../system/process.ts";
import type { ChannelCommand, ExitRecord, Greeting, SpawnFacts, SupervisorRequest } from "../system/stage-process.ts";
import { startCapture } from "./capture.ts";
import { Channel } from "./channel.ts";
import { type Command, endStragglers, startCommand } from "./command.ts";
import { noticeOutput } from "./notice.ts";
import { readRequest } from "./request.ts";
import { trimCode } from "./trim.ts";

const drainMs = 5000;
/** A command that lives longer than this will probably live long. */
const trimAfterMs = 500;

/** What a supervisor holds once everything but the command is ready. */
type Post = { request: SupervisorRequest; clock: Clock; log: OutputLog; channel: Channel };

/** The command, as soon as there is one; the channel may hear of it earlier. */
type Held = { command: Command | null; facts: SpawnFacts | null };

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

const ownRecord = () => ({ supervisor_pid: process.pid, supervisor_start_time: processStart(process.pid) });

/** Claims the execution: whoever finds the record there already must not start it again. */
function claimExecution(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  try {
    writeFileSync(path, `${JSON.stringify(ownRecord())}\n`, { flag: "wx" });
  } catch (error) {
    if (systemCode(error) === "EEXIST") throw new Error(`this execution was started before: ${path} exists`);
    throw error;
  }
}

function obey(command: Command, order: ChannelCommand): void {
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
      },
      onCommand: (order) => {
        if (held.command !== null) obey(held.command, order);
      },
      onDetach: () => held.command?.gate.refuse(),
    });
    return { request, clock: openClock(process.env), log, channel };
  } catch (error) {
    removeIfPresent(request.startRecord);
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

async function begin(post: Post, held: Held): Promise<SpawnFacts | null> {
  const startedAtMs = post.clock.now();
  try {
    held.command = startCommand(post.request);
  } catch (error) {
    removeIfPresent(post.request.startRecord);
    post.channel.send({ type: "failed", problem: problemOf(error) });
    return null;
  }
  const facts = spawnFacts(held.command, startedAtMs);
  held.facts = facts;
  post.channel.send({ type: "spawned", ...facts });
  // A daemon that left before there was a gate to refuse will not open it either.
  if (!post.channel.attached) held.command.gate.refuse();
  // The channel writes at the end of this turn; the record comes after it.
  await Promise.resolve();
  writeAtomic(post.request.startRecord, `${JSON.stringify({ ...ownRecord(), ...facts })}\n`);
  return facts;
}

/** From the spawn to the exit record. */
async function watch(post: Post, command: Command, facts: SpawnFacts): Promise<void> {
  const { request, clock, log, channel } = post;
  const notices = noticeOutput(() => channel.send({ type: "output", sequence: log.lastSequence }));
  const { stdout, stderr } = command;
  const capture = startCapture({ log, clock, stdout, stderr, onOutput: notices.note });
  const trimming = setTimeout(trimCode, trimAfterMs);
  const { code, signal } = await command.exited;
  clearTimeout(trimming);
  const finishedAtMs = clock.now();
  const attended = await channel.attachedNow();
  const stragglers = await endStragglers(command.pid, request.runId);
  if (command.gate.state === "refused") {
    removeIfPresent(request.startRecord);
    return;
  }
  const holders = await capture.drain(drainMs);
  notices.stop();
  log.sync();
  const record: ExitRecord = {
    ...facts,
    exit_code: signal === null ? code : null,
    signal,
    finished_at_ms: finishedAtMs,
    capture_complete: log.complete,
    stragglers_killed: stragglers,
    last_sequence: log.lastSequence,
    attended,
  };
  writeAtomic(request.exitRecord, `${JSON.stringify(record)}\n`, { sync: "data" });
  channel.send({ type: "exited", record, holders });
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
    removeIfPresent(post.request.startRecord);
    return;
  }
  const facts = await begin(post, held);
  if (facts !== null && held.command !== null) await watch(post, held.command, facts);
}

/** Reads its request on standard input and carries it out. Resolves to the exit code; the caller exits with it. */
export async function superviseMain(): Promise<number> {
  const request = await readRequest();
  if (request === null) {
    greet({ type: "failed", problem: "no request on standard input" });
    return 2;
  }
  outliveSignals();
  const held: Held = { command: null, facts: null };
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

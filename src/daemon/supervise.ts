// Starting the supervisor of a stage process, and taking up one that an earlier daemon started.

import { dirname } from "node:path";
import { privateDirectory, removeIfPresent } from "../system/files.ts";
import { LineReader } from "../system/lines.ts";
import { identify, processAlive, stopDescendants } from "../system/process.ts";
import {
  parseFields,
  readStartRecord,
  type StageProcess,
  type SupervisorRequest,
  superviseWord,
} from "../system/stage-process.ts";
import { type ChannelClient, ChannelLine, type Exited } from "./channel-client.ts";
import {
  awaitRecord,
  type Ending,
  exitFacts,
  lookMs,
  matchingRecord,
  recordWaitMs,
  type Spawned,
  spawnedFrom,
} from "./ending.ts";
import { openGivingUp, supervisorLives } from "./give-up.ts";

/** A stage process somebody watches. What is sent to a supervisor that is gone is dropped. */
export type Supervised = Spawned & {
  /** Lets a gated command run. */
  gate(): void;
  /** SIGTERM to the group, SIGKILL after `graceMs`. */
  terminate(graceMs: number): void;
  kill(): void;
  /**
   * Never rejects. When it resolves a supervisor started here is reaped and its channel closed, unless it still waits for
   * room on the disk to write the exit record.
   */
  exited: Promise<Ending>;
  /** For a process seen gone while its supervisor says nothing: soon `exited` is what its record says, else lost. */
  giveUp(): void;
  /** Gives the process up to another daemon: a gate not opened is refused, and `exited` may stay open for good. */
  detach(): void;
};

export type SuperviseDeps = {
  /** argv that starts this program again, without the hidden word (Linux: from `/proc/self/exe`). */
  command: readonly string[];
  /** Our own environment; a supervisor gets only what it needs itself. */
  environment: Readonly<Record<string, string | undefined>>;
  /** One that was started ahead with the same dependencies; it is used up. */
  booted?: BootedSupervisor | null;
  /** The newest sequence in the run log, at most ten times a second. */
  onOutput?(sequence: number, atMs: number): void;
};

/** What the supervisor's first line says: null when it is ready, else why it never will be. */
async function readGreeting(stream: ReadableStream<Uint8Array>): Promise<string | null> {
  const lines: (string | null)[] = [];
  const keep = (line: string | null) => void lines.push(line);
  const reader = new LineReader({ limit: 65_536, onLine: keep, onTooLong: () => keep(null) });
  for await (const chunk of stream) {
    reader.feed(chunk);
    if (lines.length > 0) break;
  }
  const fields = parseFields(lines[0] ?? "");
  if (fields?.["type"] === "ready") return null;
  const problem = fields?.["problem"];
  return typeof problem === "string" ? problem : "the supervisor ended before it was ready";
}

function ownEnvironment(environment: SuperviseDeps["environment"]): Record<string, string> {
  const needed = ["PATH", "SLOOP_TEST_CLOCK_PATH"].flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(needed);
}

export type Started = { ok: true; process: Supervised } | { ok: false; problem: string };

function controls(client: ChannelClient | null): Pick<Supervised, "gate" | "terminate" | "kill"> {
  return {
    gate: () => client?.send({ type: "gate" }),
    terminate: (graceMs) => client?.send({ type: "terminate", grace_ms: graceMs }),
    kill: () => client?.send({ type: "kill" }),
  };
}

function boot(deps: SuperviseDeps) {
  return Bun.spawn([...deps.command, superviseWord], {
    cwd: "/",
    env: ownEnvironment(deps.environment),
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
    detached: true,
  });
}

/** A supervisor that has been started and not yet been told what to watch. */
export type BootedSupervisor = ReturnType<typeof boot>;

/** Starts a supervisor ahead of the command it will be for: its own start is the longest part of a command's. Null when it cannot be started. */
export function bootSupervisor(deps: SuperviseDeps): BootedSupervisor | null {
  try {
    return boot(deps);
  } catch {
    return null;
  }
}

/** Ends a supervisor that nothing was found for: its input ends, and so does it. */
export function dismissSupervisor(booted: BootedSupervisor): void {
  void booted.stdin.end();
}

function startProcess(request: StageProcess, deps: SuperviseDeps): BootedSupervisor {
  const told: SupervisorRequest = { ...request, starter: process.pid };
  const { booted } = deps;
  const child = booted == null || booted.killed || booted.exitCode !== null ? boot(deps) : booted;
  void child.stdin.write(`${JSON.stringify(told)}\n`);
  void child.stdin.end();
  return child;
}

/** How long a supervisor that has told the end may take to write it down; then it goes on trying by itself. */
const partingMs = 2000;

/** A supervisor that started nothing takes this long at most to clean up and end. */
const lastWordsMs = 1000;

/**
 * Starts `request` under a supervisor of its own and resolves as soon as the command is spawned. Not ok: the command does not
 * run, and no record of it remains. Never rejects.
 */
export async function startSupervised(request: StageProcess, deps: SuperviseDeps): Promise<Started> {
  try {
    privateDirectory(dirname(dirname(request.channel)));
    privateDirectory(dirname(request.channel));
    const child = startProcess(request, deps);
    return { ok: true, process: await take(request, child, new ChannelLine(deps.onOutput)) };
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : String(error) };
  }
}

async function take(request: StageProcess, child: BootedSupervisor, line: ChannelLine): Promise<Supervised> {
  try {
    const problem = await readGreeting(child.stdout);
    if (problem !== null) throw new Error(problem);
    const client = await line.connect(request.channel);
    const spawned = await line.spawned;
    const told = line.exited.then((event) => endingOf(event, request.exitRecord, spawned));
    const givingUp = openGivingUp({ ...request, spawned });
    const exited = Promise.race([told, givingUp.ending]).then(async (ending) => {
      await Promise.race([child.exited, Bun.sleep(partingMs)]);
      client.close();
      return ending;
    });
    return { ...spawned, ...controls(client), exited, giveUp: givingUp.giveUp, detach: () => client.close() };
  } catch (error) {
    await Promise.race([child.exited, Bun.sleep(lastWordsMs)]);
    child.kill("SIGKILL");
    await child.exited;
    const over = overAlready(request, child.pid);
    if (over !== null) return over;
    await clearAway(request, child.pid);
    throw error;
  }
}

/**
 * A command that ended before we were connected: a channel that is closed at once is reported as one that could not be opened,
 * and its supervisor has written down how it went. Null when it has not.
 */
function overAlready({ startRecord, exitRecord }: StageProcess, supervisor: number): Supervised | null {
  const claim = readStartRecord(startRecord);
  if (claim?.supervisor_pid !== supervisor || claim.spawned === null) return null;
  const spawned = spawnedFrom(claim.spawned);
  const record = matchingRecord(exitRecord, spawned);
  if (record === null) return null;
  const exited = Promise.resolve<Ending>({ lost: false, facts: exitFacts(record) });
  return { ...spawned, ...controls(null), exited, giveUp: () => undefined, detach: () => undefined };
}

/** A supervisor that was killed at the wrong moment may have left its claim, and even the command without anybody to watch it. */
async function clearAway(request: StageProcess, supervisor: number): Promise<void> {
  if (readStartRecord(request.startRecord)?.supervisor_pid !== supervisor) return;
  await stopDescendants(request.runId);
  removeIfPresent(request.channel);
  removeIfPresent(request.startRecord);
}

async function endingOf(event: Exited | null, recordPath: string, spawned: Spawned): Promise<Ending> {
  if (event === null) return awaitRecord(recordPath, spawned);
  return { lost: false, facts: exitFacts(event.record, event.holders) };
}

export type Adoption = {
  spawned: Spawned;
  /** Null for a process without a supervisor (a merge). */
  channel: string | null;
  /** Null when it leaves no record: once it is gone it is lost at once. */
  exitRecord: string | null;
  /** Names its supervisor; absent when nobody can tell. */
  startRecord?: string;
  onOutput?(sequence: number, atMs: number): void;
};

/** Takes up a process that an earlier daemon started. Its channel may be gone; then its identity and its record are watched. */
export async function attachSupervised(adoption: Adoption): Promise<Supervised> {
  const line = new ChannelLine(adoption.onOutput);
  const client = adoption.channel === null ? null : await line.connect(adoption.channel).catch(() => null);
  const watch = { going: true };
  const told =
    client === null ? new Promise<never>(() => undefined) : line.exited.then((event) => ours(event, line, adoption));
  const givingUp = openGivingUp(adoption);
  const exited = Promise.race([told, watchIdentity(adoption, watch), givingUp.ending]);
  const detach = () => {
    watch.going = false;
    client?.close();
  };
  const { giveUp } = givingUp;
  return { ...adoption.spawned, ...controls(client), exited: exited.finally(detach), giveUp, detach };
}

/** A channel that broke off, or speaks of another process, says nothing: the watch over identity and record goes on. */
async function ours(event: Exited | null, line: ChannelLine, { spawned }: Adoption): Promise<Ending> {
  if (event === null || event.record.pid !== spawned.pid) return new Promise(() => undefined);
  await Promise.race([line.ended, Bun.sleep(partingMs)]);
  return { lost: false, facts: exitFacts(event.record, event.holders) };
}

/** Gone, or a zombie that nobody may be left to reap. */
function ended({ pid, pidStartTime }: Spawned): boolean {
  return identify(pid, pidStartTime) === "gone" || !processAlive(pid);
}

async function watchIdentity(adoption: Adoption, watch: { going: boolean }): Promise<Ending> {
  const { spawned, exitRecord, startRecord } = adoption;
  while (watch.going) {
    const record = exitRecord === null ? null : matchingRecord(exitRecord, spawned);
    if (record !== null) return { lost: false, facts: exitFacts(record) };
    if (ended(spawned)) {
      return exitRecord === null
        ? { lost: true }
        : awaitRecord(exitRecord, spawned, () => watch.going && supervisorLives(startRecord));
    }
    await Bun.sleep(lookMs);
  }
  return new Promise(() => undefined);
}

/** `none`: the command was never spawned. */
export type StartFound = { kind: "none" } | { kind: "spawned"; spawned: Spawned };

/**
 * Reads the start record of an earlier daemon's execution. One that its supervisor has not completed is waited for: it is
 * completed, or withdrawn, or its supervisor is dead. Leaves the file as it is.
 */
export async function awaitStartRecord(path: string): Promise<StartFound> {
  const until = performance.now() + recordWaitMs;
  for (;;) {
    const record = readStartRecord(path);
    if (record === null) return { kind: "none" };
    if (record.spawned !== null) return { kind: "spawned", spawned: spawnedFrom(record.spawned) };
    const { supervisor_pid: pid, supervisor_start_time: start } = record;
    const alive = identify(pid, start) !== "gone" && processAlive(pid);
    if (!alive || performance.now() >= until) return { kind: "none" };
    await Bun.sleep(lookMs / 10);
  }
}

export {
  executionName,
  exitRecordPath,
  readExitRecord,
  readStartRecord,
  type StageProcess,
  startRecordPath,
} from "../system/stage-process.ts";
export { type Ending, type ExitFacts, exitFacts, type Spawned } from "./ending.ts";

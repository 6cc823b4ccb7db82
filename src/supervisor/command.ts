// Starting the command a supervisor is for, and ending whatever it leaves behind.

import { closeSync, writeSync } from "node:fs";
import { gateArgv, gateLine } from "../system/gate.ts";
import { openPipe, type Pipe } from "../system/pipe.ts";
import { groupAlive, groupMembers, processStart, signalGroup, stopDescendants } from "../system/process.ts";
import type { StageProcess } from "../system/stage-process.ts";
import { closeQuietly } from "./capture.ts";

export type Command = {
  /** Also its process group. */
  pid: number;
  startTime: number | null;
  stdout: number;
  stderr: number;
  gate: Gate;
  exited: Promise<{ code: number | null; signal: string | null }>;
};

/** `none` has no gate; `shut` may become `open` or, for good, `refused`. */
export type Gate = { readonly state: "none" | "shut" | "open" | "refused"; open(): void; refuse(): void };

function makeGate(descriptor: number | null): Gate {
  let state: Gate["state"] = descriptor === null ? "none" : "shut";
  const leave = (next: "open" | "refused", line: string) => {
    if (state !== "shut" || descriptor === null) return;
    state = next;
    try {
      if (line !== "") writeSync(descriptor, line);
    } catch {
      // Nobody waits behind the gate any more.
    }
    closeQuietly(descriptor);
  };
  return {
    get state() {
      return state;
    },
    open: () => leave("open", gateLine),
    refuse: () => leave("refused", ""),
  };
}

function checkExecutable({ argv, environment, cwd }: StageProcess): void {
  const [name = ""] = argv;
  // Behind a gate a missing program would only be found once the gate opens, as the shell's exit code.
  if (Bun.which(name, { PATH: environment["PATH"] ?? "", cwd }) === null) {
    throw new Error(`Executable not found in $PATH: "${name}"`);
  }
}

/** Spawns the command as leader of its own group. Throws when it cannot be started; then nothing is left open. */
export function startCommand(request: StageProcess): Command {
  if (request.gated) checkExecutable(request);
  const pipes: Pipe[] = [];
  const newPipe = () => {
    const pipe = openPipe();
    pipes.push(pipe);
    return pipe;
  };
  try {
    const stdout = newPipe();
    const stderr = newPipe();
    const gate = request.gated ? newPipe() : null;
    const child = Bun.spawn(request.gated ? gateArgv("sloop-gate", request.argv) : request.argv, {
      cwd: request.cwd,
      env: request.environment,
      stdin: gate?.readEnd ?? "ignore",
      stdout: stdout.writeEnd,
      stderr: stderr.writeEnd,
      detached: true,
    });
    // Before anything is awaited: the child is not reaped yet, however fast it ended.
    const startTime = processStart(child.pid);
    for (const end of [stdout.writeEnd, stderr.writeEnd, gate?.readEnd]) if (end !== undefined) closeSync(end);
    return {
      pid: child.pid,
      startTime,
      stdout: stdout.readEnd,
      stderr: stderr.readEnd,
      gate: makeGate(gate?.writeEnd ?? null),
      exited: child.exited.then(() => ({ code: child.exitCode, signal: child.signalCode?.toString() ?? null })),
    };
  } catch (error) {
    for (const { readEnd, writeEnd } of pipes) {
      closeQuietly(readEnd);
      closeQuietly(writeEnd);
    }
    throw error;
  }
}

const stepMs = 5;
const longestMs = 5000;

/** Kills what the leader left: its group, then the run's descendants that left the group. Resolves to how many there were. */
export async function endStragglers(processGroupId: number, runId: string): Promise<number> {
  const left = groupMembers(processGroupId).length;
  if (left > 0) {
    signalGroup(processGroupId, "SIGKILL");
    const until = performance.now() + longestMs;
    while (groupAlive(processGroupId) && performance.now() < until) await Bun.sleep(stepMs);
  }
  return left + (await stopDescendants(runId));
}

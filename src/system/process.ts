// Who a process is, whether it lives, and how a group of processes is ended: politely, then certainly.

import { systemCode } from "./files.ts";
import { listProcesses, processesWith, readProcess } from "./proc.ts";

/** The opaque start token of a process (engine.md 16.1), a zombie's too; null when it cannot be read. Linux: clock ticks since boot. */
export function processStart(pid: number): number | null {
  return readProcess(pid)?.start ?? null;
}

function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}

export type Identity = "matches" | "gone" | "unverifiable";

/** Whether the process that was once recorded as (pid, start) is there, by the table of engine.md 16.1. A zombie matches. */
export function identify(pid: number | null, storedStart: number | null): Identity {
  if (pid === null || !Number.isSafeInteger(pid) || pid <= 0) return "gone";
  const start = processStart(pid);
  if (start === null) return pidExists(pid) ? "unverifiable" : "gone";
  if (storedStart === null) return "unverifiable";
  return start === storedStart ? "matches" : "gone";
}

/** Whether a process runs; a zombie does not. */
export function processAlive(pid: number): boolean {
  const row = readProcess(pid);
  return row === null ? pid > 0 && pidExists(pid) : !row.zombie;
}

/** Whether a process is stopped (SIGSTOP): it does nothing until somebody lets it go on. */
export function processStopped(pid: number): boolean {
  return readProcess(pid)?.stopped ?? false;
}

/** The pids of a process group's members, zombies left out. */
export function groupMembers(processGroupId: number): number[] {
  // Nearly always nobody is left, and that is told without looking through the whole table.
  if (!groupExists(processGroupId)) return [];
  return listProcesses().flatMap((row) => (row.processGroupId === processGroupId && !row.zombie ? [row.pid] : []));
}

/** Whether a process group has a member that is no zombie. */
export function groupAlive(processGroupId: number): boolean {
  return groupMembers(processGroupId).length > 0;
}

function groupExists(processGroupId: number): boolean {
  if (!signallable(processGroupId)) return false;
  try {
    process.kill(-processGroupId, 0);
    return true;
  } catch (error) {
    return systemCode(error) !== "ESRCH";
  }
}

/** Group 0 would be our own, 1 is init's, and -1 everybody. */
function signallable(processGroupId: number): boolean {
  return Number.isSafeInteger(processGroupId) && processGroupId > 1;
}

/** Signals a whole group; false when it has no member that may be signalled. The caller has checked whose group it is. */
export function signalGroup(processGroupId: number, signal: NodeJS.Signals): boolean {
  if (!signallable(processGroupId)) return false;
  try {
    process.kill(-processGroupId, signal);
    return true;
  } catch {
    return false;
  }
}

const stepMs = 20;
const longestWaitMs = 5000;
const afterGraceMs = 500;

/**
 * Ends a group: SIGTERM, after `graceMs` SIGKILL, and waits until it is empty. False when it still has members after 5 s, or
 * shortly after the grace where that is later; the kill was sent by then. The caller has checked whose group it is.
 */
export async function stopGroup(processGroupId: number, graceMs: number): Promise<boolean> {
  const began = performance.now();
  const longest = Math.max(longestWaitMs, graceMs + afterGraceMs);
  signalGroup(processGroupId, graceMs > 0 ? "SIGTERM" : "SIGKILL");
  while (groupAlive(processGroupId)) {
    const waited = performance.now() - began;
    if (waited >= longest) return false;
    if (waited >= graceMs) signalGroup(processGroupId, "SIGKILL");
    await Bun.sleep(stepMs);
  }
  return true;
}

/** The living processes that were started with this run's id in their environment (Linux; elsewhere none), never ourselves. */
export function descendantsOf(runId: string): { pid: number }[] {
  return processesWith(`SLOOP_RUN_ID=${runId}`).flatMap((pid) =>
    pid !== process.pid && processAlive(pid) ? [{ pid }] : [],
  );
}

const longestRounds = 50;

/** Kills a run's descendants one by one until none is left; resolves to how many were found. `except` is left alone. */
export async function stopDescendants(runId: string, except: ReadonlySet<number> = new Set()): Promise<number> {
  const found = new Set<number>();
  for (let round = 0; round < longestRounds; round += 1) {
    const left = descendantsOf(runId).filter(({ pid }) => !except.has(pid));
    if (left.length === 0) break;
    for (const { pid } of left) {
      found.add(pid);
      killOne(pid);
    }
    await Bun.sleep(stepMs);
  }
  return found.size;
}

function killOne(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended between the look and the kill.
  }
}

// The two records of an execution on the disk: that it was started, and how it ended (engine.md 10.4).

import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { removeIfPresent, systemCode, writeAtomic } from "../system/files.ts";
import { processStart } from "../system/process.ts";
import {
  type ExitRecord,
  readStartRecord,
  type SpawnFacts,
  type StageProcess,
  type StartRecord,
} from "../system/stage-process.ts";

const ownRecord = () => ({ supervisor_pid: process.pid, supervisor_start_time: processStart(process.pid) });

/** Claims the execution: whoever finds the record there already must not start it again. Throws then, and the system's error. */
export function claimExecution(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  try {
    writeFileSync(path, `${JSON.stringify(ownRecord())}\n`, { flag: "wx" });
  } catch (error) {
    if (systemCode(error) === "EEXIST") throw new Error(`this execution was started before: ${path} exists`);
    // Made, but nothing could be written into it: a full disk. Nobody reads a name in it, so it is nobody's claim.
    removeIfPresent(path);
    throw error;
  }
}

function readClaim(path: string): StartRecord | null {
  try {
    return readStartRecord(path);
  } catch {
    return null;
  }
}

/** Whether the claim is still ours: a daemon that gave us up may have taken it away, and another supervisor have it. */
export function claimHeld(path: string): boolean {
  const found = readClaim(path);
  const own = ownRecord();
  return found?.supervisor_pid === own.supervisor_pid && found.supervisor_start_time === own.supervisor_start_time;
}

/** Takes our claim away; another's stays. */
export function withdrawClaim(path: string): void {
  if (claimHeld(path)) removeIfPresent(path);
}

/** Writes over the claim where it lies: its block is ours already, so this also works on a full disk. */
function writeOver(path: string, text: string): void {
  const descriptor = openSync(path, "r+");
  try {
    if (writeSync(descriptor, text, 0) < Buffer.byteLength(text)) throw new Error(`${path} could not be completed`);
  } finally {
    closeSync(descriptor);
  }
}

/** Completes the claim with who was spawned; on the disk when it returns. Throws the system's error. */
export function completeClaim(path: string, facts: SpawnFacts): void {
  const text = `${JSON.stringify({ ...ownRecord(), ...facts })}\n`;
  try {
    writeAtomic(path, text, { sync: true });
  } catch {
    writeOver(path, text);
  }
}

const betweenTriesMs = 1000;
const longestMs = 24 * 3_600_000;

/** Tries to write the exit record; false when it should be tried again later. */
function tryToStore(path: string, text: string): boolean {
  try {
    writeAtomic(path, text, { sync: "data" });
    return true;
  } catch (error) {
    const code = systemCode(error);
    // Its folder was removed: nobody wants to know any more.
    return code === "ENOENT" || code === "ENOTDIR";
  }
}

/** Writes the exit record, however long that takes (24 h at most); not at all once the execution is somebody else's. */
export async function storeExitRecord(request: StageProcess, record: ExitRecord): Promise<void> {
  const until = performance.now() + longestMs;
  const text = `${JSON.stringify(record)}\n`;
  while (claimHeld(request.startRecord) && !tryToStore(request.exitRecord, text) && performance.now() < until) {
    await Bun.sleep(betweenTriesMs);
  }
}

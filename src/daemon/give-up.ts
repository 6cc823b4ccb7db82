// A process that is gone while its supervisor says nothing: it was stopped, or hangs, and the run must end all the same (engine.md 16.3).

import { identify, processAlive, processStopped } from "../system/process.ts";
import { readStartRecord } from "../system/stage-process.ts";
import { type Ending, exitFacts, lookMs, matchingRecord, recordWaitMs, type Spawned } from "./ending.ts";

/** Stragglers are ended, attendance looked at and output drained, five seconds for the longest of them, before a record is written. */
const atWorkMs = 12_000;

type Left = {
  spawned: Spawned;
  /** Null when it leaves no record. */
  exitRecord: string | null;
  /** Names its supervisor; absent when nobody can tell. */
  startRecord?: string;
};

/** The pid of the supervisor that a start record names, if it is that very process and no zombie; else null. */
function supervisorOf(startRecord: string | undefined): number | null {
  const record = startRecord === undefined ? null : readStartRecord(startRecord);
  if (record === null) return null;
  const { supervisor_pid: pid, supervisor_start_time: start } = record;
  return identify(pid, start) !== "gone" && processAlive(pid) ? pid : null;
}

/** Whether the supervisor that a start record names is there. */
export function supervisorLives(startRecord: string | undefined): boolean {
  return supervisorOf(startRecord) !== null;
}

/** Ends a supervisor that has nothing left to watch; only where its identity is certain. */
function endSupervisor(startRecord: string | undefined): void {
  const record = startRecord === undefined ? null : readStartRecord(startRecord);
  if (record === null || identify(record.supervisor_pid, record.supervisor_start_time) !== "matches") return;
  try {
    process.kill(record.supervisor_pid, "SIGKILL");
  } catch {
    // It ended between the look and the kill.
  }
}

/** The record that still comes within the time that its supervisor may need; null when none does. */
async function lastRecord(exitRecord: string, { spawned, startRecord }: Left) {
  const began = performance.now();
  for (;;) {
    const record = matchingRecord(exitRecord, spawned);
    if (record !== null) return record;
    const supervisor = supervisorOf(startRecord);
    const working = supervisor !== null && !processStopped(supervisor);
    if (performance.now() - began >= (working ? atWorkMs : recordWaitMs)) return null;
    await Bun.sleep(lookMs);
  }
}

async function conclude(left: Left): Promise<Ending> {
  const record = left.exitRecord === null ? null : await lastRecord(left.exitRecord, left);
  if (record === null) endSupervisor(left.startRecord);
  // A signal that nobody took note of in time says nothing about the work, attended or not.
  return record === null || record.signal !== null ? { lost: true } : { lost: false, facts: exitFacts(record) };
}

export type GivingUp = {
  /** Open for good until `giveUp`. Never rejects. */
  ending: Promise<Ending>;
  giveUp(): void;
};

/**
 * Prepares to give a process up. Once that is done, its ending is what a record says that appears within 2 s (12 s while its
 * supervisor is at work), else lost; its supervisor, which watches nothing any more, is killed then.
 */
export function openGivingUp(left: Left): GivingUp {
  const { promise, resolve } = Promise.withResolvers<Ending>();
  let given = false;
  return {
    ending: promise,
    giveUp() {
      if (given) return;
      given = true;
      void conclude(left)
        .catch((): Ending => ({ lost: true }))
        .then(resolve);
    },
  };
}

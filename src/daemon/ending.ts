// How a stage process ended, as a channel or an exit record tells it.

import { type ExitRecord, readExitRecord, type SpawnFacts } from "../system/stage-process.ts";

/** Instants are epoch ms on the daemon clock. */
export type Spawned = {
  pid: number;
  pidStartTime: number | null;
  processGroupId: number;
  startedAtMs: number;
};

/** How a stage process ended. Instants are epoch ms on the daemon clock. */
export type ExitFacts = {
  exitCode: number | null;
  signal: string | null;
  startedAtMs: number;
  finishedAtMs: number;
  captureComplete: boolean;
  stragglersKilled: number;
  lastSequence: number;
  /** Whether a daemon was there when it ended. */
  attended: boolean;
  /** Processes that still had its output open and were left alone; known only to the daemon that was there. */
  holders: number[];
};

/** The facts, or nothing: the supervisor died alone and nobody knows how the process ended or will end. */
export type Ending = { lost: false; facts: ExitFacts } | { lost: true };

/** The facts in an exit record. */
export function exitFacts(record: ExitRecord, holders: number[] = []): ExitFacts {
  return {
    exitCode: record.exit_code,
    signal: record.signal,
    startedAtMs: record.started_at_ms,
    finishedAtMs: record.finished_at_ms,
    captureComplete: record.capture_complete,
    stragglersKilled: record.stragglers_killed,
    lastSequence: record.last_sequence,
    attended: record.attended,
    holders,
  };
}

export function spawnedFrom(facts: SpawnFacts): Spawned {
  return {
    pid: facts.pid,
    pidStartTime: facts.pid_start_time,
    processGroupId: facts.process_group_id,
    startedAtMs: facts.started_at_ms,
  };
}

/** How long a process that is gone may still get its record, and how often one looks; milliseconds. */
export const recordWaitMs = 2000;
export const lookMs = 100;

function readable(path: string): ExitRecord | null {
  try {
    return readExitRecord(path);
  } catch {
    return null;
  }
}

/** The exit record at `path` if it is of this very process, else null, also where it cannot be read. */
export function matchingRecord(path: string, spawned: Pick<Spawned, "pid" | "pidStartTime">): ExitRecord | null {
  const record = readable(path);
  if (record === null || record.pid !== spawned.pid) return null;
  return record.pid_start_time === spawned.pidStartTime ? record : null;
}

/**
 * Waits for an exit record of this very process, up to 2 s after nobody `watched` it any more (a supervisor drains what is
 * left of the output first); lost when none appears.
 */
export async function awaitRecord(
  path: string,
  spawned: Pick<Spawned, "pid" | "pidStartTime">,
  watched: () => boolean = () => false,
): Promise<Ending> {
  let until = performance.now() + recordWaitMs;
  for (;;) {
    const record = matchingRecord(path, spawned);
    if (record !== null) return { lost: false, facts: exitFacts(record) };
    if (watched()) until = performance.now() + recordWaitMs;
    else if (performance.now() >= until) return { lost: true };
    await Bun.sleep(lookMs);
  }
}

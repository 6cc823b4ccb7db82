// What the kernel says of a process (Linux).

import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const mebibyte = 1024;

function kilobytes(path: string, key: string): number {
  const found = new RegExp(`^${key}:\\s+(\\d+) kB`, "m").exec(readFileSync(path, "utf8"));
  if (found === null) throw new Error(`${path} does not say ${key}`);
  return Number(found[1]);
}

/** Resident memory in MiB. */
export const residentMib = (pid: number): number => kilobytes(`/proc/${pid}/status`, "VmRSS") / mebibyte;

/** Proportional share of memory in MiB: what is shared is divided among those who share it. */
export const proportionalMib = (pid: number): number => kilobytes(`/proc/${pid}/smaps_rollup`, "Pss") / mebibyte;

/** The greatest resident memory in MiB since `forgetPeak`. */
export const peakMib = (pid: number): number => kilobytes(`/proc/${pid}/status`, "VmHWM") / mebibyte;

/** Lets the peak start from what is resident now. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

function fieldsOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** User and system time in clock ticks (10 ms each). */
export function cpuTicks(pid: number): number {
  const fields = fieldsOf(pid);
  return Number(fields[11]) + Number(fields[12]);
}

export const parentOf = (pid: number): number => Number(fieldsOf(pid)[1]);

/** Time on a processor in ms, and how often a thread slept and was woken, over all threads. */
export function activity(pid: number): { cpuMs: number; wakeups: number } {
  let nanoseconds = 0;
  let wakeups = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const task = `/proc/${pid}/task/${thread}`;
    nanoseconds += Number(readFileSync(`${task}/schedstat`, "utf8").split(" ")[0]);
    wakeups += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`${task}/status`, "utf8"))?.[1]);
  }
  return { cpuMs: nanoseconds / 1e6, wakeups };
}

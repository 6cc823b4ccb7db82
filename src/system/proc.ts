// The process table as the system shows it: /proc on Linux, `ps` elsewhere.

import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from "node:fs";
import { contentHash } from "../core/hash.ts";

export type ProcessRow = {
  pid: number;
  processGroupId: number;
  /** Ended, and not yet waited for by its parent. */
  zombie: boolean;
  /** Stopped by a signal, or by somebody who traces it. */
  stopped: boolean;
  /** An opaque token: only ever compared for equality with another of the same pid. */
  start: number;
};

const linux = process.platform === "linux";

function parseStat(pid: number, text: string): ProcessRow | null {
  // The second field is the command's name in parentheses and may itself hold blanks and parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const state = fields[0];
  const group = Number(fields[2]);
  const start = Number(fields[19]);
  if (state === undefined || !Number.isSafeInteger(group) || !Number.isSafeInteger(start)) return null;
  return { pid, processGroupId: group, zombie: state === "Z" || state === "X", stopped: /^[Tt]/.test(state), start };
}

function readProc(pid: number): ProcessRow | null {
  try {
    return parseStat(pid, readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return null;
  }
}

/** A start time as `ps` prints it, made a number that JSON carries exactly. */
function hashStart(text: string): number {
  return Number(BigInt(`0x${contentHash(Buffer.from(text))}`) & BigInt(Number.MAX_SAFE_INTEGER));
}

function askPs(args: string[]): ProcessRow[] {
  const columns = "pid=,pgid=,stat=,lstart=";
  const ps = Bun.spawnSync(["ps", ...args, "-o", columns], {
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" },
    stderr: "ignore",
  });
  return ps.stdout
    .toString()
    .split("\n")
    .flatMap((line) => {
      const found = /^\s*([0-9]+)\s+([0-9]+)\s+(\S+)\s+(.+?)\s*$/.exec(line);
      if (found === null) return [];
      const [, pid, group, state, start] = found;
      return [
        {
          pid: Number(pid),
          processGroupId: Number(group),
          zombie: state?.startsWith("Z") ?? false,
          stopped: state?.startsWith("T") ?? false,
          start: hashStart(start ?? ""),
        },
      ];
    });
}

/** The row of one process, a zombie's too; null when there is none or it cannot be read. */
export function readProcess(pid: number): ProcessRow | null {
  if (!Number.isSafeInteger(pid) || pid <= 0) return null;
  return linux ? readProc(pid) : (askPs(["-p", String(pid)])[0] ?? null);
}

function procPids(): number[] {
  return readdirSync("/proc").flatMap((name) => (/^[1-9][0-9]*$/.test(name) ? [Number(name)] : []));
}

/** Every process that can be seen now. */
export function listProcesses(): ProcessRow[] {
  if (!linux) return askPs(["-A"]);
  return procPids().flatMap((pid) => readProc(pid) ?? []);
}

/** The processes whose start environment has exactly `variable` (`NAME=value`); none where the system does not show environments. */
export function processesWith(variable: string): number[] {
  if (!linux) return [];
  const wanted = Buffer.from(`\0${variable}\0`);
  const found: number[] = [];
  let unclear = procPids();
  for (let look = 0; look < execLooks && unclear.length > 0; look += 1) {
    if (look > 0) Bun.sleepSync(execLookMs);
    const answers = unclear.map((pid) => ({ pid, has: environmentHas(pid, wanted) }));
    found.push(...answers.flatMap(({ pid, has }) => (has === true ? [pid] : [])));
    unclear = answers.flatMap(({ pid, has }) => (has === null ? [pid] : []));
  }
  return found;
}

/** A process in the middle of an exec shows no environment for a moment. */
const execLooks = 3;
const execLookMs = 2;

/** One for all: a look at every process of the machine should not allocate. */
const environmentBlock = Buffer.alloc(262_144);

function readEnvironment(pid: number): Buffer {
  const descriptor = openSync(`/proc/${pid}/environ`, "r");
  try {
    const length = readSync(descriptor, environmentBlock, 0, environmentBlock.length, null);
    if (length < environmentBlock.length) return environmentBlock.subarray(0, length);
    return Buffer.concat([environmentBlock, readFileSync(descriptor)]);
  } finally {
    closeSync(descriptor);
  }
}

/** Null: a program runs there that shows no environment, so far. */
function environmentHas(pid: number, wanted: Buffer): boolean | null {
  try {
    const shown = readEnvironment(pid);
    // Kernel threads and zombies have no program, and nothing to show.
    if (shown.length === 0) return readlinkSync(`/proc/${pid}/exe`) === "" ? false : null;
    return shown.includes(wanted) || startsWith(shown, wanted.subarray(1));
  } catch {
    return false;
  }
}

function startsWith(bytes: Buffer, prefix: Buffer): boolean {
  return bytes.length >= prefix.length && bytes.subarray(0, prefix.length).equals(prefix);
}

/** The other processes that have the pipe with this inode open; none where the system does not show descriptors. */
export function pipeHolders(inode: number): number[] {
  if (!linux) return [];
  const wanted = `pipe:[${inode}]`;
  return procPids().filter((pid) => pid !== process.pid && hasOpen(pid, wanted));
}

function hasOpen(pid: number, link: string): boolean {
  try {
    const directory = `/proc/${pid}/fd`;
    return readdirSync(directory).some((name) => readlinkSync(`${directory}/${name}`) === link);
  } catch {
    // Somebody else's process, or one that ended meanwhile.
    return false;
  }
}

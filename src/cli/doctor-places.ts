// What `sloop doctor` looks at on the disk: places that must be ours and writable, room, and the length of socket paths.

import { accessSync, constants, existsSync, lstatSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { channelSocket, type RepositoryPaths } from "../system/paths.ts";
import { pasteWord } from "./doctor-text.ts";
import type { Finding } from "./finding.ts";

/** The nearest directory at or above `path` that is there. */
function nearestThere(path: string): string {
  let at = path;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}

function checkWritable(path: string, what: string): Finding[] {
  const at = nearestThere(path);
  try {
    accessSync(at, constants.W_OK | constants.X_OK);
    return [];
  } catch {
    return [
      {
        check: "permissions",
        severity: "error",
        message: `${at} cannot be written`,
        why: `${what} there`,
        fix: `sudo chown -R "$(id -un)" ${pasteWord(at)}`,
      },
    ];
  }
}

/** The directories sockets lie in belong to one user, or anybody could answer there. */
function checkPrivate(path: string): Finding[] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  const ours = found.isDirectory() && found.uid === (process.geteuid?.() ?? 0);
  if (ours && (found.mode & 0o077) === 0) return [];
  return [
    {
      check: "permissions",
      severity: "error",
      message: `${path} is not a directory for your user alone`,
      why: "sockets lie in it, and whoever can write there could answer in the daemon's place",
      fix: ours ? `chmod 700 ${pasteWord(path)}` : `sudo rm -rf ${pasteWord(path)}`,
    },
  ];
}

const littleBytes = 1024 ** 3;
const tooLittleBytes = 100 * 1024 ** 2;

function checkRoom(path: string, what: string): Finding[] {
  const at = nearestThere(path);
  let free: number;
  try {
    const disk = statfsSync(at);
    free = disk.bavail * disk.bsize;
  } catch {
    // A file system that does not tell.
    return [];
  }
  if (free >= littleBytes) return [];
  return [
    {
      check: "disk space",
      severity: free < tooLittleBytes ? "error" : "warning",
      message: `${Math.floor(free / 1024 ** 2)} MiB are free at ${at}`,
      why: `${what} there; on a full disk nothing is started`,
      fix: `du -xh ${pasteWord(at)} | sort -h | tail`,
    },
  ];
}

/** A run's id in the longest name a socket has. */
const someRun = "0".repeat(32);

function checkSockets(paths: RepositoryPaths): Finding[] {
  try {
    channelSocket(paths, someRun, "0-1-action");
  } catch (error) {
    return [
      {
        check: "socket path",
        severity: "error",
        message: (error as Error).message,
        why: "no socket can be opened under a longer name",
        fix: "export XDG_RUNTIME_DIR=/run/user/$(id -u) (or any short directory of yours)",
      },
    ];
  }
  return [];
}

/** State, sockets and worktrees: whether they can be written, are ours, fit, and have room. */
export function checkPlaces(paths: RepositoryPaths, worktreeDir: string): Finding[] {
  const places = [
    ...checkWritable(paths.stateDir, "the daemon keeps its database and what runs print"),
    ...checkWritable(paths.runtimeDir, "the daemon opens its sockets"),
    ...checkWritable(worktreeDir, "runs have their worktrees"),
    ...checkPrivate(paths.runtimeBase),
    ...checkPrivate(paths.runtimeDir),
    ...checkSockets(paths),
  ];
  const state = checkRoom(paths.stateDir, "state is kept");
  // One disk is said once.
  const work = checkRoom(worktreeDir, "worktrees are made").filter(({ message }) => {
    const size = message.split(" ")[0];
    return !state.some((finding) => finding.message.startsWith(`${size} `));
  });
  return [...places, ...state, ...work];
}

// One daemon's life: ground prepared, doors opened, runs of an earlier daemon taken up, passes driven, and its end.

import { gitDirectoryPresent } from "../git/inspect.ts";
import { endPassingGit } from "../git/run.ts";
import { openHooks } from "../system/hooks.ts";
import { openBackoff } from "./backoff.ts";
import type { Daemon, DaemonEnd, Door, OpenWorkerDoor } from "./context.ts";
import { openDispatcher } from "./dispatcher.ts";
import { type DoorWatch, openDoorWatch } from "./doors.ts";
import { openMergeWatch } from "./external-merge.ts";
import type { Launcher } from "./launch.ts";
import { checkLiveness } from "./liveness.ts";
import { recoverRuns } from "./recovery.ts";
import { openRetention } from "./retention.ts";
import { openScheduler, type Scheduler } from "./scheduler.ts";
import type { Ground } from "./startup.ts";

const tickMs = 2000;

export type DaemonOptions = {
  version: string;
  /** argv that starts this very program again. */
  self: readonly string[];
  executable: string;
  env: Readonly<Record<string, string | undefined>>;
  /** Doors lie above the daemon, so it is given them. */
  openOperatorDoor: (daemon: Daemon) => Door;
  openWorkerDoor: (daemon: Daemon) => OpenWorkerDoor;
};

export type RunningDaemon = {
  daemon: Daemon;
  /** Resolves once everything is closed. */
  closed: Promise<DaemonEnd>;
};

/** What a daemon that was started inside a run must not pass on. */
const ofAnotherRun = [
  "SLOOP_SOCKET",
  "SLOOP_TOKEN",
  "SLOOP_RUN_ID",
  "SLOOP_TICKET_ID",
  "SLOOP_STAGE",
  "SLOOP_ATTEMPT",
  "SLOOP_BIN",
];

function ownEnvironment(env: DaemonOptions["env"]): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !ofAnotherRun.includes(name)) kept[name] = value;
  }
  return kept;
}

type Parts = { ground: Ground; options: DaemonOptions; close: (why: DaemonEnd) => void };

function assemble({ ground, options, close }: Parts): { daemon: Daemon; scheduler: Scheduler; launcher: Launcher } {
  let scheduler: Scheduler | null = null;
  const dispatcher = openDispatcher(() => scheduler?.pass());
  const daemon: Daemon = {
    paths: ground.paths,
    config: ground.loaded.config,
    flows: ground.loaded.flows,
    vendorRules: ground.vendorRules,
    store: ground.store,
    clock: ground.clock,
    log: ground.log,
    hook: openHooks(options.env),
    pid: process.pid,
    version: options.version,
    self: options.self,
    executable: options.executable,
    environment: ownEnvironment(options.env),
    live: new Map(),
    launches: openBackoff(() => performance.now()),
    conditions: { storageFull: false, unreconciled: false, stopping: false },
    openWorkerDoor: (socketPath, runId) => options.openWorkerDoor(daemon)(socketPath, runId),
    enqueue: dispatcher.enqueue,
    poke() {
      scheduler?.force();
      dispatcher.poke();
    },
    // The reply to `stop` is on its way to the kernel by then.
    shutDown: (why = "stop") => void setTimeout(() => close(why), 0),
  };
  const launcher: Launcher = {
    daemon,
    pending: new Map(),
    looking: new Set(),
    mergeWatch: openMergeWatch(daemon),
    retention: openRetention(daemon),
    keptHouseAt: Number.NEGATIVE_INFINITY,
  };
  scheduler = openScheduler(launcher);
  return { daemon, scheduler, launcher };
}

/** Every 2 s, within the queue like everything else; one that has to wait is not followed by another. */
function startTick(launcher: Launcher, doors: DoorWatch): ReturnType<typeof setInterval> {
  const { daemon } = launcher;
  let waiting = false;
  return setInterval(() => {
    if (!gitDirectoryPresent(daemon.paths.root)) {
      daemon.log.error("sloop::dispatcher", "project_root_missing", { root: daemon.paths.root });
      daemon.shutDown();
      return;
    }
    // Outside the queue: also a daemon that is busy must stay reachable.
    doors.look();
    if (waiting) return;
    waiting = true;
    void daemon
      .enqueue(() => checkLiveness(launcher, "tick"))
      .finally(() => {
        waiting = false;
        if (!daemon.conditions.stopping) daemon.poke();
      });
  }, tickMs);
}

/** Opens the doors on a prepared ground and runs until `stop`. Throws when the operator socket cannot be served. */
export function openDaemon(ground: Ground, options: DaemonOptions): RunningDaemon {
  const { promise: closed, resolve } = Promise.withResolvers<DaemonEnd>();
  let close = (_why: DaemonEnd): void => undefined;
  const { daemon, scheduler, launcher } = assemble({ ground, options, close: (why) => close(why) });
  const door = options.openOperatorDoor(daemon);
  daemon.log.info("sloop::daemon", "daemon_started");
  recoverRuns(launcher);
  const tick = startTick(launcher, openDoorWatch(daemon, door));
  close = (why) => {
    close = () => undefined;
    daemon.conditions.stopping = true;
    clearInterval(tick);
    scheduler.close();
    daemon.log.info("sloop::daemon", why === "stop" ? "daemon_stopped" : "restart_drain_complete");
    door.close();
    for (const live of daemon.live.values()) live.door?.close();
    endPassingGit();
    ground.store.close();
    ground.lock.close();
    daemon.log.close();
    resolve(why);
  };
  daemon.poke();
  return { daemon, closed };
}

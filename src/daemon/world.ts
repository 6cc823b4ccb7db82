// What holds every ticket back right now: the gate's view of the daemon, its store and its repository.

import type { World } from "../core/gate.ts";
import { isOpen, localMinute } from "../core/hours.ts";
import { readTarget } from "../git/inspect.ts";
import { nextCleanupEligible } from "../store/report.ts";
import { countUnsettled } from "../store/runs.ts";
import { listCooldowns, readFlags } from "../store/scheduler.ts";
import type { Daemon } from "./context.ts";

/** Whether the running hours are open at `now` (epoch ms); always, when none are configured. */
export function hoursOpen(daemon: Daemon, now: number): boolean {
  const hours = daemon.config.runningHours;
  return hours === null || isOpen(hours, localMinute(now));
}

/** Gathers the facts; `core/gate.ts` draws the conclusions. */
export function readWorld(daemon: Daemon): World {
  const now = daemon.clock.now();
  const { config, store, conditions } = daemon;
  const target = readTarget(daemon.paths.root, config.mergeTarget);
  return {
    now,
    agentsConfigured: config.agent !== null,
    branchProblem: "problem" in target ? target.problem : null,
    ...readFlags(store.db),
    storageFull: conditions.storageFull,
    unreconciled: conditions.unreconciled,
    hoursOpen: hoursOpen(daemon, now),
    activeRuns: countUnsettled(store.db),
    maxParallelTasks: config.maxParallelTasks,
    cooldowns: listCooldowns(store.db, now),
    failedLaunches: new Map(
      daemon.launches.waiting().map(({ id, problem, forMs }) => [id, { problem, nextMs: now + forMs }]),
    ),
  };
}

/** When the next worktree may go (epoch ms); empty when none waits for that, or none ever goes. */
export function cleanupDeadlines(daemon: Daemon, now: number): number[] {
  const retention = daemon.config.worktreeRetentionMs;
  const eligible = retention === null ? null : nextCleanupEligible(daemon.store.db, now - retention);
  return eligible === null || retention === null ? [] : [eligible + retention];
}

// What happens before a daemon answers: configuration, directories, lock, database, index (engine.md 16.2, cli.md 10.3).

import { mkdirSync } from "node:fs";
import { loadRules, type VendorRule } from "../core/catalogue.ts";
import { excludeWorktrees } from "../git/exclude.ts";
import { type Loaded, loadAll } from "../parse/load.ts";
import { openStore, type Store } from "../store/open.ts";
import { setFlags } from "../store/scheduler.ts";
import { backfillTargets, retireMerged, trimHistory } from "../store/startup.ts";
import { type Clock, openClock } from "../system/clock.ts";
import { fileSource, privateDirectory } from "../system/files.ts";
import { openLock, writeIdentity } from "../system/lock.ts";
import { type Log, openLog } from "../system/log.ts";
import { type RepositoryPaths, repositoryPaths } from "../system/paths.ts";
import { processStart } from "../system/process.ts";
import { reconcileFiles } from "./missing.ts";
import { indexProjects } from "./projects.ts";

export type StartOptions = {
  root: string;
  env: Readonly<Record<string, string | undefined>>;
  version: string;
};

/** A daemon's ground: everything open and in order, nothing listening yet. */
export type Ground = {
  paths: RepositoryPaths;
  loaded: Loaded;
  vendorRules: VendorRule[];
  clock: Clock;
  log: Log;
  store: Store;
  lock: { close(): void };
};

const lockGraceMs = 2000;
const lockPollMs = 20;

function prepareDirectories(paths: RepositoryPaths): void {
  privateDirectory(paths.stateDir);
  mkdirSync(paths.logDir, { recursive: true });
  mkdirSync(paths.runsDir, { recursive: true });
  privateDirectory(paths.runtimeBase);
  privateDirectory(paths.runtimeDir);
}

async function bringInOrder(ground: Ground): Promise<void> {
  const { store, loaded, clock, log, paths } = ground;
  const now = clock.now();
  const source = { root: paths.root, config: loaded.config, log };
  const { agent } = loaded.config;
  store.write((tx) => {
    setFlags(tx, { draining: false }, now);
    trimHistory(tx, now);
    if (agent !== null) backfillTargets(tx, agent.defaultTarget, now);
  });
  await indexProjects(source, store, now);
  reconcileFiles(source, store, now);
  for (const { triggerId, ticketId } of store.write((tx) => retireMerged(tx, now))) {
    const fields = { trigger_id: triggerId, ticket_id: ticketId };
    log.info("sloop::daemon", "trigger_completed_on_merged_ticket", fields);
  }
  const unexcluded = excludeWorktrees(paths.root, loaded.config.worktreeDir);
  if (unexcluded !== null) log.warn("sloop::daemon", "worktrees_not_excluded", { error: unexcluded });
  if (loaded.warnings.length > 0) log.warn("sloop::daemon", "configuration_warnings", { warnings: loaded.warnings });
}

/**
 * Loads, locks and opens everything; null when another daemon holds the lock. Throws SloopError for a configuration
 * that does not load, a database that is too new, or a project file that cannot be stamped; the lock is free then.
 */
export async function prepareGround(options: StartOptions): Promise<Ground | null> {
  const { root, env } = options;
  const loaded = loadAll(fileSource, root, env["HOME"] ?? null);
  const vendorRules = loadRules();
  const paths = repositoryPaths({ root, env, uid: process.geteuid?.() ?? 0, platform: process.platform });
  prepareDirectories(paths);
  const lock = await openLock(paths.lockDatabase, { graceMs: lockGraceMs, pollMs: lockPollMs });
  if (lock === null) return null;
  try {
    const identity = { pid: process.pid, started_at_ms: processStart(process.pid), socket: paths.operatorSocket };
    writeIdentity(paths.lockFile, identity);
    const clock = openClock(env);
    const ground = {
      paths,
      loaded,
      vendorRules,
      clock,
      log: openLog(paths.logFile),
      store: openStore(paths.database, clock.now()),
      lock,
    };
    await bringInOrder(ground);
    return ground;
  } catch (error) {
    lock.close();
    throw error;
  }
}

// A daemon to hand to verbs and doors: a real store and a temp directory, a clock that stands still, no scheduler.

import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "../../src/core/config.ts";
import { openBackoff } from "../../src/daemon/backoff.ts";
import type { Daemon, LiveRun } from "../../src/daemon/context.ts";
import { newLiveRun } from "../../src/daemon/launch.ts";
import { openStore } from "../../src/store/open.ts";
import { silentLog } from "../../src/system/log.ts";
import { repositoryPaths } from "../../src/system/paths.ts";

export const startMs = 1_803_866_400_000;

const hour = 3_600_000;

const config: Config = {
  worktreeDir: ".worktrees",
  projectDir: ".agents/sloop/projects",
  ticketDir: ".agents/sloop/tickets",
  worktreeRetentionMs: 7 * 24 * hour,
  evidenceRetentionMs: null,
  deleteMissingAfterMs: 30 * 24 * hour,
  maxParallelTasks: 2,
  stallReportAfterMs: 10 * 60_000,
  stallAfterMs: 2 * hour,
  cancelGraceMs: 2000,
  runningHours: null,
  agent: {
    defaultTarget: "claude",
    targets: { claude: { name: "claude", cmd: ["claude"], model: null, effort: null } },
  },
  ticketSource: null,
  testCmd: null,
  mergeTarget: "main",
  ticketPrefix: "TICK",
  projectPrefix: "PROJ",
};

export type TestDaemon = Daemon & {
  readonly root: string;
  /** Moves the clock; epoch ms. */
  setNow(ms: number): void;
  /** How many jobs were enqueued, and how often shutDown was called. */
  readonly calls: { jobs: number; shutDowns: number };
  /** What the log was told, as `level target event`. */
  readonly logged: string[];
  [Symbol.dispose](): void;
};

function fakeRepository(root: string): void {
  const refs = join(root, ".git/refs/heads");
  mkdirSync(refs, { recursive: true });
  mkdirSync(join(root, ".git/objects"), { recursive: true });
}

/** A repository that only looks like one: enough for what reads `main` from files. */
async function writeBranch(root: string): Promise<void> {
  fakeRepository(root);
  await Bun.write(join(root, ".git/HEAD"), "ref: refs/heads/main\n");
  await Bun.write(join(root, ".git/refs/heads/main"), `${"a".repeat(40)}\n`);
}

export type ContextOptions = Partial<Config> & { memory?: boolean };

/** Dispose it: `using daemon = await openContext()`. */
export async function openContext(options: ContextOptions = {}): Promise<TestDaemon> {
  const { memory = true, ...overrides } = options;
  const home = realpathSync(mkdtempSync(join(tmpdir(), "sloop-ctx-")));
  const root = join(home, "repo");
  await writeBranch(root);
  const paths = repositoryPaths({
    root,
    env: { XDG_STATE_HOME: join(home, "state"), XDG_RUNTIME_DIR: join(home, "run") },
    uid: process.geteuid?.() ?? 0,
    platform: process.platform,
  });
  for (const directory of [paths.stateDir, paths.runtimeDir, paths.runsDir]) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }
  let now = startMs;
  const store = openStore(memory ? ":memory:" : paths.database, now);
  const calls = { jobs: 0, shutDowns: 0 };
  const logged: string[] = [];
  const record = (level: string) => (target: string, event: string) => void logged.push(`${level} ${target} ${event}`);
  return {
    root,
    paths,
    config: { ...config, ...overrides },
    flows: new Map(),
    vendorRules: [],
    store,
    clock: { now: () => now },
    log: { ...silentLog, info: record("info"), warn: record("warn"), error: record("error") },
    hook: () => Promise.resolve(),
    pid: process.pid,
    version: "0.0.0-test",
    self: [process.execPath],
    executable: process.execPath,
    environment: {},
    live: new Map<string, LiveRun>(),
    launches: openBackoff(() => performance.now()),
    conditions: { storageFull: false, unreconciled: false, stopping: false },
    openWorkerDoor: () => ({ close: () => undefined }),
    enqueue: async (job) => {
      calls.jobs += 1;
      return job();
    },
    poke: () => undefined,
    shutDown: () => {
      calls.shutDowns += 1;
    },
    setNow: (ms) => {
      now = ms;
    },
    calls,
    logged,
    [Symbol.dispose]() {
      store.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** A run as memory knows it, supervised and quiet. */
export function liveRun(runId: string, ticketId: string, changes: Partial<LiveRun> = {}): LiveRun {
  return { ...newLiveRun({ runId, ticketId }), ...changes };
}

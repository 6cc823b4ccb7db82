// What every part of a running daemon is given: its repository, its store, its clock, and what it holds in memory.

import type { VendorRule } from "../core/catalogue.ts";
import type { Config } from "../core/config.ts";
import type { Flow } from "../core/flow.ts";
import type { Store } from "../store/open.ts";
import type { Clock } from "../system/clock.ts";
import type { Log } from "../system/log.ts";
import type { RepositoryPaths } from "../system/paths.ts";
import type { Backoff } from "./backoff.ts";
import type { BootedSupervisor, Supervised } from "./supervise.ts";

/** What a worker token stands for, fixed when it was minted and never taken from a request. */
export type TokenScope = { runId: string; stage: string; stageIndex: number; attempt: number; seat: number | null };

/** A run's live credential: one per run, replaced by the next and dead at settlement. */
export type Credential = { token: string; socketPath: string; scope: TokenScope };

/** A socket that is listened on; opened by functions from server/serve.ts, since doors lie above the daemon. */
export type Door = {
  close(): void;
  /** Listens anew where the socket file was taken away; true when it was. Throws as opening does. */
  rebind?(): boolean;
};
/** Opens the socket of a run's worker. */
export type OpenWorkerDoor = (socketPath: string, runId: string) => Door;

/** What memory knows of the agent that a run stands on: the baseline of its silence. */
export type Silence = {
  stage: string;
  attempt: number;
  /** Epoch ms of the last captured agent record of this execution, or of the checkpoint when there is none. */
  lastOutputAtMs: number;
  lastOutputSequence: number | null;
};

/** A process whose end is waited for; `seenGone`: it was gone, or a zombie, at the last tick. */
export type WatchedProcess = Pick<Supervised, "pid" | "pidStartTime" | "giveUp"> & { seenGone?: boolean };

/** One unsettled run in memory; rebuilt from the database at start. */
export type LiveRun = {
  runId: string;
  ticketId: string;
  /** A driver of this daemon, or the re-adoption monitor, owns it. */
  supervised: boolean;
  recovering: boolean;
  /** Its process was gone, or a zombie, at the last tick. */
  suspectedDead: boolean;
  /** The process whose end is waited for, from its checkpoint to its end. */
  watched?: WatchedProcess | null;
  cancelling: boolean;
  stalling: boolean;
  credential: Credential | null;
  door: Door | null;
  silence: Silence | null;
  /** Waits for the first process of the run. */
  booted: BootedSupervisor | null;
  /** Last output sequence already warned about; undefined: none yet. */
  reportedStall: number | null | undefined;
  /** Its lease has lapsed, and the log says so. */
  leaseDenied: boolean;
};

/** What a daemon ends for. */
export type DaemonEnd = "stop" | "restart";

/** Gates that only memory knows. */
export type Conditions = { storageFull: boolean; unreconciled: boolean; stopping: boolean };

export type Daemon = {
  readonly paths: RepositoryPaths;
  readonly config: Config;
  readonly flows: ReadonlyMap<string, Flow>;
  readonly vendorRules: readonly VendorRule[];
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** Test seam: a named pause point (engine.md 19.2). */
  readonly hook: (name: string) => Promise<void>;
  readonly pid: number;
  readonly version: string;
  /** argv that starts this very program again: the image the daemon runs, not the path. */
  readonly self: readonly string[];
  /** Absolute path of the executable, for `SLOOP_BIN`. */
  readonly executable: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly live: Map<string, LiveRun>;
  /** Tickets whose launch failed, by id. */
  readonly launches: Backoff;
  readonly conditions: Conditions;
  readonly openWorkerDoor: OpenWorkerDoor;
  /** Runs `job` after everything queued before it, a pass behind it; its result is handed on. */
  enqueue<T>(job: () => T | Promise<T>): Promise<T>;
  /** Asks for a pass soon. */
  poke(): void;
  /** Ends the daemon once what is being answered was written; `restart` makes way for a successor with our pid. */
  shutDown(why?: DaemonEnd): void;
};

// Worktrees and branches of settled runs go after their retention, never before what is in them was kept (engine.md 15.3).

import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { shortId } from "../core/ids.ts";
import { keepUncommitted } from "../git/keep.ts";
import { dropKept, keepDetached, keepTip, listKeptRuns } from "../git/kept-refs.ts";
import { removeWorktree } from "../git/worktree.ts";
import {
  type ForgottenCursor,
  listCleanable,
  listForgotten,
  type Resolution,
  recordCleaned,
  recordKept,
  resolvedAt,
} from "../store/retention.ts";
import type { RunRow } from "../store/tables.ts";
import { type Backoff, openBackoff } from "./backoff.ts";
import type { Daemon } from "./context.ts";
import { recordDropped } from "./dropped-runs.ts";

const atOnce = 16;
/** How many runs that are not due yet are looked at for a directory that is gone already. */
const lookedAt = 200;
const hourlyMs = 60 * 60_000;
/** What cannot be cleaned is seldom cured soon, and every try is a warning. */
const backoffLimits = { firstMs: 5_000, longestMs: 6 * 60 * 60_000 };

type Workspace = { run: RunRow; worktree: string; branch: string };

function workspaceOf(run: RunRow): Workspace[] {
  const { worktreePath: worktree, branch } = run;
  return worktree === null || branch === null ? [] : [{ run, worktree, branch }];
}

/** Runs whose cleanup failed, and when each is tried again; in memory only. */
type Failing = { ids: Set<string>; backoff: Backoff };

/** Those left alone for now must not take the place of others. */
function listReady(
  daemon: Daemon,
  failing: Failing,
  { untilMs, most }: { untilMs: number | null; most: number },
): RunRow[] {
  const ready = (run: RunRow) => !daemon.live.has(run.id) && !failing.backoff.holds(run.id);
  return listCleanable(daemon.store.db, untilMs, most + failing.ids.size).filter(ready);
}

/** Workspaces whose time has come, and with `gone` those whose directory somebody took away. */
function dueRuns(daemon: Daemon, failing: Failing, { untilMs, gone }: { untilMs: number; gone: boolean }): Workspace[] {
  const due = listReady(daemon, failing, { untilMs, most: atOnce }).slice(0, atOnce);
  const all = gone ? listReady(daemon, failing, { untilMs: null, most: lookedAt }) : [];
  const missing = all.filter((run) => run.worktreePath !== null && !existsSync(run.worktreePath));
  const chosen = new Map([...due, ...missing].map((run) => [run.id, run]));
  return [...chosen.values()].flatMap(workspaceOf);
}

/** A look at every directory is for ticks, not for every pass of a busy daemon. */
const goneEveryMs = 2000;

/** Throws unless everything that only this worktree or branch has is kept. */
async function keep(daemon: Daemon, { run, worktree, branch }: Workspace): Promise<void> {
  const { root } = daemon.paths;
  const wip = await keepUncommitted({ root, worktree, branch, runId: run.id });
  if (wip !== null) await daemon.enqueue(() => recordKept(daemon.store, run.id, wip, daemon.clock.now()));
  await keepTip({ root, branch, runId: run.id });
  await keepDetached({ root, branch, worktree, runId: run.id });
}

async function remove(daemon: Daemon, { run, worktree, branch }: Workspace, withBranch: boolean): Promise<void> {
  // Only what is named as our worktrees are is ever removed past git, whatever a row says.
  const saved = basename(worktree) === shortId(run.id);
  const removed = await removeWorktree({
    root: daemon.paths.root,
    path: worktree,
    branch: withBranch ? branch : null,
    saved,
  });
  if (!removed.ok) throw new Error(removed.problem);
}

async function clean(daemon: Daemon, workspace: Workspace): Promise<void> {
  const { run, worktree, branch } = workspace;
  await keep(daemon, workspace);
  await remove(daemon, workspace, true);
  await daemon.enqueue(() => recordCleaned(daemon.store, run, daemon.clock.now()));
  const fields = { run_id: run.id, ticket_id: run.ticketId, branch, worktree };
  daemon.log.info("sloop::dispatcher", "run_worktree_cleaned", fields);
}

/** A run nobody ever resolved loses its directory only: the branch, and what was uncommitted, outlive it. */
async function forget(daemon: Daemon, workspace: Workspace): Promise<void> {
  await keep(daemon, workspace);
  await remove(daemon, workspace, false);
}

/**
 * The next runs nobody resolved whose directory is still there. What lies before `after` was looked at: a run is settled
 * once, so later ones only ever come behind it.
 */
function nextForgotten(
  daemon: Daemon,
  untilMs: number,
  after: ForgottenCursor | null,
): { found: Workspace[]; last: ForgottenCursor | null } {
  let last = after;
  for (;;) {
    const page = listForgotten(daemon.store.db, { untilMs, after: last, limit: lookedAt });
    const end = page.at(-1);
    if (end === undefined) return { found: [], last };
    last = { exitedAtMs: end.exitedAtMs ?? 0, id: end.id };
    const found = page.flatMap(workspaceOf).filter(({ worktree }) => existsSync(worktree));
    if (found.length > 0) return { found, last };
  }
}

/**
 * When a run's hidden references may go (epoch ms); null while that is open. What a late cleanup kept only after they were
 * due gets the whole time from then on.
 */
function dueAt({ atMs, cleanedAtMs }: Resolution, evidenceMs: number): number | null {
  if (atMs === null) return null;
  const due = atMs + evidenceMs;
  return cleanedAtMs !== null && cleanedAtMs >= due ? cleanedAtMs + evidenceMs : due;
}

/** Hidden refs go `evidence_retention` after their ticket was resolved, or its row was first missed; never before. */
async function dropRefs(daemon: Daemon, evidenceMs: number): Promise<void> {
  const now = daemon.clock.now();
  const kept = await listKeptRuns(daemon.paths.root);
  const runs = kept.map((runId) => ({ runId, resolution: resolvedAt(daemon.store.db, runId) }));
  const missed = runs.filter(({ resolution }) => !resolution.known).map(({ runId }) => runId);
  const dropped = recordDropped(join(daemon.paths.stateDir, "dropped-runs.json"), missed, now);
  for (const { runId, resolution } of runs) {
    const due = resolution.known ? dueAt(resolution, evidenceMs) : (dropped.get(runId) ?? now) + evidenceMs;
    if (due === null || now < due) continue;
    try {
      await dropKept(daemon.paths.root, runId);
    } catch (error) {
      const fields = { run_id: runId, error: String(error) };
      daemon.log.warn("sloop::dispatcher", "kept_references_not_dropped", fields);
    }
  }
}

export type Retention = { look(): void };

/** Cleans beside the pass, one workspace at a time; what fails is tried again at a later look, ever more seldom. */
export function openRetention(daemon: Daemon): Retention {
  const failing: Failing = { ids: new Set(), backoff: openBackoff(() => performance.now(), backoffLimits) };
  const forgotten = { after: null as ForgottenCursor | null, again: new Map<string, Workspace>() };
  let busy = false;
  let hourAt = Number.NEGATIVE_INFINITY;
  let goneAt = Number.NEGATIVE_INFINITY;

  /** Whether it went well. */
  async function attempt(workspace: Workspace, act: typeof clean): Promise<boolean> {
    const { run, worktree } = workspace;
    try {
      await act(daemon, workspace);
      failing.ids.delete(run.id);
      failing.backoff.clear(run.id);
      return true;
    } catch (error) {
      failing.ids.add(run.id);
      failing.backoff.fail(run.id, String(error));
      const fields = { run_id: run.id, worktree, error: String(error) };
      daemon.log.warn("sloop::dispatcher", "run_worktree_cleanup_failed", fields);
      return false;
    }
  }

  async function forgetAll(untilMs: number): Promise<void> {
    const { found, last } = nextForgotten(daemon, untilMs, forgotten.after);
    forgotten.after = last;
    const again = [...forgotten.again.values()];
    const chosen = new Map([...found, ...again].map((workspace) => [workspace.run.id, workspace]));
    for (const [id, workspace] of chosen) {
      forgotten.again.set(id, workspace);
      if (failing.backoff.holds(id)) continue;
      if (await attempt(workspace, forget)) forgotten.again.delete(id);
    }
  }

  async function cleanAll(retentionMs: number): Promise<void> {
    const now = daemon.clock.now();
    const { evidenceRetentionMs } = daemon.config;
    const gone = performance.now() - goneAt >= goneEveryMs;
    if (gone) goneAt = performance.now();
    for (const workspace of dueRuns(daemon, failing, { untilMs: now - retentionMs, gone })) {
      await attempt(workspace, clean);
    }
    if (evidenceRetentionMs === null) return;
    await forgetAll(now - evidenceRetentionMs);
    if (now - hourAt < hourlyMs) return;
    hourAt = now;
    forgotten.after = null;
    await dropRefs(daemon, evidenceRetentionMs);
  }

  return {
    look() {
      const retentionMs = daemon.config.worktreeRetentionMs;
      if (busy || retentionMs === null) return;
      busy = true;
      void cleanAll(retentionMs)
        .catch((error) =>
          daemon.log.warn("sloop::dispatcher", "worktree_cleanup_scan_failed", { error: String(error) }),
        )
        .finally(() => {
          busy = false;
        });
    },
  };
}

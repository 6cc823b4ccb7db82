// Worktrees and branches of settled runs go after their retention, never before what is in them was kept (engine.md 15.3).

import { existsSync } from "node:fs";
import { dropKept, keepTip, keepUncommitted, listKeptRuns } from "../git/keep.ts";
import { removeWorktree } from "../git/worktree.ts";
import { listCleanable, listForgotten, recordCleaned, resolvedAt } from "../store/retention.ts";
import type { RunRow } from "../store/tables.ts";
import type { Daemon } from "./context.ts";

const atOnce = 16;
/** How many runs that are not due yet are looked at for a directory that is gone already. */
const lookedAt = 200;
const refsEveryMs = 60 * 60_000;

type Workspace = { run: RunRow; worktree: string; branch: string };

function workspaceOf(run: RunRow): Workspace[] {
  const { worktreePath: worktree, branch } = run;
  return worktree === null || branch === null ? [] : [{ run, worktree, branch }];
}

function dueRuns(daemon: Daemon, now: number, retentionMs: number): Workspace[] {
  const due = listCleanable(daemon.store.db, now - retentionMs, atOnce);
  const gone = listCleanable(daemon.store.db, null, lookedAt).filter(
    (run) => run.worktreePath !== null && !existsSync(run.worktreePath),
  );
  const chosen = new Map([...due, ...gone].map((run) => [run.id, run]));
  return [...chosen.values()].filter((run) => !daemon.live.has(run.id)).flatMap(workspaceOf);
}

async function keep(daemon: Daemon, { run, worktree, branch }: Workspace): Promise<void> {
  const { root } = daemon.paths;
  if (existsSync(worktree)) await keepUncommitted({ root, worktree, runId: run.id });
  await keepTip({ root, branch, runId: run.id });
}

async function remove(daemon: Daemon, { worktree, branch }: Workspace, withBranch: boolean): Promise<void> {
  const request = { root: daemon.paths.root, path: worktree, branch: withBranch ? branch : null };
  const removed = await removeWorktree(request);
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
  if (!existsSync(workspace.worktree)) return;
  await keep(daemon, workspace);
  await remove(daemon, workspace, false);
}

/** Hidden refs go `evidence_retention` after their ticket was resolved, or its row dropped; never before. */
async function dropRefs(daemon: Daemon, evidenceMs: number): Promise<void> {
  const now = daemon.clock.now();
  for (const { runId, keptAtMs } of await listKeptRuns(daemon.paths.root)) {
    const { known, atMs } = resolvedAt(daemon.store.db, runId);
    const since = known ? atMs : keptAtMs;
    if (since !== null && now - since >= evidenceMs) await dropKept(daemon.paths.root, runId);
  }
}

export type Retention = { look(): void };

/** Cleans beside the pass, one workspace at a time; what fails is tried again at a later look. */
export function openRetention(daemon: Daemon): Retention {
  let busy = false;
  let refsAt = Number.NEGATIVE_INFINITY;

  async function each(workspaces: Workspace[], act: (workspace: Workspace) => Promise<void>): Promise<void> {
    for (const workspace of workspaces) {
      try {
        await act(workspace);
      } catch (error) {
        const fields = { run_id: workspace.run.id, worktree: workspace.worktree, error: String(error) };
        daemon.log.warn("sloop::dispatcher", "run_worktree_cleanup_failed", fields);
      }
    }
  }

  async function cleanAll(retentionMs: number): Promise<void> {
    const now = daemon.clock.now();
    const { evidenceRetentionMs } = daemon.config;
    await each(dueRuns(daemon, now, retentionMs), (workspace) => clean(daemon, workspace));
    if (evidenceRetentionMs === null) return;
    const forgotten = listForgotten(daemon.store.db, now - evidenceRetentionMs, lookedAt).flatMap(workspaceOf);
    await each(forgotten, (workspace) => forget(daemon, workspace));
    if (now - refsAt < refsEveryMs) return;
    refsAt = now;
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

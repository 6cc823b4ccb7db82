// Where a run works: its branch and its worktree, opened once and taken back when the launch comes to nothing.

import { join } from "node:path";
import { runBranch, shortId } from "../core/ids.ts";
import { addWorktree, removeWorktree } from "../git/worktree.ts";
import { beginRun } from "../store/runs.ts";
import type { RunRow } from "../store/tables.ts";
import type { Daemon } from "./context.ts";

type Named = Pick<RunRow, "id" | "ticketId" | "attempt">;

/** A claimed run's worktree and branch, by its id. */
export function workspaceOf(daemon: Daemon, run: Named): { worktree: string; branch: string } {
  return {
    worktree: join(daemon.paths.root, daemon.config.worktreeDir, shortId(run.id)),
    branch: runBranch(run.ticketId, run.attempt, run.id),
  };
}

export type Opening =
  | { kind: "opened" }
  /** `created`: the workspace was made and has to be taken back. */
  | { kind: "failed"; problem: string; created: boolean }
  /** Somebody else owns the run. */
  | { kind: "taken" };

/** Makes branch and worktree at the commit `tip`, and records that the run has begun. */
export async function openWorkspace(daemon: Daemon, run: RunRow, tip: string): Promise<Opening> {
  const { worktree: path, branch } = workspaceOf(daemon, run);
  const added = await addWorktree({ root: daemon.paths.root, path, branch, startPoint: tip });
  if (!added.ok) return { kind: "failed", problem: added.problem, created: false };
  const workspace = { id: run.id, ticketId: run.ticketId, branch, worktreePath: path };
  try {
    const begun = daemon.store.write((tx) => beginRun(tx, workspace, daemon.clock.now()));
    return { kind: begun ? "opened" : "taken" };
  } catch (error) {
    const problem = `the run's begin cannot be stored: ${error instanceof Error ? error.message : String(error)}`;
    return { kind: "failed", problem, created: true };
  }
}

/** Takes a workspace back in which nothing ever ran. */
export async function takeBackWorkspace(daemon: Daemon, run: Named): Promise<void> {
  const { worktree: path, branch } = workspaceOf(daemon, run);
  await removeWorktree({ root: daemon.paths.root, path, branch });
}

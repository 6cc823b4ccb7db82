// Rebuilds the index: read, decide, prepare the stamps, write in one transaction, stamp (files.md 13.2). Requests go on meanwhile.

import { SloopError } from "../core/errors.ts";
import { runAlias } from "../core/ids.ts";
import { type Reindex, type ReindexEnd, readBasis, type StateChange, writeReindex } from "../store/reindex.ts";
import { listUnsettled } from "../store/runs.ts";
import type { RunRow } from "../store/tables.ts";
import type { Daemon } from "./context.ts";
import { type ProjectPlan, planProjects, warnOfProjects } from "./projects.ts";
import { gatherEvidence } from "./reindex-evidence.ts";
import { type PlannedTicket, planTickets } from "./reindex-plan.ts";
import { cannotReindex, readSource } from "./reindex-read.ts";
import { dropStamps, placeStamps, prepareStamps, type ReadyStamp } from "./stamping.ts";

export type Reindexed = {
  projectsIndexed: number;
  ticketsIndexed: number;
  stateChanges: StateChange[];
  rowsDropped: number;
};

/** How often it is begun anew because the index changed under it. */
const tries = 5;

function activeConflict(active: readonly RunRow[]): SloopError {
  const runs = active.length === 1 ? "1 run is" : `${active.length} runs are`;
  const aliases = active.map((run) => runAlias(run.ticketId, run.attempt)).join(", ");
  return new SloopError(
    "conflict",
    `${runs} active: ${aliases}; \`sloop reindex --wait\` waits for them, \`sloop cancel\` ends one; a review branch that was merged by hand settles by itself`,
  );
}

function readProjects(daemon: Daemon): ProjectPlan {
  const refuse = (problem: string) => new SloopError("internal", `cannot reindex projects: ${problem}`);
  let plan: ProjectPlan;
  try {
    plan = planProjects({ root: daemon.paths.root, config: daemon.config });
  } catch (error) {
    throw refuse(error instanceof Error ? error.message : String(error));
  }
  if (plan.projects.length > 0) return plan;
  const left = plan.warnings.map((warning) => `; ${warning}`).join("");
  throw refuse(`no project is indexed: ${daemon.config.projectDir} has no project file${left}`);
}

async function prepare(projects: ProjectPlan, planned: readonly PlannedTicket[]): Promise<ReadyStamp[]> {
  const stamps = planned.flatMap(({ stamp }) => (stamp === null ? [] : [stamp]));
  try {
    return await prepareStamps([...projects.stamps, ...stamps]);
  } catch (error) {
    throw cannotReindex(error instanceof Error ? error.message : String(error));
  }
}

/** Writes what was decided in its turn among the requests; null when it was stale, and nothing was written. */
async function carryOut(daemon: Daemon, reindex: Reindex): Promise<(ReindexEnd & { kind: "written" }) | null> {
  const end = await daemon.enqueue(() => writeReindex(daemon.store, reindex, daemon.clock.now()));
  switch (end.kind) {
    case "active":
      throw activeConflict(end.runs);
    case "moved":
      return null;
    case "written":
      return end;
  }
}

async function attempt(daemon: Daemon): Promise<Reindexed | null> {
  const basis = readBasis(daemon.store);
  const projects = readProjects(daemon);
  const source = await readSource(daemon);
  const world = {
    agent: daemon.config.agent,
    ticketPrefix: daemon.config.ticketPrefix,
    flows: daemon.flows,
    projects: projects.projects.map(({ id }) => id),
    known: basis.known,
  };
  const planned = await planTickets(source, world);
  const evidence = await gatherEvidence(daemon, planned);
  for (const ticket of planned) ticket.evidence = evidence.get(ticket.id) ?? null;
  const stamps = await prepare(projects, planned);
  try {
    const end = await carryOut(daemon, { projects: projects.projects, tickets: planned, basis });
    if (end === null) return null;
    warnOfProjects(daemon.log, projects);
    await place(daemon, stamps.splice(0));
    return {
      projectsIndexed: new Set(world.projects).size,
      ticketsIndexed: planned.length,
      stateChanges: end.stateChanges,
      rowsDropped: end.rowsDropped,
    };
  } finally {
    dropStamps(stamps);
  }
}

/**
 * Puts the stamps in place. A file that was edited meanwhile keeps its edit; one whose name cannot be replaced is an error of
 * its own, since the index is written already. Either is stamped by the next reindex.
 */
async function place(daemon: Daemon, stamps: readonly ReadyStamp[]): Promise<void> {
  const { edited, failed } = await placeStamps(stamps);
  for (const problem of edited) daemon.log.warn("sloop::dispatcher", "file_not_stamped", { problem });
  if (failed.length === 0) return;
  throw new SloopError("internal", `the index is rebuilt, but ${failed.join("; ")}; run \`sloop reindex\` again`);
}

async function rebuild(daemon: Daemon): Promise<Reindexed> {
  for (let left = tries; left > 0; left -= 1) {
    if (daemon.conditions.stopping) throw new SloopError("daemon_unavailable", "the daemon is stopping");
    const active = listUnsettled(daemon.store.db);
    if (active.length > 0) throw activeConflict(active);
    const done = await attempt(daemon);
    if (done !== null) return done;
  }
  throw cannotReindex(`tickets were registered faster than they could be read, ${tries} times in a row`);
}

const running = new WeakMap<Daemon, Promise<unknown>>();

/**
 * Rebuilds the index from project files, the ticket source and git; one after another, however many ask. Rejects with
 * SloopError: `conflict` while a run is active, `internal` when the source or git cannot be read or two things contradict each
 * other; nothing was changed then.
 */
export async function reindexAll(daemon: Daemon): Promise<Reindexed> {
  const mine = (running.get(daemon) ?? Promise.resolve()).then(() => rebuild(daemon));
  running.set(
    daemon,
    mine.catch(() => undefined),
  );
  return await mine;
}

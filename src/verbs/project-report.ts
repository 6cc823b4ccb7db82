// Project detail: its tickets, what workers noted, and the commits observed on their runs' branches (protocol.md 7.10).

import { runAlias } from "../core/ids.ts";
import type { Daemon } from "../daemon/context.ts";
import { type CommitText, readCommits } from "../git/commits.ts";
import type { ProjectCommit, ProjectDetail, ProjectNote, ProjectTicket } from "../protocol/replies.ts";
import {
  listNotes,
  listObservedCommits,
  listProjectTickets,
  listRunsOfTickets,
  type RunOfTicket,
} from "../store/project-report.ts";
import { type ListedTicket, listLatestRejections } from "../store/report.ts";
import { listCooldowns } from "../store/scheduler.ts";
import type { ProjectRow } from "../store/tables.ts";
import { classificationOf, shownRejection, targetOf } from "./rows.ts";

type Named = { run: string; run_id: string };

function nameOf(run: RunOfTicket): Named {
  return { run: runAlias(run.ticketId, run.attempt), run_id: run.id };
}

function grouped<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

type Draft = Omit<ProjectTicket, "commits"> & { oids: (Named & { oid: string })[] };

/** Everything the database tells, read at one moment; what git tells comes later. */
function draftTickets(daemon: Daemon, project: ProjectRow): Draft[] {
  const q = daemon.store.db;
  const tickets = listProjectTickets(q, project.id);
  const ids = tickets.map((ticket) => ticket.id);
  const runs = listRunsOfTickets(q, ids);
  const runIds = runs.map((run) => run.id);
  const byTicket = grouped(runs, (run) => run.ticketId);
  const byId = new Map(runs.map((run) => [run.id, run]));
  const notes = grouped(listNotes(q, runIds), (note) => byId.get(note.runId)?.ticketId);
  const observed = listObservedCommits(q, runIds);
  const rejections = listLatestRejections(q, ids);
  const now = daemon.clock.now();
  const world = { now, cooldowns: listCooldowns(q, now) };

  return tickets.map((ticket: ListedTicket) => {
    const latest = rejections.get(ticket.id) ?? null;
    const shown = shownRejection(ticket, targetOf(daemon, ticket), latest, world);
    const own = byTicket.get(ticket.id) ?? [];
    return {
      id: ticket.id,
      name: ticket.name,
      state: ticket.state,
      reason: shown?.diagnostic ?? null,
      classification: classificationOf(shown),
      notes: (notes.get(ticket.id) ?? []).flatMap((note): ProjectNote[] => {
        const run = byId.get(note.runId);
        if (run === undefined) return [];
        return [{ id: note.id, ...nameOf(run), text: note.text, recorded_at_ms: note.recordedAtMs }];
      }),
      oids: own.flatMap((run) => (observed.get(run.id) ?? []).map((oid) => ({ ...nameOf(run), oid }))),
    };
  });
}

function commitsOf(draft: Draft, texts: ReadonlyMap<string, CommitText>): ProjectCommit[] {
  return draft.oids.flatMap(({ run, run_id, oid }) => {
    const text = texts.get(oid);
    return text === undefined ? [] : [{ run, run_id, hash: text.hash, message: text.message }];
  });
}

/** `value` of `show <project>`. Resolves once git has read the commits. */
export async function projectDetail(daemon: Daemon, project: ProjectRow): Promise<ProjectDetail> {
  const drafts = draftTickets(daemon, project);
  const oids = drafts.flatMap((draft) => draft.oids.map(({ oid }) => oid));
  const texts = await readCommits(daemon.paths.root, oids);
  return {
    id: project.id,
    title: project.title,
    file: project.filePath,
    tickets: drafts.map(({ oids: _, ...ticket }, index) => ({
      ...ticket,
      commits: commitsOf(drafts[index] as Draft, texts),
    })),
  };
}

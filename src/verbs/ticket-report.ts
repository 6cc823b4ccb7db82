// Ticket detail, for the operator and, shorter, for the worker on it (protocol.md 7.10, 8.2).

import { join } from "node:path";
import type { Daemon } from "../daemon/context.ts";
import { splitFrontmatter } from "../parse/frontmatter.ts";
import { decodeUtf8 } from "../parse/source.ts";
import type { TicketDetail, WorkerTicketDetail } from "../protocol/replies.ts";
import { listRunsOf } from "../store/reference.ts";
import { listLatestRejections } from "../store/report.ts";
import { listCooldowns } from "../store/scheduler.ts";
import type { TicketRow } from "../store/tables.ts";
import { listBlockers } from "../store/tickets.ts";
import { listTriggersFor } from "../store/triggers.ts";
import { fileSource } from "../system/files.ts";
import { classificationOf, shownRejection, targetOf } from "./rows.ts";
import { reportRuns, runSummary } from "./run-report.ts";

/** What both callers are shown. */
export function workerTicketDetail(daemon: Daemon, ticket: TicketRow): WorkerTicketDetail {
  const q = daemon.store.db;
  const now = daemon.clock.now();
  const latest = listLatestRejections(q, [ticket.id]).get(ticket.id) ?? null;
  const shown = shownRejection(ticket, targetOf(daemon, ticket), latest, { cooldowns: listCooldowns(q, now), now });
  return {
    id: ticket.id,
    name: ticket.name,
    project: ticket.projectId,
    state: ticket.state,
    file: ticket.filePath,
    blocked_by: listBlockers(q, ticket.id).map((blocker) => blocker.id),
    worktree: ticket.worktree,
    target: ticket.target,
    model: ticket.model,
    effort: ticket.effort,
    reason: shown?.diagnostic ?? null,
    classification: classificationOf(shown),
  };
}

function fileBody(path: string): string {
  const bytes = fileSource.read(path);
  const text = bytes === null ? null : decodeUtf8(bytes);
  if (text === null) return "";
  const split = splitFrontmatter(text);
  if (split.kind === "error") return "";
  return (split.kind === "block" ? text.slice(split.bodyStart) : text).trim();
}

/** The body as it is now; `""` when the file cannot be read. */
function bodyOf(daemon: Daemon, ticket: TicketRow): string {
  if (ticket.filePath === null) return (ticket.body ?? "").trim();
  try {
    return fileBody(join(daemon.paths.root, ticket.filePath));
  } catch {
    return "";
  }
}

/** `value` of `show <ticket>`. */
export function ticketDetail(daemon: Daemon, ticket: TicketRow): TicketDetail {
  const q = daemon.store.db;
  return {
    ...workerTicketDetail(daemon, ticket),
    runs: reportRuns(daemon, listRunsOf(q, ticket.id)).map(runSummary),
    queued_triggers: listTriggersFor(q, ticket, "age").map((trigger) => trigger.id),
    body: bodyOf(daemon, ticket),
  };
}

// `show`: the dashboard, or whatever a reference means (protocol.md 5.3, 7.10).

import type { Pattern } from "../core/pattern.ts";
import { newestFirst } from "../core/recency.ts";
import type { Daemon } from "../daemon/context.ts";
import type { Dashboard, Matches } from "../protocol/replies.ts";
import { listMatching } from "../store/names.ts";
import { countAllTickets, listInStates, listRecent } from "../store/report.ts";
import { readTicket } from "../store/tickets.ts";
import type { Handler } from "./handler.ts";
import { requireLimit } from "./list.ts";
import { projectDetail } from "./project-report.ts";
import { resolveShown } from "./reference.ts";
import { readRowFacts, ticketRows } from "./rows.ts";
import { reportRuns, runDetail } from "./run-report.ts";
import { statusOf } from "./status.ts";
import { ticketDetail } from "./ticket-report.ts";

const defaultRecent = 10;

function dashboard(daemon: Daemon, limit: number): Dashboard {
  const q = daemon.store.db;
  const facts = readRowFacts(daemon);
  const attention = newestFirst(listInStates(q, ["needs_review", "failed"]), null).map((ticket) => ticket.id);
  return {
    kind: "dashboard",
    ...statusOf(daemon, facts).status,
    attention: ticketRows(daemon, attention, facts),
    recent: ticketRows(daemon, listRecent(q, limit), facts),
    recent_total: countAllTickets(q),
    recent_limit: limit,
  };
}

function matches(daemon: Daemon, ref: string, pattern: Pattern, limit: number | null): Matches {
  const ids = newestFirst(listMatching(daemon.store, pattern), limit).map((ticket) => ticket.id);
  return { kind: "matches", ref, tickets: ticketRows(daemon, ids, readRowFacts(daemon)) };
}

export const show: Handler<"show"> = (daemon, args) => {
  const ref = args.ref ?? null;
  if (ref === null) return dashboard(daemon, requireLimit(args.limit) ?? defaultRecent);
  const q = daemon.store.db;
  const shown = resolveShown(q, ref);
  switch (shown.kind) {
    case "ticket":
      return { kind: "ticket", ref, value: ticketDetail(daemon, shown.ticket) };
    case "run": {
      const [report] = reportRuns(daemon, [shown.run]);
      const name = readTicket(q, shown.run.ticketId)?.name ?? null;
      return { kind: "run", ref, value: runDetail(report as NonNullable<typeof report>, name) };
    }
    case "project":
      return projectDetail(daemon, shown.project).then((value) => ({ kind: "project", ref, value }));
    case "matches":
      return matches(daemon, ref, shown.pattern, requireLimit(args.limit));
  }
};

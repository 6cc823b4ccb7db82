// `show` on a worker's socket: its own ticket as it is now, and nothing else, existing or not (protocol.md 8.2).

import { SloopError } from "../core/errors.ts";
import type { Daemon } from "../daemon/context.ts";
import type { WorkerTicketDetail } from "../protocol/replies.ts";
import type { Params } from "../protocol/verbs.ts";
import { readRun } from "../store/runs.ts";
import { readTicket } from "../store/tickets.ts";
import type { WorkerCaller } from "./handler.ts";
import { workerTicketDetail } from "./ticket-report.ts";

/** Throws SloopError `unauthorized` for any reference but the run's ticket id, and for any limit. */
export function workerShow(daemon: Daemon, args: Params<"show">, caller: WorkerCaller): WorkerTicketDetail {
  const q = daemon.store.db;
  const ticketId = readRun(q, caller.scope.runId)?.ticketId;
  const asked = args.limit == null && args.ref != null ? args.ref : null;
  const ticket = asked !== null && asked === ticketId ? readTicket(q, ticketId) : null;
  if (ticket === null)
    throw new SloopError("unauthorized", "a worker may be shown its own ticket only, by its exact id");
  return workerTicketDetail(daemon, ticket);
}

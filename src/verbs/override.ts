// Moving a ticket by hand between `ready` and `held`, shared by the two verbs that do it.

import { SloopError } from "../core/errors.ts";
import type { Daemon } from "../daemon/context.ts";
import type { OverrideReply } from "../protocol/replies.ts";
import type { Queries } from "../store/open.ts";
import type { TicketRow } from "../store/tables.ts";
import { moveTicket, readTicket } from "../store/tickets.ts";

/** The ticket with exactly that id. Throws SloopError `not_found`. */
export function requireTicket(q: Queries, id: string): TicketRow {
  const row = readTicket(q, id);
  if (row === null) {
    throw new SloopError("not_found", `ticket \`${id}\` does not exist`, { hint: "`sloop list` shows every ticket" });
  }
  return row;
}

/** The refusal of a move that the ticket's state forbids. */
export function wrongState(row: TicketRow, wanted: string): SloopError {
  return new SloopError("conflict", `ticket \`${row.id}\` is \`${row.state}\` and cannot become \`${wanted}\` by hand`);
}

/** `hold` and `ready`: asking for the state it has succeeds and changes nothing. Throws `not_found` and `conflict`. */
export function override(
  daemon: Daemon,
  id: string,
  move: { from: "ready" | "held"; to: "ready" | "held" },
): OverrideReply {
  const previous = daemon.store.write((tx) => {
    const row = requireTicket(tx, id);
    if (row.state !== move.to && !moveTicket(tx, id, { from: [move.from], to: move.to }, daemon.clock.now())) {
      throw wrongState(row, move.to);
    }
    return row.state;
  });
  return { ticket: id, previous_state: previous, state: move.to, overridden: previous !== move.to };
}

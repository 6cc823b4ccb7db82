// `retry`: make a failed ticket ready again; queues nothing.

import { releaseWorktrees } from "../store/runs.ts";
import { moveTicket } from "../store/tickets.ts";
import type { Handler } from "./handler.ts";
import { requireTicket, wrongState } from "./override.ts";

export const retry: Handler<"retry"> = (daemon, args) => {
  const now = daemon.clock.now();
  daemon.store.write((tx) => {
    const row = requireTicket(tx, args.ticket);
    if (!moveTicket(tx, row.id, { from: ["failed"], to: "ready", attempts: 0 }, now)) throw wrongState(row, "ready");
    releaseWorktrees(tx, row.id, ["failed"], now);
  });
  return { ticket: args.ticket, previous_state: "failed", state: "ready" };
};

// `list`: ticket rows, newest first.

import { SloopError } from "../core/errors.ts";
import { type DisplayState, displayStates } from "../core/ticket.ts";
import { projectIndexed } from "../store/projects.ts";
import { listRecent } from "../store/report.ts";
import type { Handler } from "./handler.ts";
import { readRowFacts, ticketRows } from "./rows.ts";

/** A row limit that counts: null for none. Throws `invalid_arguments` for zero. */
export function requireLimit(limit: number | null | undefined): number | null {
  if (limit === 0) throw new SloopError("invalid_arguments", "`limit` must not be zero");
  return limit ?? null;
}

function requireStates(words: readonly string[]): DisplayState[] {
  const states: readonly string[] = displayStates;
  const unknown = words.find((word) => !states.includes(word));
  if (unknown === undefined) return words as DisplayState[];
  const known = displayStates.map((state) => `\`${state}\``).join(", ");
  throw new SloopError("invalid_arguments", `\`${unknown}\` is no ticket state; the states are ${known}`);
}

export const list: Handler<"list"> = (daemon, args) => {
  const q = daemon.store.db;
  const limit = requireLimit(args.limit);
  const states = requireStates(args.states ?? []);
  const projectId = args.project ?? null;
  if (projectId !== null && !projectIndexed(q, projectId)) {
    throw new SloopError("not_found", `project \`${projectId}\` is not indexed`);
  }
  const ids = listRecent(q, limit, { projectId, states });
  return { tickets: ticketRows(daemon, ids, readRowFacts(daemon)) };
};

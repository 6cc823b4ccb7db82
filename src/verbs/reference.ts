// What a reference means: the ladder of `logs`, `wait` and `cancel`, and that of `show` and `events` (protocol.md 5.2, 5.3).

import { SloopError } from "../core/errors.ts";
import { parseAlias, runAlias, shortId } from "../core/ids.ts";
import { compilePattern, type Pattern } from "../core/pattern.ts";
import type { Queries } from "../store/open.ts";
import { readProject } from "../store/project-report.ts";
import { listByPrefix, listEarlierAttempts, readRunByAttempt } from "../store/reference.ts";
import { latestRun, readRun } from "../store/runs.ts";
import type { ProjectRow, RunRow, TicketRow } from "../store/tables.ts";
import { readTicket, ticketNamed } from "../store/tickets.ts";

const hexPrefix = /^[0-9a-fA-F]{4,32}$/;

function runByAlias(q: Queries, text: string): RunRow | null {
  const alias = parseAlias(text);
  return alias === null ? null : readRunByAttempt(q, alias.ticketId, alias.attempt);
}

/** The one run whose id starts so; null when there is none. Throws `invalid_arguments` when there are several. */
function runByPrefix(q: Queries, text: string): RunRow | null {
  if (!hexPrefix.test(text)) return null;
  const found = listByPrefix(q, text.toLowerCase());
  if (found.length < 2) return found[0] ?? null;
  const candidates = found.map((run) => `  ${shortId(run.id)} ${runAlias(run.ticketId, run.attempt)}`);
  throw new SloopError(
    "invalid_arguments",
    [
      `run reference \`${text}\` is ambiguous: ${found.length} runs start with it`,
      ...candidates,
      "give more characters, or an alias",
    ].join("\n"),
  );
}

function ticketByName(q: Queries, name: string): TicketRow | null {
  const id = ticketNamed(q, name);
  return id === null ? null : readTicket(q, id);
}

export type ResolvedRun = {
  run: RunRow;
  /** Says which run of a ticket was taken, when the reference named the ticket and earlier attempts were passed over. */
  note: string | null;
};

function latestOf(q: Queries, ticket: TicketRow): ResolvedRun {
  const run = latestRun(q, ticket.id);
  if (run === null) {
    throw new SloopError(
      "not_found",
      `ticket \`${ticket.id}\` has no runs yet; start one with \`sloop run ${ticket.id}\``,
    );
  }
  const earlier = listEarlierAttempts(q, ticket.id, run.attempt);
  if (earlier.length === 0) return { run, note: null };
  const passed = earlier.map((attempt) => `r${attempt}`).join(", ");
  return { run, note: `showing ${runAlias(ticket.id, run.attempt)}; earlier attempts: ${passed}` };
}

/** The run a reference means (5.2). Throws SloopError `not_found`, or `invalid_arguments` for an ambiguous prefix. */
export function resolveRun(q: Queries, text: string): ResolvedRun {
  const exact = readRun(q, text) ?? runByAlias(q, text);
  if (exact !== null) return { run: exact, note: null };
  const ticket = readTicket(q, text) ?? ticketByName(q, text);
  if (ticket !== null) return latestOf(q, ticket);
  const prefixed = runByPrefix(q, text);
  if (prefixed !== null) return { run: prefixed, note: null };
  throw new SloopError(
    "not_found",
    `no run is called \`${text}\`; give an alias like \`TICK-20-r1\`, a ticket id or name, ` +
      "a run id, or at least 4 characters of one; `sloop show` lists them",
  );
}

export type Shown =
  | { kind: "ticket"; ticket: TicketRow }
  | { kind: "run"; run: RunRow }
  | { kind: "project"; project: ProjectRow }
  | { kind: "matches"; pattern: Pattern };

function exactlyShown(q: Queries, text: string): Shown | null {
  const ticket = readTicket(q, text);
  if (ticket !== null) return { kind: "ticket", ticket };
  const run = readRun(q, text);
  if (run !== null) return { kind: "run", run };
  const named = ticketByName(q, text);
  if (named !== null) return { kind: "ticket", ticket: named };
  const found = runByAlias(q, text) ?? runByPrefix(q, text);
  if (found !== null) return { kind: "run", run: found };
  const project = readProject(q, text);
  return project === null ? null : { kind: "project", project };
}

/** What a `show` reference or an `events` scope means (5.3). Throws `invalid_arguments`: ambiguous prefix, bad pattern. */
export function resolveShown(q: Queries, text: string): Shown {
  const exact = exactlyShown(q, text);
  if (exact !== null) return exact;
  const pattern = compilePattern(text);
  if (pattern === null) throw new SloopError("invalid_arguments", `invalid ticket pattern \`${text}\``);
  return { kind: "matches", pattern };
}

// The external ticket source: a command that is asked for all tickets, and told how their runs ended (files.md 12).

import { SloopError } from "../core/errors.ts";
import type { Outcome } from "../core/ticket.ts";
import { type PulledTicket, parsePulled } from "../parse/pulled.ts";
import { decodeUtf8 } from "../parse/source.ts";
import { readTicket } from "../store/tickets.ts";
import { childEnvironment } from "../system/environment.ts";
import { type OneShotEnd, runOneShot } from "../system/one-shot.ts";
import type { Daemon } from "./context.ts";

/** Far beyond any backlog, and little enough for the daemon to hold. */
const answerLimitBytes = 64 * 1_048_576;

type Asker = Pick<Daemon, "paths" | "environment">;

async function ask({ paths, environment }: Asker, argv: readonly string[], request: object): Promise<OneShotEnd> {
  return await runOneShot({
    argv,
    cwd: paths.root,
    env: childEnvironment(environment),
    input: `${JSON.stringify(request)}\n`,
    limitBytes: answerLimitBytes,
  });
}

/** Why an exchange failed by its end alone; null when the command ended well. */
function failureOf(argv: readonly string[], end: OneShotEnd): string | null {
  if (end.kind === "absent") return `cannot start \`${argv[0]}\`: ${end.cause}`;
  if (end.kind === "too-much") return `invalid ticket source output: more than ${answerLimitBytes} bytes`;
  if (end.exitCode === 0 && end.signal === null) return null;
  const how = end.signal === null ? `exit status: ${end.exitCode}` : `ended by ${end.signal}`;
  const said = end.stderr.trim();
  return `\`${argv.join(" ")}\`: ${how}${said === "" ? "" : `: ${said}`}`;
}

/** Asks the source `argv` for its tickets. Throws SloopError `internal`; nothing was changed then. */
export async function pullTickets(daemon: Asker, argv: readonly string[]): Promise<PulledTicket[]> {
  const end = await ask(daemon, argv, { verb: "pull" });
  const refuse = (problem: string) => new SloopError("internal", `cannot reindex tickets: ${problem}`);
  const failure = failureOf(argv, end);
  if (failure !== null) throw refuse(failure);
  const text = end.kind === "ended" ? decodeUtf8(end.stdout) : null;
  if (text === null) throw refuse("invalid ticket source output: it is not UTF-8");
  const pulled = parsePulled(text);
  if (!pulled.ok) throw refuse(`invalid ticket source output: ${pulled.problem}`);
  return pulled.tickets;
}

async function report(daemon: Daemon, ticketId: string, outcome: Outcome): Promise<string | null> {
  const argv = daemon.config.ticketSource;
  try {
    if (argv === null || readTicket(daemon.store.db, ticketId)?.source !== "exec") return null;
    return failureOf(argv, await ask(daemon, argv, { verb: "report", ticket: ticketId, outcome }));
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * Tells the source how a run of one of its tickets ended, or with `merged` that its branch was merged by hand. Best effort:
 * a failure is one line in the log. Other tickets, and those of a source that is not configured any more, are not reported.
 * Never rejects.
 */
export async function reportOutcome(daemon: Daemon, ticketId: string, outcome: Outcome): Promise<void> {
  const failure = await report(daemon, ticketId, outcome);
  if (failure === null) return;
  const fields = { ticket_id: ticketId, outcome, error: failure };
  daemon.log.warn("sloop::dispatcher", "work_outcome_push_failed", fields);
}

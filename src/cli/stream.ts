// Streams that only time or a run's end stops: `events --follow` and `logs --follow` (cli.md 3.9, 3.10).

import type { EventsPage, LogsPage } from "../protocol/replies.ts";
import type { Params } from "../protocol/verbs.ts";
import { checkDeadline, type Deadline, deadlineOf, pauseWithin } from "./deadline.ts";
import { renderEvent } from "./feed.ts";
import { openSession } from "./repository.ts";
import { eventsArgs, logsArgs } from "./request.ts";
import { print, refuse, subjectOf } from "./respond.ts";
import { say, sayJson } from "./say.ts";
import type { Session } from "./session.ts";
import { visibleDeep } from "./style.ts";
import { outIsTerminal } from "./terminal.ts";

/** Between two looks at the feed, or at a log, once caught up. */
export const feedPauseMs = 500;
const logsPauseMs = 200;
/** A follower starts no daemon; it waits so long for the one it had. */
export const reconnectMs = 10_000;

/** Prints a page of events: bare objects under --json, else lines. */
export async function printEvents(session: Session, page: EventsPage): Promise<void> {
  for (const event of page.events) {
    if (session.json) await sayJson(event);
    else await say(renderEvent(outIsTerminal() ? visibleDeep(event) : event));
  }
}

async function next(deadline: Deadline, caughtUp: boolean, pauseMs: number, ref: string | null): Promise<void> {
  if (caughtUp) await pauseWithin(deadline, pauseMs, ref);
  else checkDeadline(deadline, ref);
}

/** `events --follow`: until interrupted, timed out or refused. */
export async function followEvents(session: Session): Promise<number> {
  const deadline = deadlineOf(session, null);
  const client = await openSession(session);
  const { after: _after, tail: _tail, ...rest } = eventsArgs(session.values);
  let request: Params<"events"> = eventsArgs(session.values);
  for (;;) {
    const reply = await client.call("events", request);
    if (!reply.ok) return await refuse(session, client, "events", reply);
    client.startNoMore(reconnectMs);
    await printEvents(session, reply.data);
    const cursor = Number(reply.data.next_cursor);
    await next(deadline, cursor >= reply.data.latest, feedPauseMs, subjectOf(session));
    request = { ...rest, after: cursor };
  }
}

/** Pages are printed when they hold something, and once at the end if none did; `note` only with the first. */
function worthPrinting(page: LogsPage, printed: boolean): boolean {
  return page.entries.length > 0 || (page.complete && page.terminal && !printed);
}

/** `logs --follow`: from the first entry until the run is over and everything was read. */
export async function followLogs(session: Session): Promise<number> {
  const deadline = deadlineOf(session, null);
  const client = await openSession(session);
  const { tail: _tail, ...rest } = logsArgs(session.values);
  let request: Params<"logs"> = logsArgs(session.values);
  let printed = false;
  for (;;) {
    const reply = await client.call("logs", request);
    if (!reply.ok) return await refuse(session, client, "logs", reply);
    client.startNoMore(reconnectMs);
    const page = reply.data;
    if (worthPrinting(page, printed)) {
      await print(session, "logs", { ...reply, data: { ...page, note: printed ? null : page.note } });
      printed = true;
    }
    if (page.complete && page.terminal) return 0;
    await next(deadline, page.complete, logsPauseMs, rest.run);
    request = { ...rest, after: Number(page.next_cursor) };
  }
}

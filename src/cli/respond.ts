// Ends an operator command: prints the reply, or the refusal with its hint, and gives the exit code (cli.md 6).

import type { Client } from "../client/client.ts";
import type { Failure, Reply } from "../protocol/envelope.ts";
import type { Verb } from "../protocol/verbs.ts";
import type { View } from "./render.ts";
import { say, sayJson } from "./say.ts";
import { type Session, viewOf } from "./session.ts";

/** Commands whose refused arguments count as a usage error when the daemon refused them. */
const refusedIsUsage: ReadonlySet<string> = new Set(["show", "status", "watch"]);

/** What the hints are about: the ticket, run or pattern that the request named. */
export function subjectOf(session: Session): string | null {
  return session.values.words[0] ?? null;
}

async function hintOf(session: Session, client: Client, verb: Verb, reply: Failure): Promise<string | null> {
  if (session.json) return null;
  const { hintFor, nearHint } = await import("./hint.ts");
  const subject = subjectOf(session);
  if (reply.error.code !== "not_found" || subject === null || verb === "post") {
    return hintFor(verb, subject, reply.error);
  }
  if (reply.error.message.includes("has no runs yet")) return "`sloop list` says why a ticket is not running";
  const list = await client.call("list", {});
  return list.ok
    ? nearHint(
        subject,
        list.data.tickets.map((row) => row.id),
      )
    : null;
}

/** Prints a refusal; the exit code is 1, or 2 where the daemon refused what `show` was given. */
export async function refuse(session: Session, client: Client, verb: Verb, reply: Failure): Promise<number> {
  const { sayFailure } = await import("./failure.ts");
  await sayFailure(reply, session.json, await hintOf(session, client, verb, reply));
  return reply.error.code === "invalid_arguments" && refusedIsUsage.has(session.name) ? 2 : 1;
}

/** Prints `reply` in the session's mode. */
export async function print(
  session: Session,
  verb: Verb,
  reply: Reply & { ok: true },
  view: Partial<View> = {},
): Promise<void> {
  if (session.json) {
    await sayJson({ id: reply.id, ok: true, data: reply.data });
    return;
  }
  // Programs do not wait for the pages that only people read.
  const { renderReply } = await import("./render.ts");
  await say(renderReply(verb, reply.data, viewOf(session, view)));
}

/** Prints `reply` or the refusal, and gives the exit code. */
export async function respond(session: Session, client: Client, verb: Verb, reply: Reply): Promise<number> {
  if (!reply.ok) return await refuse(session, client, verb, reply);
  await print(session, verb, reply, { ref: subjectOf(session) });
  return 0;
}

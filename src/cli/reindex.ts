// `sloop reindex [--wait]`: one request, or one every two seconds until no run is in the way (cli.md 3.13).

import type { Client } from "../client/client.ts";
import { usualTimeouts } from "../client/exchange.ts";
import type { Reply } from "../protocol/envelope.ts";
import type { ReindexReply } from "../protocol/replies.ts";
import { type Deadline, deadlineOf } from "./deadline.ts";
import { openSession } from "./repository.ts";
import { respond } from "./respond.ts";
import type { Session } from "./session.ts";

const pauseMs = 2000;
/** The daemon is heard out for so long even when the time is up: its answer names what is in the way. */
const leastReplyMs = 1000;
const usualWaitMs = 3_600_000;

async function ask(client: Client, deadline: Deadline): Promise<Reply<ReindexReply>> {
  const replyMs = deadline === null ? null : Math.max(leastReplyMs, deadline - performance.now());
  return await client.call("reindex", {}, { ...usualTimeouts, replyMs });
}

/** Sleeps as long as between two tries, but not beyond the deadline; whether there is time for another. */
async function pause(deadline: number): Promise<boolean> {
  await Bun.sleep(Math.max(0, Math.min(pauseMs, deadline - performance.now())));
  return performance.now() < deadline;
}

/** Asks until nothing is in the way or the time is up; the last answer there was. */
async function askUntil(client: Client, deadline: number): Promise<Reply<ReindexReply>> {
  let reply = await ask(client, deadline);
  while (!reply.ok && reply.error.code === "conflict" && (await pause(deadline))) {
    try {
      reply = await ask(client, deadline);
    } catch (error) {
      // Out of time in the middle of a try: the answer before it names what was in the way.
      if (performance.now() < deadline) throw error;
    }
  }
  return reply;
}

/** Gives the exit code: 1 also when the time is up, after the daemon's last answer. */
export async function reindex(session: Session): Promise<number> {
  const deadline = session.values.switches.has("wait") ? deadlineOf(session, usualWaitMs) : null;
  const client = await openSession(session);
  const reply = deadline === null ? await ask(client, null) : await askUntil(client, deadline);
  return await respond(session, client, "reindex", reply);
}

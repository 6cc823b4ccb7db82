// `sloop reindex [--wait]`: one request, or one every two seconds until no run is in the way (cli.md 3.13).

import type { Client } from "../client/client.ts";
import { usualTimeouts } from "../client/exchange.ts";
import { type Deadline, deadlineOf } from "./deadline.ts";
import { openSession } from "./operator.ts";
import { respond } from "./respond.ts";
import type { Session } from "./session.ts";

const pauseMs = 2000;
const usualWaitMs = 3_600_000;

async function ask(client: Client, deadline: Deadline) {
  const replyMs = deadline === null ? null : Math.max(1, deadline - performance.now());
  return await client.call("reindex", {}, { ...usualTimeouts, replyMs });
}

/** Gives the exit code: 1 also when the time is up, after the daemon's last answer. */
export async function reindex(session: Session): Promise<number> {
  const waits = session.values.switches.has("wait");
  const deadline = waits ? deadlineOf(session, usualWaitMs) : null;
  const client = await openSession(session);
  let reply = await ask(client, deadline);
  while (deadline !== null && !reply.ok && reply.error.code === "conflict") {
    const left = deadline - performance.now();
    if (left <= 0) break;
    await Bun.sleep(Math.min(pauseMs, left));
    reply = await ask(client, deadline);
  }
  return await respond(session, client, "reindex", reply);
}

// A run's own door: four verbs, and the one live token of that run (protocol.md 4).

import { timingSafeEqual } from "node:crypto";
import { SloopError } from "../core/errors.ts";
import type { Daemon, OpenWorkerDoor, TokenScope } from "../daemon/context.ts";
import type { CheckedRequest } from "../protocol/check.ts";
import type { WorkerCaller } from "../verbs/handler.ts";
import { workerHandlers } from "../verbs/index.ts";
import { openDoor } from "./door.ts";

function sameToken(given: string, live: string): boolean {
  const a = Buffer.from(given);
  const b = Buffer.from(live);
  return a.length === b.length && timingSafeEqual(a, b);
}

function scopeOf(daemon: Daemon, runId: string, token: string | null): TokenScope {
  const credential = daemon.live.get(runId)?.credential ?? null;
  if (token === null || credential === null || !sameToken(token, credential.token)) {
    throw new SloopError("unauthorized", "the token is not valid for this run");
  }
  return credential.scope;
}

function perform(daemon: Daemon, request: CheckedRequest, caller: WorkerCaller): unknown {
  switch (request.verb) {
    case "brief":
      return workerHandlers.brief(daemon, request.args, caller);
    case "show":
      return workerHandlers.show(daemon, request.args, caller);
    case "note":
      return workerHandlers.note(daemon, request.args, caller);
    case "verdict":
      return workerHandlers.verdict(daemon, request.args, caller);
    default:
      throw new SloopError("unauthorized", "operator verbs are not served on a worker socket");
  }
}

const workerVerbs: ReadonlySet<string> = new Set(Object.keys(workerHandlers));

/** A request on the socket of run `runId`. Throws SloopError for a refusal. */
export function answerWorker(daemon: Daemon, runId: string, request: CheckedRequest): unknown {
  if (!workerVerbs.has(request.verb)) {
    throw new SloopError("unauthorized", "operator verbs are not served on a worker socket");
  }
  const scope = scopeOf(daemon, runId, request.token);
  return perform(daemon, request, { kind: "worker", scope });
}

/** What the daemon is given to open the socket of a run. */
export function openWorkerDoor(daemon: Daemon): OpenWorkerDoor {
  return (socketPath, runId) =>
    openDoor(socketPath, {
      daemon,
      answer: (request) => answerWorker(daemon, runId, request),
      logFailure: (error) =>
        daemon.log.error("sloop::socket", "worker_connection_failed", { run_id: runId, error: String(error) }),
    });
}

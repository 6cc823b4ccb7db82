// The operator's door: every operator verb, no token ever (protocol.md 4).

import { SloopError } from "../core/errors.ts";
import type { Daemon } from "../daemon/context.ts";
import type { CheckedRequest } from "../protocol/check.ts";
import { verbs } from "../protocol/verbs.ts";
import type { Handler, OperatorCaller } from "../verbs/handler.ts";
import { operatorHandlers } from "../verbs/index.ts";
import { type Door, openDoor } from "./door.ts";

const caller: OperatorCaller = { kind: "operator" };
/** A shorter id, in characters, takes less room than every page leaves for it. */
const longId = 300;

function callerOf({ id }: CheckedRequest): OperatorCaller {
  return id.length < longId ? caller : { kind: "operator", idBytes: Buffer.byteLength(JSON.stringify(id)) };
}

/** A request on the operator's socket. Throws SloopError for a refusal. */
export function answerOperator(daemon: Daemon, request: CheckedRequest): unknown {
  if (request.token !== null) {
    throw new SloopError("unauthorized", "the operator socket does not accept worker tokens");
  }
  const { verb, args } = request;
  if (verbs[verb].who === "worker") {
    throw new SloopError(
      "unauthorized",
      `verb \`${verb}\` is for workers inside a run; as an operator use \`sloop show <ticket>\``,
    );
  }
  // The table ties each verb to its arguments; the compiler cannot follow that through an index.
  const handler = operatorHandlers[verb as keyof typeof operatorHandlers] as Handler<"list">;
  return handler(daemon, args as Parameters<Handler<"list">>[1], callerOf(request));
}

/** Opens the operator's socket. Throws SocketPathError or the system's error. */
export function openOperatorDoor(daemon: Daemon): Door {
  return openDoor(daemon.paths.operatorSocket, {
    daemon,
    answer: (request) => answerOperator(daemon, request),
    logFailure: (error) => daemon.log.error("sloop::socket", "connection_failed", { error: String(error) }),
  });
}

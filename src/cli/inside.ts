// Whether this is inside a run, and what may not be done there (cli.md 7.2).

import { SloopError } from "../core/errors.ts";
import { findCommand } from "./commands.ts";
import { usageError } from "./refusal.ts";
import type { Session } from "./session.ts";

const workerCommands = ["brief", "show", "note", "verdict"] as const;

/** Whether a variable is there; an empty one is not. */
export function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}

/** Whether a run's variables are set, even one of the two: then nothing here may act as the operator. */
export function inWorker(env: Session["env"]): boolean {
  return isSet(env["SLOOP_SOCKET"]) || isSet(env["SLOOP_TOKEN"]);
}

/** Refuses what an agent may not do. Throws a usage error for followers, else `unauthorized` (exit 1). */
export function refuseInWorker(session: Session): void {
  const following = session.values.switches.has("follow") || session.name === "watch" || session.name === "wait";
  if (following) {
    const what = session.name === "show" ? "`--follow`" : `\`sloop ${session.name}\``;
    throw usageError(`${what} is not available inside a run`, findCommand(session.name));
  }
  if (session.name === "show" || session.name === "status") return;
  const list = workerCommands.map((name) => `\`sloop ${name}\``).join(", ");
  throw new SloopError("unauthorized", `\`sloop ${session.name}\` is not available inside a run`, {
    hint: `inside a run there are ${list}`,
  });
}

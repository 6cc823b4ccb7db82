// Asking one verb of a test's daemon directly, as an operator.

import { expect } from "bun:test";
import type { Daemon } from "../../src/daemon/context.ts";
import type { OperatorVerb, Params, Result } from "../../src/protocol/verbs.ts";
import type { Handler } from "../../src/verbs/handler.ts";
import { operatorHandlers } from "../../src/verbs/index.ts";

/** Rejects with what the handler throws. */
export async function ask<V extends OperatorVerb>(daemon: Daemon, verb: V, args: Params<V>): Promise<Result<V>> {
  const handler = operatorHandlers[verb] as unknown as Handler<"list">;
  return (await handler(daemon, args as Params<"list">, { kind: "operator" })) as Result<V>;
}

/** What an asked verb must have been refused with. */
export function refusedWith(code: string, ...literals: string[]): unknown {
  const pattern = literals.map((literal) => `(?=[\\s\\S]*${RegExp.escape(literal)})`).join("");
  return { code, message: expect.stringMatching(new RegExp(`^${pattern}`)) };
}

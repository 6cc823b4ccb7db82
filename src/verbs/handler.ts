// What every verb's handler looks like: checked arguments and the caller in, the reply's `data` out.

import type { Daemon, TokenScope } from "../daemon/context.ts";
import type { Params, Result, Verb, WorkerOnlyVerb } from "../protocol/verbs.ts";

/** `idBytes`: how long the request's id is in its reply; absent when it is short. */
export type OperatorCaller = { kind: "operator"; idBytes?: number };
/** `scope` comes from the token alone, never from the request. */
export type WorkerCaller = { kind: "worker"; scope: TokenScope };

export type Caller<V extends Verb = Verb> = V extends WorkerOnlyVerb ? WorkerCaller : OperatorCaller;

/** Refuses by throwing SloopError; whatever else it throws is answered `internal`. */
export type Handler<V extends Verb> = (
  daemon: Daemon,
  args: Params<V>,
  caller: Caller<V>,
) => Result<V> | Promise<Result<V>>;

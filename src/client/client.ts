// The operator's side of the v1 envelope: one call, one reply, with the rules of what may be sent twice (cli.md 10.1).

import { SloopError } from "../core/errors.ts";
import type { Failure, Reply } from "../protocol/envelope.ts";
import type { OperatorVerb, Params, Result } from "../protocol/verbs.ts";
import type { RepositoryPaths } from "../system/paths.ts";
import { ask, askUntil, type Starter, startAndAsk, waitForLeaving } from "./connect.ts";
import { type Exchange, type Timeouts, usualTimeouts } from "./exchange.ts";

/** What to do when nobody answers: start a daemon, keep trying for so long, or say so. */
export type WhenAbsent =
  | { kind: "start"; starter: Starter }
  /** `onAbsent` is told once per outage, when the first try has failed. */
  | { kind: "retry"; limitMs: number; onAbsent?: () => void | Promise<void> }
  | { kind: "stop" };

export type ClientOptions = {
  paths: RepositoryPaths;
  pid: number;
  whenAbsent: WhenAbsent;
  /**
   * What must hold for a request to count; rejects when it does not. A request that changes something waits for it; one that
   * only reads is out before, so that the daemon and the check work at the same time, and its reply waits.
   */
  check?: () => Promise<void>;
};

/** Verbs that change nothing: the only ones that may be sent again once bytes are out. */
const repeatable: ReadonlySet<OperatorVerb> = new Set(["daemon", "show", "list", "logs", "events", "wait"]);
const repeatLimit = 3;

/** Nobody answers and `whenAbsent` is `stop`. */
export class DaemonAbsent extends SloopError {
  constructor(problem: string) {
    super("daemon_unavailable", `no daemon is running: ${problem}`);
    this.name = "DaemonAbsent";
  }
}

function isFailure(value: object): value is Failure {
  if (!("error" in value) || typeof value.error !== "object" || value.error === null) return false;
  return "code" in value.error && typeof value.error.code === "string" && "message" in value.error;
}

/** The envelope in `line`, or null when it is none. */
export function parseReply(line: string): Reply | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null || !("ok" in value)) return null;
  if (value.ok === true && "data" in value) return value as Reply;
  return value.ok === false && isFailure(value) ? value : null;
}

export class Client {
  private readonly options: ClientOptions;
  private whenAbsent: WhenAbsent;
  private count = 0;
  private checking: Promise<void> | null = null;
  /** Pid of what this client started as a daemon, whether or not it came to serve. */
  startedPid: number | null = null;

  constructor(options: ClientOptions) {
    this.options = options;
    this.whenAbsent = options.whenAbsent;
  }

  /** From now on no daemon is started: connecting is tried for `limitMs` instead (cli.md 3.6). */
  startNoMore(limitMs: number, onAbsent?: () => void | Promise<void>): void {
    this.whenAbsent = { kind: "retry", limitMs, ...(onAbsent === undefined ? {} : { onAbsent }) };
  }

  /**
   * Sends one request and reads its reply, refusals included. Throws SloopError `daemon_unavailable` when there is no
   * reply to be had, DaemonAbsent when nobody answers and none may be started, and what `check` or the starter throws.
   */
  async call<V extends OperatorVerb>(
    verb: V,
    args: Params<V>,
    timeouts: Timeouts = usualTimeouts,
  ): Promise<Reply<Result<V>>> {
    this.count += 1;
    const id = `req-${this.options.pid}-${this.count}`;
    const line = JSON.stringify({ v: 1, id, verb, args, token: null });
    if (!repeatable.has(verb)) await this.checked();
    const result = await this.deliver(line, repeatable.has(verb) ? repeatLimit : 1, timeouts);
    await this.checked();
    const reply = result.kind === "reply" ? parseReply(result.line) : null;
    if (reply !== null) return reply as Reply<Result<V>>;
    const problem = result.kind === "reply" ? "it sent something that is no reply" : result.problem;
    throw new SloopError("daemon_unavailable", `the daemon did not answer: ${problem}`);
  }

  private checked(): Promise<void> {
    this.checking ??= this.options.check?.() ?? Promise.resolve();
    return this.checking;
  }

  /** Begins the check while a reply is waited for; what comes of it is heard with the reply. */
  private beginCheck(): void {
    this.checked().catch(() => {});
  }

  private async deliver(line: string, tries: number, timeouts: Timeouts): Promise<Exchange> {
    for (let left = tries; ; left -= 1) {
      const result = await this.attempt(line, timeouts);
      if (result.kind === "reply" || left <= 1) return result;
    }
  }

  private async attempt(line: string, timeouts: Timeouts): Promise<Exchange> {
    const { paths } = this.options;
    const request = () => ask(paths, line, timeouts, () => this.beginCheck());
    const policy = this.whenAbsent;
    const first = await request();
    if (first.kind !== "absent") return first;
    if (policy.kind === "retry") {
      await policy.onAbsent?.();
      return await askUntil(request, policy.limitMs, () => false);
    }
    await this.checked();
    if (policy.kind === "stop") {
      const back = await waitForLeaving(paths, request);
      if (back !== null) return back;
      throw new DaemonAbsent(first.problem);
    }
    const onStart = (pid: number) => {
      this.startedPid = pid;
    };
    return await startAndAsk(paths, { ...policy.starter, onStart }, request);
  }
}

// THE table of verbs: who may call each, what it takes, what it answers. Everything else about the wire follows from it.

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import type {
  BriefReply,
  CancelReply,
  DaemonInfo,
  EventsPage,
  ListReply,
  LogsPage,
  NoteReply,
  OverrideReply,
  PauseReply,
  PostReply,
  ReindexReply,
  RestartReply,
  ResumeReply,
  RetryReply,
  RunReply,
  ShowReply,
  Status,
  StopReply,
  VerdictReply,
  WaitReply,
} from "./replies.ts";

const text = Type.String();
/** For an optional argument null and absent are the same. */
const optionalText = Type.Optional(Type.Union([Type.String(), Type.Null()]));
const count = Type.Integer({ minimum: 0, maximum: 0xffff_ffff });
const optionalCount = Type.Optional(Type.Union([count, Type.Null()]));

// Integers beyond 2^53 reach the check as bigints (exact.ts), so that a 64-bit width is judged exactly; those too long for
// that come as numbers. The bounds are powers of two because the compiler writes them through a double.
const unsigned64 = Type.Union([
  Type.Integer({
    minimum: 0,
    exclusiveMaximum: 2 ** 64,
    description: `an integer from 0 to ${2n ** 64n - 1n}`,
  }),
  Type.BigInt({ minimum: 0n, exclusiveMaximum: 2n ** 64n }),
]);
const signed64 = Type.Union([
  Type.Integer({
    minimum: -(2 ** 63),
    exclusiveMaximum: 2 ** 63,
    description: `an integer from ${-(2n ** 63n)} to ${2n ** 63n - 1n}`,
  }),
  Type.BigInt({ minimum: -(2n ** 63n), exclusiveMaximum: 2n ** 63n }),
]);
/** A length, handed on as a number: beyond 2^53 ms it is refused anyway, so digits lost there do not matter. */
const length = Type.Unsafe<number>(unsigned64);

const args = <P extends Record<string, TSchema>>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });

const kind = <K extends string>(name: K) => Type.Literal(name);

const PostTrigger = Type.Union([
  Type.Object({ kind: kind("auto") }),
  Type.Object({ kind: kind("manual") }),
  Type.Object({ kind: kind("hold") }),
  Type.Object({ kind: kind("at"), time: text }),
]);

const RunTrigger = Type.Union([
  Type.Object({ kind: kind("now") }),
  Type.Object({ kind: kind("at"), local_time: text }),
  Type.Object({ kind: kind("every"), interval_ms: length }),
  Type.Object({ kind: kind("overnight") }),
]);

const none = args({});
const ticket = args({ ticket: text });
const Verdict = Type.Union([Type.Literal("pass"), Type.Literal("fail")]);
const Confidence = Type.Union([Type.Literal("low"), Type.Literal("medium"), Type.Literal("high")]);

export type Who = "operator" | "worker" | "both";

export type VerbRow = {
  who: Who;
  params: TSchema;
  /** One line for people: help, generated documents. */
  summary: string;
  /** Changes nothing, so a client may send it again. */
  read: boolean;
};

const row = <const W extends Who, P extends TSchema>(who: W, read: boolean, params: P, summary: string) => ({
  who,
  read,
  params,
  summary,
});

export const verbs = {
  daemon: row("operator", true, none, "Say which daemon answers and where its files are."),
  stop: row("operator", false, args({ force: Type.Optional(Type.Boolean()) }), "Stop the daemon."),
  restart: row("operator", false, none, "Finish the runs that are going, then reload the program."),
  pause: row("operator", false, none, "Stop dispatching; runs already going finish."),
  resume: row("operator", false, none, "Dispatch again, and call off a pending restart."),
  post: row(
    "operator",
    false,
    args({ file: text, trigger: PostTrigger, project: optionalText, flow: optionalText }),
    "Register or refresh one ticket file.",
  ),
  run: row(
    "operator",
    false,
    args({ trigger: RunTrigger, only: Type.Array(text), ticket: optionalText, project: optionalText }),
    "Queue one trigger.",
  ),
  retry: row("operator", false, ticket, "Make a failed ticket ready again."),
  hold: row("operator", false, ticket, "Keep a ready ticket from being dispatched."),
  ready: row("operator", false, ticket, "Release a held ticket."),
  cancel: row("operator", false, args({ run: text }), "Stop a run and keep its worktree."),
  reindex: row("operator", false, none, "Rebuild the index from projects, tickets and git."),
  show: row(
    "both",
    true,
    args({ ref: optionalText, limit: optionalCount }),
    "Show the dashboard, a ticket, a run, a project, or the tickets that match a pattern.",
  ),
  logs: row(
    "operator",
    true,
    args({
      run: text,
      stage: optionalText,
      tail: optionalCount,
      after: Type.Optional(Type.Union([unsigned64, Type.Null()])),
    }),
    "Read one page of a run's captured output.",
  ),
  events: row(
    "operator",
    true,
    args({
      after: Type.Optional(Type.Union([signed64, Type.Null()])),
      tail: optionalCount,
      limit: optionalCount,
      scope: optionalText,
    }),
    "Read one page of the activity feed.",
  ),
  status: row("operator", true, none, "Say what runs, what waits and what comes next."),
  list: row(
    "operator",
    true,
    args({
      limit: optionalCount,
      project: optionalText,
      states: Type.Optional(Type.Union([Type.Array(text), Type.Null()])),
    }),
    "List tickets, newest first.",
  ),
  wait: row("operator", true, args({ run: text }), "Say whether a run has settled and how."),
  init: row("operator", true, none, "Known, and always refused: a repository is set up by the CLI."),
  brief: row("worker", true, none, "Say what this worker is to do."),
  note: row("worker", false, args({ text }), "Leave a note for people."),
  verdict: row(
    "worker",
    false,
    args({
      verdict: Verdict,
      reason: optionalText,
      confidence: Type.Optional(Type.Union([Confidence, Type.Null()])),
    }),
    "Report this stage's or seat's verdict, once.",
  ),
} as const satisfies Record<keyof Results, VerbRow>;

/** What each verb answers with on the operator's socket, or on the worker's where it lives only there. */
export type Results = {
  daemon: DaemonInfo;
  stop: StopReply;
  restart: RestartReply;
  pause: PauseReply;
  resume: ResumeReply;
  post: PostReply;
  run: RunReply;
  retry: RetryReply;
  hold: OverrideReply;
  ready: OverrideReply;
  cancel: CancelReply;
  reindex: ReindexReply;
  show: ShowReply;
  logs: LogsPage;
  events: EventsPage;
  status: Status;
  list: ListReply;
  wait: WaitReply;
  init: never;
  brief: BriefReply;
  note: NoteReply;
  verdict: VerdictReply;
};

export type Verb = keyof typeof verbs;
export type WorkerOnlyVerb = { [V in Verb]: (typeof verbs)[V]["who"] extends "worker" ? V : never }[Verb];
export type OperatorVerb = Exclude<Verb, WorkerOnlyVerb>;

/** A verb's checked arguments. */
export type Params<V extends Verb> = Static<(typeof verbs)[V]["params"]>;
export type Result<V extends Verb> = Results[V];

/** Whether `name` is a verb of the table; inherited names of objects are not. */
export function isVerb(name: string): name is Verb {
  return Object.hasOwn(verbs, name);
}

// From one line to a checked request, or to the reply of the first rung that fails (protocol.md 3.2, rungs 1-9).

import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { type Failure, failure, lineLimitBytes, protocolVersion } from "./envelope.ts";
import { parseExact } from "./exact.ts";
import { explain } from "./explain.ts";
import { isVerb, type Params, type Verb, verbs } from "./verbs.ts";

/** A request that passed rungs 1-9; `args` fit the verb's schema. */
export type CheckedRequest = { [V in Verb]: { id: string; verb: V; args: Params<V>; token: string | null } }[Verb];

export type ReadRequest = { ok: true; request: CheckedRequest } | { ok: false; reply: Failure };

/** Longest piece of an unknown verb that its refusal's message repeats, in characters; `details` hold it whole. */
const verbLimit = 200;

const checks = new Map<Verb, TypeCheck<TSchema>>();

/** Compiled on first use: all of them at start would cost more than the start itself. */
function checkOf(verb: Verb): TypeCheck<TSchema> {
  let check = checks.get(verb);
  if (check === undefined) {
    check = TypeCompiler.Compile(verbs[verb].params as TSchema);
    checks.set(verb, check);
  }
  return check;
}

function refuse(message: string, details: Record<string, unknown> = {}): { ok: false; reply: Failure } {
  return { ok: false, reply: failure(null, { code: "invalid_request", message, details }) };
}

function invalidEnvelope(problem: string): { ok: false; reply: Failure } {
  return refuse(`invalid request envelope: ${problem}`);
}

/** What a line longer than the limit is answered with (rung 1). */
export function tooLargeReply(): Failure {
  const message = `request envelope is too large: more than ${lineLimitBytes} bytes`;
  return failure(null, { code: "invalid_request", message });
}

/** What a line that is not UTF-8 is answered with (rung 2). */
export function notUtf8Reply(): Failure {
  return failure(null, { code: "invalid_request", message: "request must be UTF-8 text" });
}

// A byte-order mark must reach the JSON parser and fail there, hence `ignoreBOM`.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(line: Uint8Array): string | null {
  try {
    return decoder.decode(line);
  } catch {
    return null;
  }
}

function parse(text: string): { value: unknown } | { problem: string } {
  try {
    return { value: parseExact(text) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

type Members = Record<string, unknown>;

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Read as own members only: `{}` must not find `constructor`, nor `__proto__`.
function member(object: Members, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function checkVersion(envelope: Members): ReadRequest | null {
  if (Object.hasOwn(envelope, "jsonrpc")) {
    return refuse("field `v` is missing: this connection speaks envelopes, not JSON-RPC", { dialect: "envelope" });
  }
  const v = member(envelope, "v");
  const whole = typeof v === "bigint" || (typeof v === "number" && Number.isInteger(v));
  if (!whole || v < 0) return refuse("field `v` must be a non-negative integer");
  if (v === protocolVersion) return null;
  const message = `protocol version ${v} is not supported; this daemon speaks version ${protocolVersion}`;
  const details = { supported: [protocolVersion], received: v };
  return { ok: false, reply: failure(null, { code: "unsupported_version", message, details }) };
}

function envelopeProblem(envelope: Members): string | null {
  const id = member(envelope, "id");
  if (id === undefined) return "missing field `id`";
  if (typeof id !== "string") return "field `id` must be a string";
  const args = member(envelope, "args");
  if (args === undefined) return "missing field `args`";
  if (!isObject(args)) return "field `args` must be an object";
  const token = member(envelope, "token");
  if (token === undefined || token === null || typeof token === "string") return null;
  return "field `token` must be a string or null";
}

/** The first problem of `args` for `verb` as one readable line; null when they fit. */
export function argsProblem(verb: Verb, args: unknown): string | null {
  return checkOf(verb).Check(args) ? null : explain(verbs[verb].params as TSchema, args);
}

// Only cursors need all 64 bits afterwards (verbs.ts, `length`).
function settle(verb: Verb, args: Members): Members {
  const trigger = verb === "run" ? args["trigger"] : undefined;
  if (!isObject(trigger) || typeof trigger["interval_ms"] !== "bigint") return args;
  return { ...args, trigger: { ...trigger, interval_ms: Number(trigger["interval_ms"]) } };
}

/** Rungs 4-9, for a line already parsed. */
export function checkRequest(value: unknown): ReadRequest {
  if (!isObject(value)) return refuse("request must be a JSON object");
  const version = checkVersion(value);
  if (version !== null) return version;
  const verb = member(value, "verb");
  if (typeof verb !== "string") return refuse("field `verb` must be a string");
  if (!isVerb(verb)) {
    const message = `unknown verb \`${verb.slice(0, verbLimit)}\``;
    return { ok: false, reply: failure(null, { code: "unknown_verb", message, details: { verb } }) };
  }
  const problem = envelopeProblem(value) ?? argsProblem(verb, value["args"]);
  if (problem !== null) return invalidEnvelope(problem);
  const args = settle(verb, value["args"] as Members);
  const token = (value["token"] ?? null) as string | null;
  return { ok: true, request: { id: value["id"], verb, args, token } as CheckedRequest };
}

/** Reads one line, without its newline or with it; never throws. A newline that was cut off is the caller's to count. */
export function readRequest(line: string | Uint8Array): ReadRequest {
  if (line.length > lineLimitBytes) return { ok: false, reply: tooLargeReply() };
  const text = typeof line === "string" ? line : decode(line);
  if (text === null) return { ok: false, reply: notUtf8Reply() };
  const parsed = parse(text);
  return "problem" in parsed ? refuse(`malformed JSON: ${parsed.problem}`) : checkRequest(parsed.value);
}

// A client that knows nothing of sloop but its sockets: lines out, lines in, until the other side closes.

import { expect } from "bun:test";
import { connect } from "node:net";

export type Json = { [key: string]: unknown };
export type Failed = { code: string; message: string; details: Json };
export type Reply = { id: string | null; ok: boolean; data?: Json; error?: Failed };

const patienceMs = 30_000;

/** Sends everything, half-closes, and resolves to all that came back once the other side has closed. */
export function converse(path: string, bytes: string | Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    const received: Buffer[] = [];
    const socket = connect({ path, allowHalfOpen: true }, () => socket.end(bytes));
    const timer = setTimeout(() => socket.destroy(new Error(`${path}: no close after ${patienceMs} ms`)), patienceMs);
    socket.on("data", (chunk: Buffer) => received.push(chunk));
    socket.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(Buffer.concat(received).toString());
    });
  });
}

/** The replies to some lines: exactly one line each, each ended by its newline. */
export async function replies(path: string, bytes: string | Uint8Array): Promise<Reply[]> {
  const text = await converse(path, bytes);
  if (text === "") return [];
  expect(text).toEndWith("\n");
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line) as Reply);
}

/** The one reply to one line. */
export async function reply(path: string, bytes: string | Uint8Array): Promise<Reply> {
  const all = await replies(path, bytes);
  expect(all).toHaveLength(1);
  const [only] = all;
  expectEnvelope(only!);
  return only!;
}

/** 3.3: exactly two key sets, `error` with exactly its three members. */
export function expectEnvelope(envelope: Reply): void {
  const keys = Object.keys(envelope).sort();
  expect(keys).toEqual(envelope.ok ? ["data", "id", "ok"] : ["error", "id", "ok"]);
  if (envelope.ok) return;
  expect(Object.keys(envelope.error!).sort()).toEqual(["code", "details", "message"]);
  expect(envelope.error!.message).toBeString();
  expect(envelope.error!.message).not.toBe("");
  expect(envelope.error!.details).toBeObject();
}

let counter = 0;

/** One request without its newline; `more` adds or replaces members of the envelope. */
export function request(verb: string, args: unknown = {}, more: Json = {}): string {
  counter += 1;
  return JSON.stringify({ v: 1, id: `c-${counter}`, verb, args, ...more });
}

/** A client of one socket. */
export type Wire = {
  path: string;
  ask(verb: string, args?: unknown, more?: Json): Promise<Reply>;
  /** The data of a success; throws with the error otherwise. */
  ok(verb: string, args?: unknown, more?: Json): Promise<Json>;
  /** The error of a failure, its envelope checked; throws on success. */
  refused(verb: string, args?: unknown, more?: Json): Promise<Failed>;
};

export function wireTo(path: string, common: Json = {}): Wire {
  const wire: Wire = {
    path,
    ask: (verb, args = {}, more = {}) => reply(path, request(verb, args, { ...common, ...more })),
    async ok(verb, args = {}, more = {}) {
      const { ok, data, error } = await wire.ask(verb, args, more);
      if (!ok) throw new Error(`${verb} ${JSON.stringify(args)}: ${error?.code}: ${error?.message}`);
      return data!;
    },
    async refused(verb, args = {}, more = {}) {
      const { ok, data, error } = await wire.ask(verb, args, more);
      if (ok) throw new Error(`${verb} ${JSON.stringify(args)} succeeded: ${JSON.stringify(data)}`);
      return error!;
    },
  };
  return wire;
}

/** A refusal with that code, all those literals, and no details. */
export function expectRefusal(error: Failed, code: string, ...literals: string[]): void {
  expect({ code: error.code, details: error.details, message: error.message }).toEqual({
    code,
    details: {},
    message: expect.any(String),
  });
  for (const literal of literals) expect(error.message).toContain(literal);
}

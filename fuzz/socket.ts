// `bun run fuzz --socket`: hostile lines at both sockets of a real daemon. Exactly one valid envelope per line, a daemon that
// lives on, memory and descriptors that stay; anything else ends it with the seed and the bytes.

import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorCodes } from "../src/core/errors.ts";
import { meet, openStage, type Stage } from "../test/protocol/conformance/stage.ts";
import { openRandom, type Random } from "./random.ts";
import { endsTheGame, linesOf, nextConversation } from "./requests.ts";

const patienceMs = 30_000;
/** How much more a daemon may hold at the end than when it was warm. */
const growthBytes = 96 * 1024 * 1024;
const growthDescriptors = 8;
/** Conversations before a daemon counts as warm, and between two looks at it. */
const warm = 3_000;
const lookEvery = 500;

type Sockets = { operator: string; worker: string; token: string };

/** What came back, or null when the connection was cut on purpose. */
function converse(path: string, sent: Buffer, cut: boolean): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const received: Buffer[] = [];
    const socket = connect({ path, allowHalfOpen: true }, () => {
      if (cut) socket.write(sent, () => socket.destroy());
      else socket.end(sent);
    });
    const timer = setTimeout(() => socket.destroy(new Error(`not closed after ${patienceMs} ms`)), patienceMs);
    socket.on("data", (chunk: Buffer) => received.push(chunk));
    socket.on("error", (error) => (cut ? resolve(null) : reject(error)));
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(cut ? null : Buffer.concat(received));
    });
  });
}

type Envelope = { id: unknown; ok: unknown; data?: unknown; error?: Record<string, unknown> };

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

function failureProblem(error: Record<string, unknown> | undefined): string | null {
  if (error === undefined || Object.keys(error).sort().join() !== "code,details,message") return "a malformed error";
  if (!(errorCodes as readonly unknown[]).includes(error["code"])) return `an unknown code ${error["code"]}`;
  if (error["code"] === "internal") return `an internal error: ${error["message"]}`;
  if (typeof error["message"] !== "string" || error["message"] === "") return "no message";
  const { details } = error;
  return typeof details === "object" && details !== null && !Array.isArray(details)
    ? null
    : "details that are no object";
}

/** What is wrong with the reply to a line; null when nothing is. */
function problemWith(line: Buffer, reply: string): string | null {
  const envelope = parsed(Buffer.from(reply)) as Envelope | undefined;
  if (typeof envelope !== "object" || envelope === null) return "a reply that is no JSON object";
  const { id, ok } = envelope;
  if (Object.keys(envelope).sort().join() !== (ok === true ? "data,id,ok" : "error,id,ok")) return "other members";
  const asked = parsed(line) as { id?: unknown } | null | undefined;
  if (id !== null && (typeof id !== "string" || id !== asked?.id)) return "an id that was not sent";
  if (ok === true) return id === null ? "success without an id" : null;
  return failureProblem(envelope.error);
}

/** `restart` ends its connection: what comes behind it is not answered. */
function isLast(reply: string): boolean {
  return reply.includes('"draining":true,"active_runs"');
}

function replyLines(received: Buffer): string[] | null {
  const text = received.toString();
  if (text === "") return [];
  return text.endsWith("\n") ? text.slice(0, -1).split("\n") : null;
}

/** What is wrong with a whole conversation; null when nothing is. */
function verdictOn(sent: Buffer, received: Buffer): string | null {
  const replies = replyLines(received);
  if (replies === null) return "a reply cut short";
  const lines = linesOf(sent);
  const last = replies.findIndex(isLast);
  const expected = last < 0 ? lines.length : last + 1;
  if (replies.length !== expected) return `${replies.length} replies instead of ${expected}`;
  for (const [index, reply] of replies.entries()) {
    const problem = problemWith(lines[index] ?? Buffer.alloc(0), reply);
    if (problem !== null) return `line ${index + 1}: ${problem}: ${reply.slice(0, 500)}`;
  }
  return null;
}

function residentBytes(pid: number): number {
  const [, kilobytes = "0"] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}

function descriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

type Health = { resident: number; descriptors: number };

/** Asks both sockets something whose answer is known, and looks at the process. Throws when it is not well. */
async function examine(stage: Stage, { worker, token }: Sockets, pid: number): Promise<Health> {
  const { pid: answering } = await stage.wire.ok("daemon");
  if (answering !== pid) throw new Error(`another daemon answers: ${answering} instead of ${pid}`);
  const line = JSON.stringify({ v: 1, id: "b", verb: "brief", args: {}, token });
  const brief = (await converse(worker, Buffer.from(line), false))?.toString() ?? "";
  if (!brief.includes('"ok":true')) throw new Error(`the worker is no longer answered: ${brief}`);
  return { resident: residentBytes(pid), descriptors: descriptors(pid) };
}

type Talk = { sent: Buffer; socket: string; problem: string | null };

function report({ sent, socket, problem }: Talk, seed: number, count: number): void {
  const file = join(mkdtempSync(join(tmpdir(), "sloop-fuzz-")), "input");
  writeFileSync(file, sent);
  console.error(`seed ${seed}, conversation ${count}, ${socket} socket: ${problem}`);
  console.error(`what was sent (${sent.length} bytes) is kept in ${file}`);
}

async function prepare(): Promise<{ stage: Stage; sockets: Sockets }> {
  const stage = await openStage();
  stage.agent("TICK-1", meet);
  await stage.post("busy");
  const { socket, token } = await stage.worker("TICK-1");
  await stage.post("held", { trigger: { kind: "hold" } });
  await stage.post("posted", { trigger: { kind: "hold" } });
  return { stage, sockets: { operator: stage.wire.path, worker: socket, token } };
}

/** One conversation with one of the sockets; the problem it showed, or null. */
async function talk(
  random: Random,
  sockets: Sockets,
): Promise<{ sent: Buffer; socket: string; problem: string | null }> {
  const sent = nextConversation(random, sockets.token);
  const socket = random.oneIn(3) ? "worker" : "operator";
  const cut = random.oneIn(10);
  if (endsTheGame(sent)) return { sent, socket, problem: null };
  try {
    const received = await converse(socket === "worker" ? sockets.worker : sockets.operator, sent, cut);
    return { sent, socket, problem: received === null ? null : verdictOn(sent, received) };
  } catch (error) {
    return { sent, socket, problem: error instanceof Error ? error.message : String(error) };
  }
}

function grown(before: Health, after: Health): string | null {
  const more = after.resident - before.resident;
  if (more > growthBytes) return `the daemon grew by ${Math.round(more / 1_048_576)} MiB`;
  const held = after.descriptors - before.descriptors;
  return held > growthDescriptors ? `${held} descriptors more are open` : null;
}

function mebibytes({ resident }: Health): string {
  return `${Math.round(resident / 1_048_576)} MiB`;
}

/** Talks until the time is over or something is wrong, looking at the daemon now and then. */
async function play(world: { stage: Stage; sockets: Sockets }, seconds: number, seed: number): Promise<boolean> {
  const { stage, sockets } = world;
  const random = openRandom(seed);
  const pid = stage.scene.daemonPid();
  console.log(`seed ${seed}, ${seconds} s, both sockets of daemon ${pid}`);
  const end = performance.now() + seconds * 1000;
  let first = await examine(stage, sockets, pid);
  let last = first;
  let count = 0;
  let said: Talk = { sent: Buffer.alloc(0), socket: "neither", problem: null };
  while (performance.now() < end && said.problem === null) {
    count += 1;
    said = await talk(random, sockets);
    if (said.problem !== null || count % lookEvery !== 0) continue;
    try {
      last = await examine(stage, sockets, pid);
      if (count <= warm) first = last;
    } catch (error) {
      said.problem = (error as Error).message;
    }
  }
  if (said.problem === null) {
    last = await examine(stage, sockets, pid);
    said.problem = grown(first, last);
  }
  if (said.problem !== null) report(said, seed, count);
  else
    console.log(
      `${count} conversations: one envelope per line; ${mebibytes(first)} warm, ${mebibytes(last)} at the end`,
    );
  return said.problem === null;
}

/** Runs for that many seconds, or until the first problem; false when there was one. Leaves no process behind. */
export async function fuzzSockets(seconds: number, seed: number): Promise<boolean> {
  const world = await prepare();
  try {
    return await play(world, seconds, seed);
  } finally {
    await world.stage[Symbol.asyncDispose]();
  }
}

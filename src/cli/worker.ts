// The worker commands: one line to the run's own socket, its reply printed as it came (cli.md 7.2, 14).

import { parseReply } from "../client/client.ts";
import { type Exchange, exchange } from "../client/exchange.ts";
import { SloopError } from "../core/errors.ts";
import { isSet } from "./inside.ts";
import { writeError, writeOut } from "./output.ts";
import { Refusal } from "./refusal.ts";
import { showArgs, verdictArgs } from "./request.ts";
import type { Session } from "./session.ts";

function requestOf(session: Session): { verb: string; args: Record<string, unknown> } {
  switch (session.name) {
    case "note":
      return { verb: "note", args: { text: session.values.words.join(" ") } };
    case "verdict":
      return { verb: "verdict", args: verdictArgs(session.values) };
    case "brief":
      return { verb: "brief", args: {} };
    default:
      return { verb: "show", args: showArgs(session.values) };
  }
}

function credentials(session: Session): { socket: string; token: string } {
  const { SLOOP_SOCKET: socket, SLOOP_TOKEN: token } = session.env;
  if (isSet(socket) && isSet(token)) return { socket, token };
  throw new SloopError(
    "unauthorized",
    `\`sloop ${session.name}\` needs SLOOP_SOCKET and SLOOP_TOKEN, which a run's agent is given`,
    { hint: "brief, note and verdict are how an agent talks about its own run; they have no use outside one" },
  );
}

const daemonGoneMs = 5000;
const lookMs = 50;

/** A daemon that died is replaced by the next command's, which serves this socket again: that is waited for a while. */
async function exchangePatiently(socket: string, line: string): Promise<Exchange> {
  const until = performance.now() + daemonGoneMs;
  for (;;) {
    const result = await exchange(socket, line);
    if (result.kind !== "absent" || !result.stale || performance.now() >= until) return result;
    await Bun.sleep(lookMs);
  }
}

/** Sends the command to the run's socket and prints the reply line, on standard error when it is a refusal. */
export async function runWorker(session: Session): Promise<number> {
  const { socket, token } = credentials(session);
  const line = JSON.stringify({ v: 1, id: `req-${process.pid}`, ...requestOf(session), token });
  const result = await exchangePatiently(socket, line);
  if (result.kind !== "reply") {
    throw new Refusal(1, "daemon_unavailable", `the run's socket did not answer: ${result.problem}`);
  }
  const ok = parseReply(result.line)?.ok === true;
  const text = `${result.line.trimEnd()}\n`;
  if (ok) await writeOut(text);
  else await writeError(text);
  return ok ? 0 : 1;
}

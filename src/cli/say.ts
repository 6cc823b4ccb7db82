// What the CLI says: text, JSON lines, remarks, and the envelopes it makes itself.

import { writeError, writeOut } from "./output.ts";
import type { Session } from "./session.ts";
import { errorIsTerminal } from "./terminal.ts";

/** Prints text with one newline behind it; nothing for the empty text. */
export async function say(text: string): Promise<void> {
  if (text !== "") await writeOut(`${text}\n`);
}

/** Prints one JSON value on a line of its own. */
export async function sayJson(value: unknown): Promise<void> {
  await writeOut(`${JSON.stringify(value)}\n`);
}

/** A remark for people that is not the command's result. */
export async function remark(text: string): Promise<void> {
  await writeError(`${text}\n`);
}

/** The result of a command that talked to nobody: an envelope with `id` null, or the text. */
export async function sayLocal(json: boolean, data: unknown, text: string): Promise<void> {
  if (json) await sayJson({ id: null, ok: true, data });
  else await say(text);
}

/** After a command that made a ticket ready and queued nothing: a person is told so. */
export async function tellNothingQueued(session: Session, ticket: string): Promise<void> {
  if (session.json || !errorIsTerminal()) return;
  await remark(`note: nothing is queued yet; \`sloop run ${ticket}\` queues it`);
}

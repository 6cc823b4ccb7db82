// What a command is given besides its arguments: how to speak, the environment, the clock, and who we are.

import type { Clock } from "../system/clock.ts";
import type { Values } from "./args.ts";
import { writeError, writeOut } from "./output.ts";
import type { View } from "./render.ts";
import type { Style } from "./style.ts";
import { outIsTerminal } from "./terminal.ts";
import { version } from "./version.ts";

export type Session = {
  /** The command's word. */
  name: string;
  values: Values;
  json: boolean;
  style: Style;
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  /** argv that starts this very program. */
  self: readonly string[];
};

/** How replies are shown in this session. */
export function viewOf(session: Session, extra: Partial<View> = {}): View {
  return {
    style: session.style,
    now: session.clock.now(),
    terminal: outIsTerminal(),
    version,
    ref: null,
    filtered: false,
    ...extra,
  };
}

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

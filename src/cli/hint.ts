// What to do next after the daemon refused (cli.md 17.4). Pure; people only, never in an envelope.

import type { Verb } from "../protocol/verbs.ts";
import { similarNames } from "./suggest.ts";

export type Refused = { code: string; message: string };

function stateNamed(message: string): string | null {
  return /\b(held|failed|needs_review|merged)\b/.exec(message)?.[1] ?? null;
}

function conflictHint(verb: Verb, subject: string | null, message: string): string | null {
  if (verb === "stop") return "`sloop wait <run>` for each, or `sloop stop --force` to cancel them";
  if (subject === null) return null;
  switch (stateNamed(message)) {
    case "held":
      return `\`sloop ready ${subject}\` releases it`;
    case "failed":
      return `\`sloop retry ${subject}\`, then \`sloop run ${subject}\``;
    case "needs_review":
      return `\`sloop show ${subject}\` lists its runs; \`sloop show <run>\` names the branch and the worktree that hold the work`;
    default:
      return null;
  }
}

function postHint(message: string): string | null {
  return /outside the|time `/.test(message) ? null : "`sloop template ticket` prints a working one";
}

/** `subject` is the ticket or run the request named. Null when there is nothing useful to say. */
export function hintFor(verb: Verb, subject: string | null, error: Refused): string | null {
  if (error.code === "conflict") return conflictHint(verb, subject, error.message);
  if (error.code === "invalid_arguments" && verb === "post") return postHint(error.message);
  if (error.code === "invalid_arguments" && verb === "show") return "`sloop help refs` says what a reference may be";
  return null;
}

/** After `not_found`: the ids most like the one that was asked for. */
export function nearHint(subject: string, ids: readonly string[]): string {
  const close = similarNames(subject, ids);
  const list = close.map((id) => `\`${id}\``).join(" or ");
  return close.length > 0 ? `did you mean ${list}?` : "`sloop list` shows every ticket";
}

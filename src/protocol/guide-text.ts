// The prose of the protocol's reference: how to connect, how lines are framed, what names mean, what error codes say.

import type { ErrorCode } from "../core/errors.ts";
import { lineLimitBytes, protocolVersion } from "./envelope.ts";

/** What comes before the verbs. */
export const opening: readonly string[] = [
  "# Protocol reference",
  "Generated from the verb table by `bun build.ts docs`; the examples are real replies of a daemon, recorded by\n" +
    "`bun run examples`, with ids, paths and pids put in other words.",
  "A daemon answers on a Unix socket, one JSON object per line each way. `sloop daemon` prints the path. This is a whole client:",
  "```sh\n" +
    "sock=$(sloop --json daemon | jq -r .data.socket)\n" +
    `printf '%s\\n' '{"v": ${protocolVersion}, "id": "1", "verb": "status", "args": {}}' | nc -U "$sock" | head -1\n` +
    "```",
  "## The connection",
  [
    `- A request is one line of UTF-8, at most ${lineLimitBytes.toLocaleString("en")} bytes with its newline; the end of the stream ends a line, too.`,
    "- Requests of a connection are answered in order, one line each. The daemon closes 250 ms after its last reply when\n" +
      "  nothing more has come, at once when you half-close, and after `stop` and `restart`. A connection that produces no\n" +
      "  line for 30 s is closed without a reply.",
    "- A reply shows the state before what its request sets in motion: the reply to `run` never shows the run.",
    "- Nothing is pushed. Poll with the cursors of `events` and `logs`; the daemon keeps no state per client.",
    "- A request that changes something is carried out even if you hang up before its reply; never send it twice.",
  ].join("\n"),
  "## The envelope",
  "```json\n" +
    `{"v": ${protocolVersion}, "id": "c-41", "verb": "hold", "args": {"ticket": "TICK-7"}, "token": null}\n` +
    '{"id": "c-41", "ok": true, "data": {"ticket": "TICK-7", "previous_state": "ready", "state": "held", "overridden": true}}\n' +
    '{"id": "c-41", "ok": false, "error": {"code": "not_found", "message": "ticket `TICK-7` does not exist", "details": {}}}\n' +
    "```",
  [
    "- `v`, `id`, `verb` and `args` are required, `args` even when empty. `id` is any string and comes back; it is null when the\n" +
      "  line could not be read as a request.",
    "- Unknown members of the envelope are ignored, unknown arguments are refused. For an optional argument null and absent are\n" +
      "  the same.",
    "- Types are strict: a string is no number, a fraction no integer, and an integer beyond its bounds is refused. Cursors have\n" +
      "  64 bits; do not pass them through a double.",
    "- Ignore members and event kinds that you do not know: they are added without a new version.",
    "- `*_ms` are integers, instants since 1970 or lengths. Instants as text are RFC 3339 in UTC, without trailing zeros.",
  ].join("\n"),
  "## Two sockets",
  "The operator's socket takes no token, ever. Each run has a socket of its own for its workers, `$SLOOP_SOCKET`, and a token\n" +
    "that is minted for one execution of a stage or one panel seat, `$SLOOP_TOKEN`. Nothing else in a worker's request says\n" +
    "which run, stage or seat it is about.",
  "## Names",
  [
    "- A run (`logs`, `wait`, `cancel`): its id, its alias `TICK-7-r2`, a ticket's id or name (its latest run), or at least 4\n" +
      "  hexadecimal characters of its id.",
    "- Something to `show`, or a `scope` of events: a ticket id, a run id, a ticket's name, an alias, at least 4 hexadecimal\n" +
      "  characters of a run id, a project id; anything else is a pattern over ticket ids and names, letter case aside: a\n" +
      "  substring, or an expression (without look-around and back-references) if it holds one of `. ^ $ * + ? ( ) [ ] { } | \\`.",
    "- A ticket (`hold`, `ready`, `retry`, `run`) or a project: its exact id.",
  ].join("\n"),
];

export const errorMeanings: Readonly<Record<ErrorCode, string>> = {
  invalid_request: "the line is no request: see the message; a value of a wrong type, or not on its list",
  unsupported_version: "`v` is another number; `details` has `supported` and `received`",
  unknown_verb: "no such verb; `details` has `verb`",
  unauthorized: "not on this socket, or not with this token",
  invalid_arguments: "well-typed, and refused by the verb",
  not_found: "nothing has that name",
  conflict: "the state forbids it now",
  internal: "the database, the file system, git, or a bug; nothing is answered in part",
  daemon_unavailable: "said by clients only: the daemon cannot be reached, started or understood",
  cooldown_active: "reserved",
};

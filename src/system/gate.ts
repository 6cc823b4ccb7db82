// The start gate: a command that is there, with its pid, and does nothing until it is let go (engine.md 10.1).

const wait = 'IFS= read -r SLOOP_GATE || exit 125; unset SLOOP_GATE; exec "$@"';

/** What a gated command exits with when its gate was closed without being opened. */
export const gateClosedCode = 125;

/** The line that opens a gate. */
export const gateLine = "go\n";

/** Wraps `argv` so that it starts once one line arrives on its standard input, keeping the pid. `label` is what `ps` shows. */
export function gateArgv(label: string, argv: readonly string[]): string[] {
  return ["/bin/sh", "-c", wait, label, ...argv];
}

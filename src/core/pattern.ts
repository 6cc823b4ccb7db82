// Patterns over ticket ids and names, matched in linear time: a client's text must never stall the one request loop.

import { createMatcher } from "./pattern-match.ts";
import { parsePattern } from "./pattern-parse.ts";
import { compileProgram } from "./pattern-program.ts";

/** Whether a text contains the pattern somewhere, letter case aside. */
export type Pattern = (text: string) => boolean;

const special = /[.^$*+?()[\]{}|\\]/;

/** Whether `text` is read as a plain substring rather than as an expression. */
export function isPlain(text: string): boolean {
  return !special.test(text);
}

/**
 * Reads a pattern (protocol.md 5.3): a substring, or an unanchored expression when a special character is in it.
 * Null for a bad expression: look-around, back-references and programs that would grow too large among them.
 */
export function compilePattern(text: string): Pattern | null {
  if (isPlain(text)) {
    const wanted = text.toLowerCase();
    return (candidate) => candidate.toLowerCase().includes(wanted);
  }
  const tree = parsePattern(text);
  const program = tree === null ? null : compileProgram(tree);
  return program === null ? null : createMatcher(program);
}

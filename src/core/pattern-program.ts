// A pattern's tree as a flat program for an automaton: the size is bounded, so counts cannot blow it up.

import type { Assertion, Tree } from "./pattern-parse.ts";
import type { CharSet } from "./pattern-set.ts";

export type Instruction =
  | { op: "set"; set: CharSet }
  | { op: "assert"; what: Assertion }
  /** Goes on at every address of `to`. */
  | { op: "fork"; to: number[] }
  | { op: "match" };

export type Program = readonly Instruction[];

/** Most instructions, and most nodes visited while writing them. */
const sizeLimit = 4000;

class TooLarge extends Error {}

type Writer = { code: Instruction[]; visited: number };

function add(writer: Writer, instruction: Instruction): void {
  if (writer.code.length >= sizeLimit) throw new TooLarge();
  writer.code.push(instruction);
}

function fork(writer: Writer): number[] {
  const to: number[] = [];
  add(writer, { op: "fork", to });
  return to;
}

function here(writer: Writer): number {
  return writer.code.length;
}

function writeChoice(writer: Writer, parts: readonly Tree[]): void {
  const entry = fork(writer);
  const ends: number[][] = [];
  for (const part of parts) {
    entry.push(here(writer));
    write(writer, part);
    ends.push(fork(writer));
  }
  for (const end of ends) end.push(here(writer));
}

function writeRepeat(writer: Writer, part: Tree, min: number, max: number | null): void {
  for (let n = 0; n < min; n += 1) write(writer, part);
  if (max === null) {
    const start = here(writer);
    const loop = fork(writer);
    loop.push(here(writer));
    write(writer, part);
    fork(writer).push(start);
    loop.push(here(writer));
    return;
  }
  const exits: number[][] = [];
  for (let n = min; n < max; n += 1) {
    const optional = fork(writer);
    optional.push(here(writer));
    write(writer, part);
    exits.push(optional);
  }
  for (const exit of exits) exit.push(here(writer));
}

function write(writer: Writer, tree: Tree): void {
  // Empty groups write nothing, so their repetitions are bounded by the visits.
  writer.visited += 1;
  if (writer.visited > sizeLimit * 4) throw new TooLarge();
  switch (tree.kind) {
    case "set":
      add(writer, { op: "set", set: tree.set });
      return;
    case "assert":
      add(writer, { op: "assert", what: tree.what });
      return;
    case "sequence":
      for (const part of tree.parts) write(writer, part);
      return;
    case "choice":
      writeChoice(writer, tree.parts);
      return;
    case "repeat":
      writeRepeat(writer, tree.part, tree.min, tree.max);
      return;
  }
}

/** The program of a tree; null when it would be too large. */
export function compileProgram(tree: Tree): Program | null {
  const writer: Writer = { code: [], visited: 0 };
  try {
    write(writer, tree);
    add(writer, { op: "match" });
    return writer.code;
  } catch (error) {
    if (error instanceof TooLarge) return null;
    throw error;
  }
}

// Runs a pattern's program over texts: every thread at once, and the sets of threads remembered as states of an automaton.

import type { Instruction, Program } from "./pattern-program.ts";
import { isWord, setHas } from "./pattern-set.ts";

/** What stands before a position: nothing, a word character, or another one. */
type Side = "edge" | "word" | "other";

/** Threads before any assertion behind the last character was looked at, since those depend on the next one. */
type State = {
  threads: readonly number[];
  before: Side;
  /** By code unit below 128, and by code point: the state behind that character, or that the text matches already. */
  near: (Next | undefined)[];
  far: Map<number, Next>;
  atEnd: boolean | null;
};

const matched = null;
type Next = State | typeof matched;

/** States remembered at once; beyond that all are forgotten, which costs time and never correctness. */
const stateLimit = 2000;

function sideOf(code: number): Side {
  return isWord(code) ? "word" : "other";
}

function holds(what: (Instruction & { op: "assert" })["what"], before: Side, after: Side): boolean {
  switch (what) {
    case "start":
      return before === "edge";
    case "end":
      return after === "edge";
    case "word_boundary":
      return (before === "word") !== (after === "word");
    case "no_word_boundary":
      return (before === "word") === (after === "word");
  }
}

/** The addresses of character sets reached without reading; `matched` when the end of the program is. */
function settle(program: Program, state: State, after: Side): number[] | typeof matched {
  const seen = new Set<number>(state.threads);
  const reached: number[] = [];
  // A set keeps growing while it is walked, so every address is visited once.
  for (const address of seen) {
    const instruction = program[address] as Instruction;
    switch (instruction.op) {
      case "match":
        return matched;
      case "set":
        reached.push(address);
        break;
      case "fork":
        for (const to of instruction.to) seen.add(to);
        break;
      case "assert":
        if (holds(instruction.what, state.before, after)) seen.add(address + 1);
        break;
    }
  }
  return reached;
}

/** A matcher of one program; it remembers what it learned from earlier texts. */
export function createMatcher(program: Program): (text: string) => boolean {
  const states = new Map<string, State>();

  const stateOf = (threads: number[], before: Side): State => {
    // The match may start anywhere: address 0 is a thread of every state.
    const all = [...new Set([0, ...threads])].sort((a, b) => a - b);
    const key = `${before} ${all.join(" ")}`;
    const known = states.get(key);
    if (known !== undefined) return known;
    if (states.size >= stateLimit) states.clear();
    const state: State = { threads: all, before, near: new Array(128).fill(undefined), far: new Map(), atEnd: null };
    states.set(key, state);
    return state;
  };

  const step = (state: State, code: number): Next => {
    const side = sideOf(code);
    const reached = settle(program, state, side);
    if (reached === matched) return matched;
    const passed = reached.filter((address) => {
      const instruction = program[address] as Instruction;
      return instruction.op === "set" && setHas(instruction.set, code);
    });
    return stateOf(
      passed.map((address) => address + 1),
      side,
    );
  };

  const ends = (state: State): boolean => {
    state.atEnd ??= settle(program, state, "edge") === matched;
    return state.atEnd;
  };

  const learn = (state: State, code: number): Next => {
    const next = step(state, code);
    if (code < 128) state.near[code] = next;
    else state.far.set(code, next);
    return next;
  };

  const follow = (state: State, code: number): Next => {
    const known = code < 128 ? state.near[code] : state.far.get(code);
    return known === undefined ? learn(state, code) : known;
  };

  const start = stateOf([], "edge");

  return (text) => {
    let state = start;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.codePointAt(at) as number;
      if (code > 0xffff) at += 1;
      const next = follow(state, code);
      if (next === matched) return true;
      state = next;
    }
    return ends(state);
  };
}

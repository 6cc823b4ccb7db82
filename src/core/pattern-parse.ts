// The syntax of pattern expressions: text to tree, or null when it is no expression we run.

import { anyCharacter, type CharSet, type Member, namedClass, propertyClass, single } from "./pattern-set.ts";

export type Assertion = "start" | "end" | "word_boundary" | "no_word_boundary";

export type Tree =
  | { kind: "set"; set: CharSet }
  | { kind: "assert"; what: Assertion }
  | { kind: "sequence"; parts: Tree[] }
  | { kind: "choice"; parts: Tree[] }
  | { kind: "repeat"; part: Tree; min: number; max: number | null };

/** Deepest nesting of groups. */
const depthLimit = 250;
/** Largest count in `{m,n}`. */
const countLimit = 1000;

class BadExpression extends Error {}

type Reader = { points: number[]; at: number; depth: number };

const code = (character: string) => character.codePointAt(0) ?? 0;

function peek(reader: Reader): string | null {
  const point = reader.points[reader.at];
  return point === undefined ? null : String.fromCodePoint(point);
}

function next(reader: Reader): string {
  const character = peek(reader);
  if (character === null) throw new BadExpression();
  reader.at += 1;
  return character;
}

function take(reader: Reader, text: string): boolean {
  const points = Array.from(text, code);
  if (!points.every((point, index) => reader.points[reader.at + index] === point)) return false;
  reader.at += points.length;
  return true;
}

function takeUntil(reader: Reader, end: string): string {
  let text = "";
  for (let character = next(reader); character !== end; character = next(reader)) text += character;
  return text;
}

const controls: Record<string, number> = { n: 10, r: 13, t: 9, f: 12, v: 11, a: 7, "0": 0 };

function hexEscape(reader: Reader, letter: string): number {
  let digits = "";
  if (take(reader, "{")) digits = takeUntil(reader, "}");
  else for (let left = letter === "x" ? 2 : 4; left > 0; left -= 1) digits += next(reader);
  const value = /^[0-9a-fA-F]{1,8}$/.test(digits) ? Number.parseInt(digits, 16) : -1;
  if (value < 0 || value > 0x10ffff) throw new BadExpression();
  return value;
}

function property(reader: Reader, letter: string): Member {
  const name = take(reader, "{") ? takeUntil(reader, "}") : next(reader);
  const member = propertyClass(name, letter === "p");
  if (member === null) throw new BadExpression();
  return member;
}

/** What follows a backslash, inside and outside brackets alike: one character or a class. */
function escaped(reader: Reader): number | Member {
  const letter = next(reader);
  const named = namedClass(letter);
  if (named !== null) return named;
  if (letter === "p" || letter === "P") return property(reader, letter);
  if (letter === "x" || letter === "u") return hexEscape(reader, letter);
  const control = controls[letter];
  if (control !== undefined) return control;
  // Letters and digits left over mean back-references and whatever else we do not run.
  if (/^[A-Za-z0-9]$/.test(letter)) throw new BadExpression();
  return code(letter);
}

const assertions: Record<string, Assertion> = { b: "word_boundary", B: "no_word_boundary", A: "start", z: "end" };

function outsideEscape(reader: Reader): Tree {
  const what = assertions[peek(reader) ?? ""];
  if (what !== undefined) {
    reader.at += 1;
    return { kind: "assert", what };
  }
  const found = escaped(reader);
  if (typeof found === "number") return { kind: "set", set: single(found) };
  return { kind: "set", set: { negated: false, members: [found] } };
}

function bracketAtom(reader: Reader): number | Member {
  if (take(reader, "[:")) throw new BadExpression();
  const character = next(reader);
  return character === "\\" ? escaped(reader) : code(character);
}

function bracketMember(reader: Reader): Member[] {
  const from = bracketAtom(reader);
  const open = reader.points[reader.at] === code("-") && reader.points[reader.at + 1] !== code("]");
  if (!open) return [typeof from === "number" ? { from, to: from } : from];
  reader.at += 1;
  const to = bracketAtom(reader);
  if (typeof from !== "number" || typeof to !== "number" || to < from) throw new BadExpression();
  return [{ from, to }];
}

/** Behind `[`; a `]` that comes first is one of the characters. */
function brackets(reader: Reader): Tree {
  const negated = take(reader, "^");
  const members: Member[] = [];
  if (take(reader, "]")) members.push({ from: code("]"), to: code("]") });
  while (!take(reader, "]")) members.push(...bracketMember(reader));
  return { kind: "set", set: { negated, members } };
}

// `(?<` with `=` or `!` behind it looks back, with anything else it names the group.
function skipGroupHead(reader: Reader): void {
  if (!take(reader, "?")) return;
  if (take(reader, ":") || take(reader, "i:")) return;
  if (!take(reader, "<") && !take(reader, "P<")) throw new BadExpression();
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(takeUntil(reader, ">"))) throw new BadExpression();
}

function group(reader: Reader): Tree {
  if (take(reader, "?i)")) return { kind: "sequence", parts: [] };
  skipGroupHead(reader);
  reader.depth += 1;
  if (reader.depth > depthLimit) throw new BadExpression();
  const inner = choice(reader);
  reader.depth -= 1;
  if (!take(reader, ")")) throw new BadExpression();
  return inner;
}

function atom(reader: Reader): Tree {
  const character = next(reader);
  switch (character) {
    case "(":
      return group(reader);
    case "[":
      return brackets(reader);
    case "\\":
      return outsideEscape(reader);
    case ".":
      return { kind: "set", set: anyCharacter };
    case "^":
      return { kind: "assert", what: "start" };
    case "$":
      return { kind: "assert", what: "end" };
    case "*":
    case "+":
    case "?":
    case "{":
      throw new BadExpression();
    default:
      return { kind: "set", set: single(code(character)) };
  }
}

function counted(reader: Reader): { min: number; max: number | null } {
  const match = /^([0-9]{1,4})(,([0-9]{0,4}))?$/.exec(takeUntil(reader, "}"));
  if (match === null) throw new BadExpression();
  const min = Number(match[1]);
  const upper = match[3] === "" ? null : Number(match[3]);
  const max = match[2] === undefined ? min : upper;
  if (min > countLimit || (max !== null && (max > countLimit || max < min))) throw new BadExpression();
  return { min, max };
}

function quantifier(reader: Reader): { min: number; max: number | null } | null {
  if (take(reader, "*")) return { min: 0, max: null };
  if (take(reader, "+")) return { min: 1, max: null };
  if (take(reader, "?")) return { min: 0, max: 1 };
  return take(reader, "{") ? counted(reader) : null;
}

function sequence(reader: Reader): Tree {
  const parts: Tree[] = [];
  for (let head = peek(reader); head !== null && head !== "|" && head !== ")"; head = peek(reader)) {
    const part = atom(reader);
    const times = quantifier(reader);
    // Greedy or not makes no difference to whether there is a match.
    if (times !== null) take(reader, "?");
    parts.push(times === null ? part : { kind: "repeat", part, ...times });
  }
  return { kind: "sequence", parts };
}

function choice(reader: Reader): Tree {
  const parts = [sequence(reader)];
  while (take(reader, "|")) parts.push(sequence(reader));
  return parts.length === 1 ? (parts[0] as Tree) : { kind: "choice", parts };
}

/** The tree of an expression; null when it is bad. */
export function parsePattern(text: string): Tree | null {
  const reader: Reader = { points: Array.from(text, code), at: 0, depth: 0 };
  try {
    const tree = choice(reader);
    return reader.at === reader.points.length ? tree : null;
  } catch (error) {
    if (error instanceof BadExpression) return null;
    throw error;
  }
}

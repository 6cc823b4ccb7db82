// Single-line YAML values in their plainest spellings, for fast.ts: bare words, quotes without escapes, `[…]` and `{…}`.

import { type Entry, type Node, plainKind } from "./node.ts";

/** Thrown for anything out of the ordinary; the YAML library is asked instead. */
export class Unusual extends Error {}

type Scan = { text: string; at: number; end: number };

const flowWord =
  /(?:[A-Za-z0-9_./~+]|-(?=[A-Za-z0-9-]))(?:[A-Za-z0-9_./~+=-]| +(?=[A-Za-z0-9_./~+=-])|:(?=[A-Za-z0-9_./]))*/y;
const flowKey = /([A-Za-z_][A-Za-z0-9_.-]{0,99}): +/y;
const notFirst = new Set("-?:,[]{}#&*!|>'\"%@`=.");
const flowDepthLimit = 20;

/** The value between two offsets of one line; spaces and a comment may follow it. Throws `Unusual`. */
export function readInline(text: string, start: number, end: number): Node {
  const scan: Scan = { text, at: start, end };
  const first = text[start] ?? "";
  if (first === "[" || first === "{" || first === '"' || first === "'") {
    const node = flowValue(scan, 0);
    if (!onlyComment(text, scan.at, end)) throw new Unusual();
    return node;
  }
  return plain(scan, first);
}

/** Whether nothing but spaces, or a comment after a space, stands between two offsets. */
export function onlyComment(text: string, from: number, end: number): boolean {
  let at = from;
  while (at < end && text[at] === " ") at += 1;
  return at >= end || (text[at] === "#" && at > from);
}

function plain(scan: Scan, first: string): Node {
  const { text, at, end } = scan;
  const rest = text.slice(at, end);
  const allowed = !notFirst.has(first) || /^(?:-[A-Za-z0-9]|--(?:[A-Za-z0-9]|$)|\.[A-Za-z0-9_/])/.test(rest);
  if (!allowed) throw new Unusual();
  const comment = rest.indexOf(" #");
  const word = (comment < 0 ? rest : rest.slice(0, comment)).replace(/ +$/, "");
  if (word.endsWith(":") || word.includes(": ")) throw new Unusual();
  return { kind: plainKind(word), text: word, at };
}

function skipSpaces(scan: Scan): void {
  while (scan.at < scan.end && scan.text[scan.at] === " ") scan.at += 1;
}

function flowValue(scan: Scan, depth: number): Node {
  const first = scan.text[scan.at] ?? "";
  if (depth > flowDepthLimit || scan.at >= scan.end) throw new Unusual();
  if (first === "[") return flowList(scan, depth);
  if (first === "{") return flowMap(scan, depth);
  if (first === '"' || first === "'") return quoted(scan, first);
  return flowPlain(scan);
}

function quoted(scan: Scan, quote: string): Node {
  const at = scan.at;
  const close = scan.text.indexOf(quote, at + 1);
  if (close < 0 || close >= scan.end || scan.text[close + 1] === quote) throw new Unusual();
  const text = scan.text.slice(at + 1, close);
  if (quote === '"' && text.includes("\\")) throw new Unusual();
  scan.at = close + 1;
  return { kind: "string", text, at };
}

function flowPlain(scan: Scan): Node {
  const at = scan.at;
  flowWord.lastIndex = at;
  const word = flowWord.exec(scan.text)?.[0];
  if (word === undefined) throw new Unusual();
  scan.at = at + word.length;
  return { kind: plainKind(word), text: word, at };
}

/** After a member: true when another follows, false when the collection was closed. */
function more(scan: Scan, close: string): boolean {
  skipSpaces(scan);
  const next = scan.text[scan.at];
  if (scan.at >= scan.end || (next !== "," && next !== close)) throw new Unusual();
  scan.at += 1;
  if (next === close) return false;
  if (scan.text[scan.at] !== " " && scan.text[scan.at] !== '"') throw new Unusual();
  skipSpaces(scan);
  return true;
}

function closedAtOnce(scan: Scan, close: string): boolean {
  scan.at += 1;
  skipSpaces(scan);
  if (scan.text[scan.at] !== close || scan.at >= scan.end) return false;
  scan.at += 1;
  return true;
}

function flowList(scan: Scan, depth: number): Node {
  const at = scan.at;
  const items: Node[] = [];
  if (closedAtOnce(scan, "]")) return { kind: "list", items, at };
  do items.push(flowValue(scan, depth + 1));
  while (more(scan, "]"));
  return { kind: "list", items, at };
}

function flowEntry(scan: Scan, before: Entry[], depth: number): Entry {
  flowKey.lastIndex = scan.at;
  const match = flowKey.exec(scan.text);
  const key = match?.[1];
  if (match === null || key === undefined || before.some((entry) => entry.key === key)) throw new Unusual();
  const keyAt = scan.at;
  scan.at += match[0].length;
  return { key, keyAt, value: flowValue(scan, depth + 1) };
}

function flowMap(scan: Scan, depth: number): Node {
  const at = scan.at;
  const entries: Entry[] = [];
  if (closedAtOnce(scan, "}")) return { kind: "map", entries, at };
  do entries.push(flowEntry(scan, entries, depth));
  while (more(scan, "}"));
  return { kind: "map", entries, at };
}

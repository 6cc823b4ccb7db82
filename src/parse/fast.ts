// A reader for the plainest YAML: block mappings and lists, single-line values. It answers exactly what the YAML library
// would (a property test compares them) or nothing at all, at a fraction of the cost.

import { onlyComment, readInline, Unusual } from "./inline.ts";
import type { Entry, ListNode, MapNode, Node } from "./node.ts";

/** A line with something on it: how far it is indented, where its content starts, where the line ends. */
type Line = { indent: number; start: number; end: number };

type Cursor = { text: string; lines: Line[]; next: number };

/** Tabs, carriage returns, control characters, Unicode line breaks and byte-order marks are the library's business. */
const unusual = /[^\n\x20-\x7e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
const keyPattern = /([A-Za-z_][A-Za-z0-9_./-]{0,99}):(?=[ \n]|$)/y;
const depthLimit = 20;
/** Each key is compared with those before it; a longer mapping goes to the library, which hashes them. */
const keyLimit = 100;

/** Null: not simple enough to judge. `root` is null for a document with nothing in it. */
export function parseSimple(text: string): { root: Node | null } | null {
  if (unusual.test(text)) return null;
  const cursor: Cursor = { text, lines: contentLines(text), next: 0 };
  if (cursor.lines.length === 0) return { root: null };
  try {
    const root = block(cursor, 0, 0);
    return cursor.next === cursor.lines.length ? { root } : null;
  } catch (error) {
    if (error instanceof Unusual) return null;
    throw error;
  }
}

function contentLines(text: string): Line[] {
  const lines: Line[] = [];
  let at = 0;
  while (at < text.length) {
    const newline = text.indexOf("\n", at);
    const end = newline < 0 ? text.length : newline;
    let start = at;
    while (start < end && text[start] === " ") start += 1;
    if (start < end && text[start] !== "#") lines.push({ indent: start - at, start, end });
    at = end + 1;
  }
  return lines;
}

function isItem(text: string, line: Line): boolean {
  return text[line.start] === "-" && text[line.start + 1] === " ";
}

function keyOf(text: string, at: number): string | null {
  keyPattern.lastIndex = at;
  return keyPattern.exec(text)?.[1] ?? null;
}

function block(cursor: Cursor, indent: number, depth: number): Node {
  const line = cursor.lines[cursor.next];
  if (line === undefined || line.indent !== indent || depth > depthLimit) throw new Unusual();
  return isItem(cursor.text, line) ? list(cursor, indent, depth) : map(cursor, indent, depth);
}

/** The next line if it belongs to a collection at `indent`, null if the collection is over; deeper lines are unusual. */
function nextLine(cursor: Cursor, indent: number): Line | null {
  const line = cursor.lines[cursor.next];
  if (line === undefined || line.indent < indent) return null;
  if (line.indent > indent) throw new Unusual();
  return line;
}

function map(cursor: Cursor, indent: number, depth: number): MapNode {
  const entries: Entry[] = [];
  const at = cursor.lines[cursor.next]?.start ?? 0;
  for (let line = nextLine(cursor, indent); line !== null; line = nextLine(cursor, indent)) {
    if (isItem(cursor.text, line)) break;
    const key = keyOf(cursor.text, line.start);
    if (key === null || entries.length > keyLimit || entries.some((entry) => entry.key === key)) throw new Unusual();
    cursor.next += 1;
    entries.push({ key, keyAt: line.start, value: mapValue(cursor, line, line.start + key.length + 1, depth) });
  }
  return { kind: "map", entries, at };
}

/** The value of the key on `line`: the rest of the line, else the lines below it, else nothing. */
function mapValue(cursor: Cursor, line: Line, from: number, depth: number): Node {
  if (!onlyComment(cursor.text, from, line.end))
    return readInline(cursor.text, afterSpaces(cursor.text, from), line.end);
  const below = cursor.lines[cursor.next];
  if (below !== undefined && below.indent > line.indent) return block(cursor, below.indent, depth + 1);
  if (below !== undefined && below.indent === line.indent && isItem(cursor.text, below)) {
    return list(cursor, below.indent, depth + 1);
  }
  return { kind: "null", text: "", at: line.start };
}

function afterSpaces(text: string, from: number): number {
  let at = from;
  while (text[at] === " ") at += 1;
  return at;
}

function list(cursor: Cursor, indent: number, depth: number): ListNode {
  const items: Node[] = [];
  const at = cursor.lines[cursor.next]?.start ?? 0;
  for (let line = nextLine(cursor, indent); line !== null; line = nextLine(cursor, indent)) {
    if (!isItem(cursor.text, line)) break;
    items.push(item(cursor, line, depth));
  }
  return { kind: "list", items, at };
}

function item(cursor: Cursor, line: Line, depth: number): Node {
  const start = afterSpaces(cursor.text, line.start + 1);
  if (onlyComment(cursor.text, line.start + 1, line.end)) throw new Unusual();
  if (keyOf(cursor.text, start) !== null) {
    // `- key: value`: the mapping's first line is what follows the dash, indented to where it stands.
    const indent = line.indent + start - line.start;
    cursor.lines[cursor.next] = { indent, start, end: line.end };
    return block(cursor, indent, depth + 1);
  }
  cursor.next += 1;
  return readInline(cursor.text, start, line.end);
}

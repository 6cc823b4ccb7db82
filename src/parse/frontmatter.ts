// The block between `---` lines at the top of a ticket or project file: where it is, and what its fields say.

import { describe, type MapNode, member, type Node } from "./node.ts";
import { parseYaml, place } from "./source.ts";

export type Split =
  | { kind: "none"; cause: string | null }
  /** `closeStart`: offset of the closing line, where stamped lines go. `bodyStart`: where the body begins. */
  | { kind: "block"; yaml: string; closeStart: number; bodyStart: number }
  | { kind: "error"; problem: string };

const opener = "---\n";
/** Offset of the block's text in the file. */
export const yamlStart = opener.length;

/** Why a file that was meant to have a block has none; null when nothing suggests that it was. */
function missedCause(text: string): string | null {
  if (text.startsWith("\ufeff---")) {
    return "the file starts with a byte-order mark, so its frontmatter block was not recognised; save it without one";
  }
  if (text.startsWith("---\r")) {
    return "the first line ends in a carriage return, so its frontmatter block was not recognised; use Unix line ends (LF)";
  }
  if (/^---[ \t]+(?:\r?\n|$)/.test(text)) {
    return "the first line has blanks after `---`, so its frontmatter block was not recognised; remove them";
  }
  if (/^\s*-{3,}[ \t]*(?:\r?\n|$)/.test(text)) {
    return "the first line is not exactly `---`, so its frontmatter block was not recognised; let nothing stand before or beside it";
  }
  return null;
}

function findClose(text: string): { closeStart: number; bodyStart: number } | null {
  let start = yamlStart;
  while (start <= text.length) {
    const newline = text.indexOf("\n", start);
    const end = newline < 0 ? text.length : newline;
    if (end - start === 3 && text.startsWith("---", start)) {
      return { closeStart: start, bodyStart: Math.min(text.length, end + 1) };
    }
    if (newline < 0) return null;
    start = newline + 1;
  }
  return null;
}

/** Finds the block (files.md 5.2): it opens with exactly `---` LF and ends at the first later line that is exactly `---`. */
export function splitFrontmatter(text: string): Split {
  if (!text.startsWith(opener)) return { kind: "none", cause: missedCause(text) };
  const close = findClose(text);
  if (close === null) {
    return {
      kind: "error",
      problem: "the frontmatter block is not terminated; end it with a line that is exactly `---`",
    };
  }
  const yaml = text.slice(yamlStart, close.closeStart);
  const foreign = /[\r\u0085\u2028\u2029]/.exec(yaml);
  if (foreign !== null) {
    const where = place(text, yamlStart + foreign.index);
    const problem = `the frontmatter block has a line break other than LF; save the file with Unix line ends${where}`;
    return { kind: "error", problem };
  }
  return { kind: "block", yaml, ...close };
}

export type Frontmatter =
  | { ok: true; fields: MapNode; cause: string | null; body: string; split: Split }
  | { ok: false; problem: string };

const emptyMap: MapNode = { kind: "map", entries: [], at: 0 };

/** Splits a file and parses its block; the problem is one after which nothing in the block is readable. */
export function parseFrontmatter(text: string): Frontmatter {
  const split = splitFrontmatter(text);
  if (split.kind === "error") return { ok: false, problem: split.problem };
  if (split.kind === "none") return { ok: true, fields: emptyMap, cause: split.cause, body: text, split };
  const parsed = parseYaml(split.yaml);
  if (!parsed.ok) {
    const where = place(text, yamlStart + parsed.at);
    return { ok: false, problem: `invalid frontmatter: ${parsed.problem}${where}` };
  }
  const { root } = parsed;
  if (root !== null && root.kind !== "map") {
    const where = place(text, yamlStart + root.at);
    const problem = `invalid frontmatter: it must be a mapping of \`key: value\` lines, found ${describe(root)}${where}`;
    return { ok: false, problem };
  }
  return { ok: true, fields: root ?? emptyMap, cause: null, body: text.slice(split.bodyStart), split };
}

export type FieldText = { ok: true; text: string | null } | { ok: false; found: Node };

/** A scalar field: strings and numbers give their text, null and absence give null, the rest is a mistake. */
export function fieldText(fields: MapNode, key: string): FieldText {
  const value = member(fields, key);
  if (value === null || value.kind === "null") return { ok: true, text: null };
  if (value.kind === "list" || value.kind === "map" || value.kind === "boolean") return { ok: false, found: value };
  return { ok: true, text: value.text };
}

export type FieldList = { ok: true; items: string[] } | { ok: false; found: Node };

/** `blocked_by` when the key is there at all: a list of strings, else a mistake; absence gives null. */
export function blockerList(fields: MapNode): FieldList | null {
  const value = fields.entries.find((entry) => entry.key === "blocked_by")?.value;
  if (value === undefined) return null;
  if (value.kind !== "list") return { ok: false, found: value };
  const items: string[] = [];
  for (const item of value.items) {
    if (item.kind !== "string") return { ok: false, found: item };
    items.push(item.text);
  }
  return { ok: true, items: items.length < 2 ? items : [...new Set(items)] };
}

/** The scalar fields in the order their problems are reported (files.md 5.4). */
export const scalarFields = [
  "id",
  "project",
  "title",
  "name",
  "worktree",
  "target",
  "model",
  "effort",
  "flow",
] as const;
export type ScalarField = (typeof scalarFields)[number];

/** Where a value of the block stands in the file `text`, to end a message with. */
export function fieldPlace(text: string, { at }: Pick<Node, "at">): string {
  return place(text, yamlStart + at);
}

/** The problem of a field of the file `text` that holds a boolean, a list or a mapping. */
export function notScalar(text: string, key: string, found: Node): string {
  const advice = found.kind === "boolean" ? "; quote it to make it text" : "";
  return `frontmatter field \`${key}\` must be a scalar, found ${describe(found)}${advice}${fieldPlace(text, found)}`;
}

/** The problem of a `blocked_by` in the file `text` that is no list of strings; `found` is what it is, or an item that is none. */
export function badBlockers(text: string, found: Node): string {
  const wanted = "use `blocked_by: []` or a YAML list of ticket ids, quoted where an id reads as a number";
  return `invalid \`blocked_by\`; ${wanted}, found ${describe(found)}${fieldPlace(text, found)}`;
}

// Reads nodes as the types a file's grammar asks for; a mismatch names the file, the key, what was found and what was expected.

import { SloopError } from "../core/errors.ts";
import { describe, type MapNode, type Node } from "./node.ts";
import { parseYaml, place } from "./source.ts";

/** A file being read. `path` begins every message. */
export type Source = { path: string; text: string };

/** A value with where it came from, so that a later check can still point at it. */
export type Placed<T> = { value: T; key: string; at: number; source: Source };

/** Refuses the file: `<path>: <problem> (line L, column C)`. Always throws `invalid_arguments`. */
export function refuse(source: Source, at: number, problem: string): never {
  throw new SloopError("invalid_arguments", `${source.path}: ${problem}${place(source.text, at)}`);
}

/** Refuses a value where it stands. */
export function refusePlaced(placed: Pick<Placed<unknown>, "source" | "at">, problem: string): never {
  refuse(placed.source, placed.at, problem);
}

/** A file whose byte-order mark, harmless in YAML files, is gone. */
export function openSource(path: string, text: string): Source {
  return { path, text: text.startsWith("\ufeff") ? text.slice(1) : text };
}

/** The document's root, null when it is empty. Throws when it is not YAML. */
export function parseSource(source: Source): Node | null {
  const parsed = parseYaml(source.text);
  return parsed.ok ? parsed.root : refuse(source, parsed.at, parsed.problem);
}

function mismatch(source: Source, node: Node, wanted: string): never {
  refuse(source, node.at, `${wanted}, found ${describe(node)}`);
}

export function asMap(source: Source, node: Node, key: string): MapNode {
  return node.kind === "map" ? node : mismatch(source, node, `${key} must be a mapping`);
}

export function asBoolean(source: Source, node: Node, key: string): boolean {
  if (node.kind !== "boolean") return mismatch(source, node, `${key} must be \`true\` or \`false\`, unquoted`);
  return node.text.toLowerCase() === "true";
}

const largestCount = 4_294_967_295;

function integerValue(text: string): number {
  const negative = text.startsWith("-");
  const digits = text.replace(/^[-+]/, "").toLowerCase();
  return negative ? -Number(digits) : Number(digits);
}

/** An unquoted integer from 0 to 2^32 - 1. */
export function asCount(source: Source, node: Node, key: string): number {
  const value = node.kind === "integer" ? integerValue(node.text) : Number.NaN;
  if (!(value >= 0 && value <= largestCount)) {
    return mismatch(source, node, `${key} must be a plain whole number (an unquoted integer, not negative)`);
  }
  return value;
}

/** A string by the policy of config.yaml: an unquoted number or boolean counts as its source text. */
export function asLooseText(source: Source, node: Node, key: string): string {
  if (node.kind === "null" || node.kind === "list" || node.kind === "map") {
    return mismatch(source, node, `${key} must be a string`);
  }
  return node.text;
}

/** A list of strings by the policy of config.yaml. */
export function asLooseTexts(source: Source, node: Node, key: string): string[] {
  if (node.kind !== "list") return mismatch(source, node, `${key} must be a list of strings`);
  return node.items.map((item) => asLooseText(source, item, `each item of ${key}`));
}

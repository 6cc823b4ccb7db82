// The values of an authored YAML file, each with its source text and place; what a bare word means is decided here.

export type ScalarKind = "null" | "boolean" | "integer" | "float" | "string";

/** `text` is the source text of a plain scalar and the content of a quoted one. `at`: offset in the parsed text. */
export type ScalarNode = { kind: ScalarKind; text: string; at: number };
export type ListNode = { kind: "list"; items: Node[]; at: number };
export type Entry = { key: string; keyAt: number; value: Node };
export type MapNode = { kind: "map"; entries: Entry[]; at: number };
export type Node = ScalarNode | ListNode | MapNode;

const nulls = new Set(["", "~", "null", "Null", "NULL"]);
const booleans = new Set(["true", "True", "TRUE", "false", "False", "FALSE"]);
const integer = /^[-+]?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+)$/;
// A leading zero makes a word of digits a string, with a fraction or an exponent too.
const float = /^[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$/;
const special = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

/** What a plain (unquoted) scalar is: YAML 1.2, and `007` is a string (files.md 2.1). */
export function plainKind(text: string): ScalarKind {
  if (nulls.has(text)) return "null";
  if (booleans.has(text)) return "boolean";
  if (!/^[-+.0-9]/.test(text)) return "string";
  if (integer.test(text)) return "integer";
  return float.test(text) || special.test(text) ? "float" : "string";
}

/** The value under `key`; null when the mapping lacks it or holds null there, which count as the same. */
export function member(map: MapNode, key: string): Node | null {
  const value = map.entries.find((entry) => entry.key === key)?.value;
  return value === undefined || value.kind === "null" ? null : value;
}

/** What was found, for a message: `the number 3`, `a list`. */
export function describe(node: Node): string {
  switch (node.kind) {
    case "null":
      return "nothing (null)";
    case "boolean":
      return `the boolean \`${node.text}\``;
    case "integer":
    case "float":
      return `the number \`${node.text}\``;
    case "string":
      return `the string ${quoted(node.text)}`;
    case "list":
      return "a list";
    case "map":
      return "a mapping";
  }
}

function quoted(text: string): string {
  const short = text.length > 60 ? `${text.slice(0, 60)}…` : text;
  return JSON.stringify(short);
}

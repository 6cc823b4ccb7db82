// The YAML library's tree turned into ours: aliases followed, duplicate keys and runaway sizes refused.

import type * as Yaml from "yaml";
import { type Entry, type Node, plainKind, type ScalarNode } from "./node.ts";

const depthLimit = 128;
/** Nodes a file may stand for once its aliases are followed; far beyond anything a person writes. */
const sizeLimit = 100_000;

/** Why a document that the library could read is still not accepted, and where. */
export class Refusal extends Error {
  readonly at: number;
  constructor(problem: string, at: number) {
    super(problem);
    this.at = at;
  }
}

/** A value with what it costs to walk: `size` counts nodes, `height` levels of collections, aliases followed. */
type Part = { node: Node; size: number; height: number };

type Reading = {
  yaml: typeof Yaml;
  /** Values behind the anchors met so far; null while a value is still being read, which only a cycle can meet. */
  anchors: Map<string, Part | null>;
  aliased: number;
};

/** Converts the contents of one document; throws `Refusal`. */
export function convertDocument(yaml: typeof Yaml, contents: Yaml.Node): Node {
  return convert({ yaml, anchors: new Map(), aliased: 0 }, contents, 0).node;
}

function scalar(node: Yaml.Scalar): ScalarNode {
  const at = node.range?.[0] ?? 0;
  const text = typeof node.value === "string" ? node.value : "";
  const tag = node.tag ?? "";
  const plain = node.type === undefined || node.type === "PLAIN";
  const typed = /^tag:yaml\.org,2002:(?:int|float|bool|null)$/.test(tag);
  const asText = !plain || tag === "!" || tag === "tag:yaml.org,2002:str";
  return { kind: typed || !asText ? plainKind(text) : "string", text, at };
}

function alias(reading: Reading, node: Yaml.Alias, depth: number): Part {
  const at = node.range?.[0] ?? 0;
  const part = reading.anchors.get(node.source);
  if (part === undefined) throw new Refusal(`the alias \`*${node.source}\` has no anchor before it`, at);
  if (part === null) throw new Refusal(`the alias \`*${node.source}\` stands inside its own anchor`, at);
  reading.aliased += part.size;
  if (reading.aliased > sizeLimit) throw new Refusal("the aliases expand to too much", at);
  checkDepth(depth + part.height, at);
  return part;
}

function checkDepth(depth: number, at: number): void {
  if (depth > depthLimit) throw new Refusal(`values are nested more than ${depthLimit} levels deep`, at);
}

function convert(reading: Reading, node: unknown, depth: number): Part {
  const { yaml } = reading;
  if (yaml.isAlias(node)) return alias(reading, node, depth);
  const anchor = yaml.isNode(node) && "anchor" in node ? node.anchor : undefined;
  if (anchor !== undefined) reading.anchors.set(anchor, null);
  const part = convertPlain(reading, node, depth);
  if (anchor !== undefined) reading.anchors.set(anchor, part);
  return part;
}

function convertPlain(reading: Reading, node: unknown, depth: number): Part {
  const { yaml } = reading;
  if (yaml.isSeq(node)) return list(reading, node, depth + 1);
  if (yaml.isMap(node)) return map(reading, node, depth + 1);
  if (yaml.isScalar(node)) return { node: scalar(node), size: 1, height: 0 };
  return { node: { kind: "null", text: "", at: 0 }, size: 1, height: 0 };
}

function list(reading: Reading, node: Yaml.YAMLSeq, depth: number): Part {
  const at = node.range?.[0] ?? 0;
  checkDepth(depth, at);
  const items: Node[] = [];
  let size = 1;
  let height = 0;
  for (const item of node.items) {
    const part = convert(reading, item, depth);
    items.push(part.node);
    size += part.size;
    height = Math.max(height, part.height);
  }
  return { node: { kind: "list", items, at }, size, height: height + 1 };
}

function keyText(reading: Reading, node: unknown, at: number): { key: string; keyAt: number } {
  const { node: key } = convert(reading, node, 0);
  if (key.kind === "list" || key.kind === "map") throw new Refusal("a mapping key must be text", at);
  const own = reading.yaml.isNode(node) ? node.range?.[0] : undefined;
  return { key: key.text, keyAt: own ?? at };
}

function map(reading: Reading, node: Yaml.YAMLMap, depth: number): Part {
  const at = node.range?.[0] ?? 0;
  checkDepth(depth, at);
  const entries: Entry[] = [];
  const seen = new Set<string>();
  let size = 1;
  let height = 0;
  for (const pair of node.items) {
    const { key, keyAt } = keyText(reading, pair.key, at);
    if (seen.has(key)) throw new Refusal(`duplicate key \`${key}\`; keep one of them`, keyAt);
    seen.add(key);
    const part = convert(reading, pair.value, depth);
    entries.push({ key, keyAt, value: placed(part.node, keyAt) });
    size += part.size + 1;
    height = Math.max(height, part.height);
  }
  return { node: { kind: "map", entries, at }, size, height: height + 1 };
}

/** A value that was left out has no place of its own: it gets its key's. */
function placed(node: Node, keyAt: number): Node {
  return node.kind === "null" && node.text === "" ? { kind: "null", text: "", at: keyAt } : node;
}

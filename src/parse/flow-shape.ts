// The shape of a flow file (files.md 9.5): whatever the grammar does not list is refused here, before any rule is applied.

import { closeTo } from "./nearest.ts";
import { describe, type Entry, type MapNode, member, type Node } from "./node.ts";
import { asBoolean, asCount, refuse, type Source } from "./shape.ts";

/** A value as written, with the place a rule's message points at. */
type Raw<T> = { value: T; at: number };

type RawForm =
  | { form: "word"; word: string }
  | { form: "agent" }
  | { form: "exec"; cmd: string[] }
  | { form: "builtin"; word: string }
  | { form: "panel"; panel: RawPanel };

/** An action or a result check. */
export type RawStep = RawForm & { ffOnly: Raw<boolean> | null; at: number };

export type RawReviewer = { target: string | null; model: string | null; effort: string | null; at: number };

export type RawPanel = {
  prompt: Raw<string> | null;
  reviewers: RawReviewer[];
  quorum: Raw<number> | null;
  at: number;
};

export type RawFail = { at: number } & (
  | { form: "word"; word: string }
  | { form: "return_to"; stage: Raw<string>; attempts: Raw<number> | null }
);

export type RawStage = {
  name: string;
  at: number;
  /** The first key no stage has. */
  unknown: Raw<string> | null;
  action: RawStep | null;
  resultCheck: RawStep | null;
  failAction: RawFail | null;
};

export const stageKeys = ["name", "action", "result_check", "fail_action"] as const;

/** Where the reader is: `what` names the stage and key for messages. */
type Place = { source: Source; what: string };

function wrong(place: Place, node: Node, expected: string): never {
  refuse(place.source, node.at, `${place.what} must be ${expected}, found ${describe(node)}`);
}

function under(place: Place, key: string): Place {
  return { source: place.source, what: `${place.what} \`${key}\`` };
}

/** A string by the policy of flow files: a number or boolean needs quotes. */
function text(place: Place, node: Node): string {
  if (node.kind === "string") return node.text;
  const hint = node.kind === "null" || node.kind === "list" || node.kind === "map" ? "" : "; quote it to make it one";
  refuse(place.source, node.at, `${place.what} must be a string, found ${describe(node)}${hint}`);
}

function texts(place: Place, node: Node): string[] {
  if (node.kind !== "list") return wrong(place, node, "a list of strings, one per argument, as in [make, test]");
  const item = { source: place.source, what: `each item of ${place.what}` };
  return node.items.map((argument) => text(item, argument));
}

function map(place: Place, node: Node): MapNode {
  return node.kind === "map" ? node : wrong(place, node, "a mapping");
}

function onlyKeys(place: Place, node: MapNode, allowed: readonly string[]): void {
  const stranger = node.entries.find((entry) => !allowed.includes(entry.key));
  if (stranger === undefined) return;
  const list = allowed.map((key) => `\`${key}\``).join(", ");
  const near = closeTo(stranger.key, allowed);
  const hint = strayKeys.get(stranger.key) ?? (near === null ? "" : `; did you mean \`${near}\`?`);
  refuse(
    place.source,
    stranger.keyAt,
    `${place.what} has the unknown key \`${stranger.key}\`, expected ${list}${hint}`,
  );
}

/** Keys that are often written one level too high. */
const strayKeys = new Map([["quorum", "; it belongs below `require`: `require: { quorum: 2 }`"]]);

function optional<T>(place: Place, node: MapNode, key: string, read: (place: Place, node: Node) => T): Raw<T> | null {
  const value = member(node, key);
  return value === null ? null : { value: read(under(place, key), value), at: value.at };
}

const count = (place: Place, node: Node) => asCount(place.source, node, place.what);
const boolean = (place: Place, node: Node) => asBoolean(place.source, node, place.what);

function reviewer(place: Place, node: Node): RawReviewer {
  if (node.kind !== "map") return wrong(place, node, "a mapping, as in { target: claude }");
  const fields = node;
  onlyKeys(place, fields, ["target", "model", "effort"]);
  return {
    target: optional(place, fields, "target", text)?.value ?? null,
    model: optional(place, fields, "model", text)?.value ?? null,
    effort: optional(place, fields, "effort", text)?.value ?? null,
    at: node.at,
  };
}

function reviewers(place: Place, node: Node): RawReviewer[] {
  if (node.kind !== "list") return wrong(place, node, "a list of mappings, one per reviewer");
  return node.items.map((item, index) => reviewer({ ...place, what: `${place.what} item ${index + 1}` }, item));
}

function quorum(place: Place, node: Node): Raw<number> | null {
  const fields = map(place, node);
  onlyKeys(place, fields, ["quorum"]);
  return optional(place, fields, "quorum", count);
}

function panel(place: Place, node: Node): RawPanel {
  const fields = map(place, node);
  onlyKeys(place, fields, ["prompt", "reviewers", "require"]);
  return {
    prompt: optional(place, fields, "prompt", text),
    reviewers: optional(place, fields, "reviewers", reviewers)?.value ?? [],
    quorum: optional(place, fields, "require", quorum)?.value ?? null,
    at: node.at,
  };
}

function stepForm(place: Place, entry: Entry): RawForm {
  const inner = under(place, entry.key);
  switch (entry.key) {
    case "exec":
      return { form: "exec", cmd: texts(inner, entry.value) };
    case "builtin":
      return { form: "builtin", word: text(inner, entry.value) };
    case "panel":
      return { form: "panel", panel: panel(inner, entry.value) };
    default:
      // An agent's payload is discarded, whatever it is.
      return { form: "agent" };
  }
}

/** An action or a check: a bare word, or a mapping with exactly one of `kinds`, and perhaps `ff_only`. */
function step(place: Place, node: Node, kinds: readonly string[]): RawStep {
  if (node.kind === "string") return { form: "word", word: node.text, ffOnly: null, at: node.at };
  const list = kinds.map((kind) => `\`${kind}\``).join(", ");
  if (node.kind !== "map") return wrong(place, node, `a word or a mapping with one of ${list}`);
  const found = node.entries.filter((entry) => kinds.includes(entry.key));
  const [first, second] = found;
  if (first === undefined) {
    refuse(place.source, node.at, `${place.what} must have one of the keys ${list}, found ${keyList(node)}`);
  }
  if (second !== undefined) {
    const problem = `${place.what} is ambiguous: it has both \`${first.key}\` and \`${second.key}\`; keep one`;
    refuse(place.source, second.keyAt, problem);
  }
  onlyKeys(place, node, [first.key, "ff_only"]);
  return { ...stepForm(place, first), ffOnly: optional(place, node, "ff_only", boolean), at: node.at };
}

function keyList(node: MapNode): string {
  return node.entries.map((entry) => `\`${entry.key}\``).join(", ") || "none";
}

function failAction(place: Place, node: Node): RawFail {
  if (node.kind === "string") return { form: "word", word: node.text, at: node.at };
  if (node.kind !== "map") return wrong(place, node, "`fail`, `continue` or a mapping with `return_to`");
  onlyKeys(place, node, ["return_to", "attempts"]);
  const stage = optional(place, node, "return_to", text);
  if (stage === null) {
    return refuse(place.source, node.at, `${place.what} must have the key \`return_to\`, found ${keyList(node)}`);
  }
  return { form: "return_to", stage, attempts: optional(place, node, "attempts", count), at: node.at };
}

function stage(source: Source, node: Node, index: number): RawStage {
  const byPosition: Place = { source, what: `stage ${index + 1}` };
  const fields = map(byPosition, node);
  const nameNode = member(fields, "name");
  if (nameNode === null) {
    return refuse(source, node.at, `stage ${index + 1} must have a \`name\`, found ${keyList(fields)}`);
  }
  const name = text(under(byPosition, "name"), nameNode);
  const place: Place = { source, what: `stage \`${name}\`` };
  const unknown = fields.entries.find((entry) => !(stageKeys as readonly string[]).includes(entry.key));
  const read = <T>(key: string, as: (place: Place, node: Node) => T) => optional(place, fields, key, as)?.value ?? null;
  return {
    name,
    at: nameNode.at,
    unknown: unknown === undefined ? null : { value: unknown.key, at: unknown.keyAt },
    action: read("action", (inner, value) => step(inner, value, ["agent", "exec", "builtin"])),
    resultCheck: read("result_check", (inner, value) => step(inner, value, ["exec", "builtin", "panel"])),
    failAction: read("fail_action", failAction),
  };
}

/** The stages of a flow file as written. Throws at the first thing that does not fit the grammar. */
export function readStages(source: Source, root: Node | null): { stages: RawStage[]; at: number } {
  const wanted = "a flow file must be a list of stages, or a mapping with `stages:`";
  if (root === null || root.kind === "null") return refuse(source, 0, `${wanted}; it is empty`);
  const list = root.kind === "map" ? member(root, "stages") : root;
  if (list === null) return refuse(source, root.at, `${wanted}; it has no \`stages\``);
  if (list.kind !== "list") {
    const what = root.kind === "map" ? "`stages:` must hold a list of stages, each beginning with `- name:`" : wanted;
    return refuse(source, list.at, `${what}, found ${describe(list)}`);
  }
  return { stages: list.items.map((item, index) => stage(source, item, index)), at: list.at };
}

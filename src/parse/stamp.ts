// Writes missing keys into a file's frontmatter as whole lines before its closing `---`; no existing byte changes.

import { SloopError } from "../core/errors.ts";
import { fieldText, notScalar, parseFrontmatter } from "./frontmatter.ts";
import type { MapNode } from "./node.ts";
import { parseYaml } from "./source.ts";

type Stamped = { key: string; value: string };

function refuse(path: string, problem: string): never {
  throw new SloopError("invalid_arguments", `${path}: invalid frontmatter: ${problem}`);
}

function readsBack(line: string, { key, value }: Stamped): boolean {
  const parsed = parseYaml(`${line}\n`);
  if (!parsed.ok || parsed.root?.kind !== "map") return false;
  const field = fieldText(parsed.root, key);
  return field.ok && field.text === value;
}

function doubleQuoted(value: string): string {
  // JSON's escapes are YAML's; what JSON leaves alone but YAML or the block's rules would not is written as a number.
  const asNumber = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\u007f-\u00a0\u2028\u2029\ufeff\ufffe\uffff]/g, asNumber);
}

function stampLine(stamped: Stamped): string {
  const { key, value } = stamped;
  const plain = `${key}: ${value}`;
  if (/^[A-Za-z][A-Za-z0-9/_-]*$/.test(value) && !/^(?:true|false|null)$/i.test(value)) return plain;
  const oneLine = !/[\n\r\u0085\u2028\u2029]/.test(value);
  return oneLine && readsBack(plain, stamped) ? plain : `${key}: ${doubleQuoted(value)}`;
}

/** Whether the key is there with a value; one that is there without is null in YAML and counts as absent. */
function isPresent(fields: MapNode, key: string, file: { path: string; text: string }): boolean {
  const field = fieldText(fields, key);
  if (!field.ok) throw new SloopError("invalid_arguments", `${file.path}: ${notScalar(file.text, key, field.found)}`);
  return field.text !== null;
}

function checkStamped(text: string, path: string, stamped: Stamped[]): void {
  const front = parseFrontmatter(text);
  if (!front.ok) {
    const lines = stamped.map(({ key, value }) => `\`${key}: ${value}\``).join(", ");
    refuse(path, `${lines} cannot be added; write the block as unindented \`key: value\` lines`);
  }
  for (const { key, value } of stamped) {
    const field = fieldText(front.fields, key);
    if (!field.ok || field.text !== value)
      refuse(path, `\`${key}\` cannot be added so that it reads back as \`${value}\``);
  }
}

/** Adds the absent ones of `keys`, in order; null when all are there. Throws unless the result reads back. */
function stamp(text: string, path: string, keys: Stamped[]): string | null {
  const front = parseFrontmatter(text);
  if (!front.ok) throw new SloopError("invalid_arguments", `${path}: ${front.problem}`);
  const absent = keys.filter(({ key }) => !isPresent(front.fields, key, { path, text }));
  if (absent.length === 0) return null;
  const empty = absent.find(({ key }) => front.fields.entries.some((entry) => entry.key === key));
  if (empty !== undefined) {
    refuse(path, `\`${empty.key}\` is present but empty; give it a value or remove the line`);
  }
  const { split } = front;
  const lines = absent.map((stamped) => `${stampLine(stamped)}\n`).join("");
  const stampedText =
    split.kind === "block"
      ? text.slice(0, split.closeStart) + lines + text.slice(split.closeStart)
      : `---\n${lines}---\n${text}`;
  checkStamped(stampedText, path, absent);
  return stampedText;
}

/** A ticket's text with the absent ones of its four keys added (files.md 6.4); null when nothing is absent. Throws `invalid_arguments`. */
export function stampTicket(
  text: string,
  path: string,
  values: { id: string; project: string; worktree: string; flow: string },
): string | null {
  const { id, project, worktree, flow } = values;
  return stamp(text, path, [
    { key: "id", value: id },
    { key: "project", value: project },
    { key: "worktree", value: worktree },
    { key: "flow", value: flow },
  ]);
}

/** A project's text with its `id` added, in a block of its own if it has none; null when it has one. Throws `invalid_arguments`. */
export function stampId(text: string, path: string, id: string): string | null {
  return stamp(text, path, [{ key: "id", value: id }]);
}

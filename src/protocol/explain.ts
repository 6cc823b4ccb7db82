// Why a value does not fit a schema, as one readable line: the field, what it holds, what it may hold.

import { KindGuard, type TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

/** Longest piece of a caller's value that is quoted back, in characters. */
const quoteLimit = 80;

// Objects and arrays are only named: they may be nested deeper than rendering them survives.
function quote(value: unknown): string {
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "an array" : "an object";
  if (Number.isNaN(value)) return "a fraction";
  const text = typeof value === "bigint" || typeof value === "number" ? String(value) : JSON.stringify(value);
  return text.length > quoteLimit ? `${text.slice(0, quoteLimit)}...` : text;
}

function place(path: string): string {
  return path === "" ? "`args`" : `\`${path}\``;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function range(schema: TSchema): string {
  const { minimum, maximum, description } = schema;
  return description ?? `an integer from ${minimum} to ${maximum}`;
}

/** What the schema allows, in words. */
function wanted(schema: TSchema): string {
  if (KindGuard.IsUnion(schema)) {
    const words = schema.anyOf.filter((part) => !KindGuard.IsNull(part) && !KindGuard.IsBigInt(part)).map(wanted);
    return words.length > 1 ? `one of ${words.join(", ")}` : (words[0] ?? "null");
  }
  if (KindGuard.IsLiteral(schema)) return JSON.stringify(schema.const);
  if (KindGuard.IsString(schema)) return "a string";
  if (KindGuard.IsBoolean(schema)) return "true or false";
  if (KindGuard.IsInteger(schema)) return range(schema);
  if (KindGuard.IsArray(schema)) return `an array of ${wanted(schema.items).replace(/^an? /, "")}s`;
  return "an object";
}

function under(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function explainMember(schema: TSchema, name: string, part: unknown, path: string): string | null {
  const properties = schema["properties"] as Record<string, TSchema>;
  const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
  if (known !== undefined) return Value.Check(known, part) ? null : explainAt(known, part, under(path, name));
  return schema["additionalProperties"] === false ? `unknown field ${place(under(path, name))}` : null;
}

function explainObject(schema: TSchema, value: Record<string, unknown>, path: string): string | null {
  for (const name of (schema["required"] ?? []) as string[]) {
    if (!Object.hasOwn(value, name)) return `missing field ${place(under(path, name))}`;
  }
  for (const [name, part] of Object.entries(value)) {
    const problem = explainMember(schema, name, part, path);
    if (problem !== null) return problem;
  }
  return null;
}

// Objects told apart by `kind`: once that is right, the problem lies inside the one it names.
function explainKinds(kinds: readonly TSchema[], value: Record<string, unknown>, path: string): string {
  const literal = (schema: TSchema) => (schema["properties"] as Record<string, TSchema>)["kind"]?.["const"];
  const chosen = kinds.find((schema) => literal(schema) === value["kind"]);
  if (chosen !== undefined) return explainAt(chosen, value, path);
  const known = kinds.map((schema) => JSON.stringify(literal(schema))).join(", ");
  const field = place(under(path, "kind"));
  if (!Object.hasOwn(value, "kind")) return `missing field ${field}; expected one of ${known}`;
  return `field ${field} is ${quote(value["kind"])}; expected one of ${known}`;
}

/** The one schema of an optional argument that is not its null. */
function withoutNull(schema: TSchema): TSchema {
  if (!KindGuard.IsUnion(schema)) return schema;
  const parts = schema.anyOf.filter((part) => !KindGuard.IsNull(part));
  return parts.length === 1 ? (parts[0] as TSchema) : schema;
}

function explainAt(optional: TSchema, value: unknown, path: string): string {
  const schema = withoutNull(optional);
  if (KindGuard.IsUnion(schema) && isKindUnion(schema.anyOf)) {
    if (isObject(value)) return explainKinds(schema.anyOf, value, path);
    return `field ${place(path)} is ${quote(value)}; expected an object`;
  }
  if (KindGuard.IsObject(schema) && isObject(value)) {
    const inner = explainObject(schema, value, path);
    if (inner !== null) return inner;
  }
  if (KindGuard.IsArray(schema) && Array.isArray(value)) {
    const index = value.findIndex((item) => !Value.Check(schema.items, item));
    if (index >= 0) return explainAt(schema.items, value[index], `${path}[${index}]`);
  }
  return `field ${place(path)} is ${quote(value)}; expected ${wanted(schema)}`;
}

function isKindUnion(parts: readonly TSchema[]): boolean {
  return parts.every((part) => KindGuard.IsObject(part));
}

/** The first problem of `value` under `schema`; call it only when the check failed. */
export function explain(schema: TSchema, value: unknown): string {
  return explainAt(schema, value, "");
}

// JSON without silent loss: integers beyond 2^53 become bigints when read, and are written back digit by digit.

type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;
// Both are in every engine we run on, and in no TypeScript library yet ("JSON.parse source text access").
const json = JSON as unknown as {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON(text: string): object;
};

const manyDigits = /[0-9]{16}/;
const integer = /^-?[0-9]+$/;

function revive(this: unknown, _key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const { source } = context;
  return source !== undefined && integer.test(source) ? BigInt(source) : value;
}

// Whitespace JSON does not know, but a line may end or begin with.
const odd = /^[\v\f]|[\v\f]\s*$/;

function trimmed(text: string): string {
  return odd.test(text) ? text.replace(/^[ \t\r\n\v\f]+|[ \t\r\n\v\f]+$/g, "") : text;
}

/** `JSON.parse` of one line. Throws SyntaxError. */
export function parseExact(text: string): unknown {
  const body = trimmed(text);
  return manyDigits.test(body) ? json.parse(body, revive) : JSON.parse(body);
}

/** `JSON.stringify` of plain data that may hold bigints. */
export function renderExact(value: unknown): string {
  return JSON.stringify(value, (_key, part) => (typeof part === "bigint" ? json.rawJSON(part.toString()) : part));
}

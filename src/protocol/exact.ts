// JSON without silent loss: integers beyond 2^53 become bigints when read, and are written back digit by digit; a fraction
// never becomes an integer.

type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;
// Both are in every engine we run on, and in no TypeScript library yet ("JSON.parse source text access").
const json = JSON as unknown as {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON(text: string): object;
};

// Only these can lose something on their way into a double: many digits, fractions, exponents.
const lossy = /[0-9]{16}|[0-9][.eE]/;
const decimal = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;
/** Digits of the longest integer that is kept exactly; no argument is wider than 64 bits. */
const longestDigits = 64;

// Not a pattern: one that ends in `0+$` is quadratic, and a number may be a megabyte long.
function trailingZeros(digits: string): number {
  let zeros = 0;
  while (zeros < digits.length && digits.at(-1 - zeros) === "0") zeros += 1;
  return zeros;
}

/** What a number's text says exactly: a bigint, null for a fraction, undefined for an integer too long to be kept. */
function exactInteger(source: string): bigint | null | undefined {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = decimal.exec(source) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  // The value is `digits` followed by that many zeros, or with that many of its digits behind the point.
  const shift = Number(exponent) - fraction.length;
  if (digits === "") return 0n;
  if (shift < -trailingZeros(digits)) return null;
  if (digits.length + shift > longestDigits) return undefined;
  return BigInt(sign + (shift < 0 ? digits.slice(0, shift) : digits + "0".repeat(shift)));
}

function revive(this: unknown, _key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== "number" || !Number.isInteger(value) || context.source === undefined) return value;
  const exact = exactInteger(context.source);
  // A fraction that a double rounds to an integer is still none.
  if (exact === null) return Number.NaN;
  return exact === undefined || Number.isSafeInteger(value) ? value : exact;
}

// Whitespace JSON does not know, but a line may end or begin with.
const odd = /^[\v\f]|[\v\f]\s*$/;

function trimmed(text: string): string {
  return odd.test(text) ? text.replace(/^[ \t\r\n\v\f]+|[ \t\r\n\v\f]+$/g, "") : text;
}

/** `JSON.parse` of one line. Throws SyntaxError. */
export function parseExact(text: string): unknown {
  const body = trimmed(text);
  return lossy.test(body) ? json.parse(body, revive) : JSON.parse(body);
}

/** `JSON.stringify` of plain data that may hold bigints. */
export function renderExact(value: unknown): string {
  return JSON.stringify(value, (_key, part) => (typeof part === "bigint" ? json.rawJSON(part.toString()) : part));
}

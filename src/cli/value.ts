// Reads one option's value (cli.md 4): text in, a checked value or the problem out.

import { displayStates } from "../core/ticket.ts";
import type { ValueForm } from "./command.ts";
import { likelyTip } from "./suggest.ts";

export type Reading =
  | { ok: true; value: string | number | string[] }
  | { ok: false; problem: string; tip: string | null };

const good = (value: string | number | string[]): Reading => ({ ok: true, value });
const bad = (problem: string, tip: string | null = null): Reading => ({ ok: false, problem, tip });

const unitMs = new Map([
  ["ms", 1n],
  ["s", 1_000n],
  ["m", 60_000n],
  ["h", 3_600_000n],
  ["d", 86_400_000n],
  ["w", 604_800_000n],
]);
const spanLimitMs = 2n ** 63n - 1n;

/** Milliseconds of `30m`, `500ms` or a sum like `1h30m`; null when it is none, is 0, or overflows 64 bits. */
export function parseSpan(text: string): bigint | null {
  if (text.length > 100 || !/^([0-9]+(ms|s|m|h|d|w))+$/.test(text)) return null;
  let total = 0n;
  for (const [, digits, unit] of text.matchAll(/([0-9]+)(ms|s|m|h|d|w)/g)) {
    total += BigInt(digits ?? "0") * (unitMs.get(unit ?? "") ?? 0n);
  }
  return total > 0n && total <= spanLimitMs ? total : null;
}

function readCount(text: string, min: number, max: number): Reading {
  const value = /^[0-9]{1,20}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return good(value);
  return bad(`is not a whole number from ${min} to ${max}`);
}

function readSpan(text: string): Reading {
  const ms = parseSpan(text);
  // A safe integer of milliseconds is 285 000 years; beyond that JSON numbers lose digits.
  if (ms !== null && ms <= BigInt(Number.MAX_SAFE_INTEGER)) return good(Number(ms));
  return bad("is not a positive duration, such as 500ms, 30s, 30m, 2h or 1h30m");
}

function readTimeout(text: string): Reading {
  if (/^[0-9]{1,12}$/.test(text)) return good(Number(text) * 1000);
  const span = readSpan(text);
  return span.ok ? span : bad("is neither whole seconds nor a duration, such as 90, 30m or 2h");
}

function readChoice(text: string, choices: readonly string[]): Reading {
  if (choices.includes(text)) return good(text);
  return bad(`is not one of ${choices.join(", ")}`, likelyTip(text, choices));
}

function readList(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

function readStates(text: string): Reading {
  const states = readList(text);
  const known: readonly string[] = displayStates;
  const wrong = states.find((state) => !known.includes(state));
  if (wrong !== undefined) return bad(`names no state: one of ${known.join(", ")}`, likelyTip(wrong, known));
  return states.length > 0 ? good(states) : bad(`names no state: one of ${known.join(", ")}`);
}

/** Checks `text` against its form; times stay text, spans become milliseconds, comma lists arrays. */
export function readValue(text: string, form: ValueForm): Reading {
  switch (form.kind) {
    case "text":
    case "prose":
      return good(text);
    case "choice":
      return readChoice(text, form.choices);
    case "count":
      return readCount(text, form.min, form.max);
    case "time":
      return /^([01][0-9]|2[0-3]):[0-5][0-9]$/.test(text)
        ? good(text)
        : bad("is not a local time HH:MM, 00:00 to 23:59");
    case "every":
      return readSpan(text);
    case "timeout":
      return readTimeout(text);
    case "states":
      return readStates(text);
    case "ids":
      return good(readList(text));
  }
}

// Words of a command line -> options and positionals, by a list of known options. `node:util` can do this too, but loading
// it costs a fifth of the program's whole start.

import type { Option } from "./command.ts";

export type Token =
  | { kind: "word"; text: string }
  /** `raw` as typed, without a value; `option` null: unknown. `value` absent: none was given. */
  | { kind: "option"; raw: string; option: Option | null; value?: string; inline: boolean };

type Cursor = { args: readonly string[]; next: number };

function takeNext(cursor: Cursor): { value?: string } {
  const value = cursor.args[cursor.next];
  if (value === undefined) return {};
  cursor.next += 1;
  return { value };
}

function longToken(word: string, options: readonly Option[], cursor: Cursor): Token {
  const equals = word.indexOf("=");
  const raw = equals < 0 ? word : word.slice(0, equals);
  const option = options.find(({ name }) => `--${name}` === raw) ?? null;
  if (equals >= 0) return { kind: "option", raw, option, value: word.slice(equals + 1), inline: true };
  const value = option?.value === undefined ? {} : takeNext(cursor);
  return { kind: "option", raw, option, ...value, inline: false };
}

/** `-fq` is `-f -q`, `-n5` and `-n=5` are `-n 5`. */
function shortTokens(word: string, options: readonly Option[], cursor: Cursor): Token[] {
  const tokens: Token[] = [];
  for (let at = 1; at < word.length; at += 1) {
    const letter = word[at] ?? "";
    const raw = `-${letter}`;
    const option = options.find(({ short }) => short === letter) ?? null;
    // The rest of an unknown group says nothing more.
    if (option === null) return [...tokens, { kind: "option", raw: at === 1 ? word : raw, option, inline: false }];
    if (option.value === undefined) {
      tokens.push({ kind: "option", raw, option, inline: false });
      continue;
    }
    const rest = word.slice(at + 1).replace(/^=/, "");
    const value = rest === "" ? takeNext(cursor) : { value: rest };
    return [...tokens, { kind: "option", raw, option, ...value, inline: rest !== "" }];
  }
  return tokens;
}

/** After `--` everything is a positional; `-` alone is one, too. */
export function tokenize(args: readonly string[], options: readonly Option[]): Token[] {
  const tokens: Token[] = [];
  const cursor: Cursor = { args, next: 0 };
  while (cursor.next < args.length) {
    const word = args[cursor.next] ?? "";
    cursor.next += 1;
    if (word === "--") {
      const rest = args.slice(cursor.next);
      return [...tokens, ...rest.map((text): Token => ({ kind: "word", text }))];
    }
    if (word.startsWith("--")) tokens.push(longToken(word, options, cursor));
    else if (word.startsWith("-") && word !== "-") tokens.push(...shortTokens(word, options, cursor));
    else tokens.push({ kind: "word", text: word });
  }
  return tokens;
}

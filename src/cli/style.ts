// Colour meanings, and the one switch that turns colour and glyphs on (cli.md 13.2).

export type Tone = "red" | "yellow" | "green" | "dim";

/** How text is dressed: `paint` colours one token, `arrow` joins a stage strip. */
export type Style = { paint(tone: Tone, text: string): string; arrow: string };

const escapes: Record<Tone, string> = { red: "\x1b[31m", yellow: "\x1b[33m", green: "\x1b[32m", dim: "\x1b[2m" };

/** Nothing but the text. */
export const plain: Style = { paint: (_tone, text) => text, arrow: " -> " };

/** Colours and the arrow glyph. */
export const coloured: Style = { paint: (tone, text) => `${escapes[tone]}${text}\x1b[0m`, arrow: " → " };

export type StyleChoice = {
  flag: "auto" | "always" | "never";
  /** The variable is there, even empty. */
  noColor: boolean;
  terminal: boolean;
};

/** The flag beats the environment, which beats the terminal test. */
export function chooseStyle(choice: StyleChoice): Style {
  if (choice.flag === "always") return coloured;
  if (choice.flag === "never" || choice.noColor) return plain;
  return choice.terminal ? coloured : plain;
}

const stateTones: Readonly<Record<string, Tone>> = { failed: "red", needs_review: "yellow", merged: "dim" };

/** A ticket or run state in its colour; most have none. */
export function paintState(style: Style, state: string): string {
  const tone = Object.hasOwn(stateTones, state) ? stateTones[state] : undefined;
  return tone === undefined ? state : style.paint(tone, state);
}

/** Control characters other than tab and newline, 8-bit ones too, shown as `\x1b`: for text of agents and tickets on a terminal. */
export function visible(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
}

/** The same value with control characters in every string made visible. */
export function visibleDeep<T>(value: T): T;
export function visibleDeep(value: unknown): unknown {
  if (typeof value === "string") return visible(value);
  if (Array.isArray(value)) return value.map((item: unknown) => visibleDeep(item));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visibleDeep(item)]));
}

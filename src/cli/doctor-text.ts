// How `sloop doctor` shows what others wrote (git's configuration, file names) and what people paste from it.

import { quoteWord } from "./quote.ts";
import { visible } from "./style.ts";

/** Text that stays on its line and does nothing to a terminal. */
export function oneLine(text: string): string {
  return visible(text).replaceAll("\t", "\\x09").replaceAll("\n", "\\x0a");
}

function octal(character: string): string {
  return [...Buffer.from(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}

/** A word for a shell, as `quoteWord` makes it; control characters are written `\033`, so that it can be shown and pasted. */
export function pasteWord(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about
  const control = /[\x00-\x1f\x7f-\x9f]/g;
  if (!control.test(text)) return quoteWord(text);
  return `$'${text.replace(/[\\']/g, "\\$&").replace(control, octal)}'`;
}

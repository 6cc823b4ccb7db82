// White space as files and arguments mean it: Unicode's White_Space. `trim` also takes U+FEFF and leaves U+0085.

/** Whether `text` holds nothing but Unicode white space; a byte-order mark is not white space. */
export function isBlank(text: string): boolean {
  return /^\p{White_Space}*$/u.test(text);
}

/** `text` without Unicode white space at either end. */
export function trimBlank(text: string): string {
  const start = text.search(/\P{White_Space}/u);
  if (start < 0) return "";
  let end = text.length;
  while (end > start && /\p{White_Space}/u.test(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

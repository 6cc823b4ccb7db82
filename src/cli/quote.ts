// Words for a shell.

/** `text` as a shell would take it for one word. */
export function quoteWord(text: string): string {
  return /^[A-Za-z0-9_./:@%+=-]+$/.test(text) && !text.startsWith("-") ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

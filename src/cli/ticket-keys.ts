// Misspelt keys in a ticket's frontmatter. They are ignored and kept (files.md 5), so nobody would notice; a person is told.

import { parseFrontmatter, scalarFields } from "../parse/frontmatter.ts";
import { editDistance } from "./suggest.ts";

const known: readonly string[] = [...scalarFields, "blocked_by"];

/** `blockedBy` and `blocked-by` are `blocked_by` in another hand. */
function sameHand(key: string): string {
  return key
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .replace(/-/g, "_")
    .toLowerCase();
}

/** The known key that `key` was probably meant to be; null for a key of one's own. */
function meant(key: string): string | null {
  const word = sameHand(key).slice(0, 64);
  const close = known
    .map((name) => ({ name, distance: Math.min(editDistance(word, name), editDistance(word, name.replace("_", ""))) }))
    .filter(({ distance }) => distance <= Math.max(1, Math.floor(word.length / 3)))
    .sort((a, b) => a.distance - b.distance);
  return close[0]?.name ?? null;
}

/** One warning per key of the ticket file `text` that is almost a known one. Nothing for a file that is wrong otherwise. */
export function misspeltKeys(path: string, text: string): string[] {
  const block = parseFrontmatter(text);
  if (!block.ok) return [];
  return block.fields.entries.flatMap(({ key }) => {
    const near = known.includes(key) ? null : meant(key);
    return near === null ? [] : [`${path}: nothing reads the frontmatter key \`${key}\`; did you mean \`${near}\`?`];
  });
}

// Names close to a mistyped one, for `tip:` lines. Text only: nothing here is ever executed.

/** Optimal string alignment distance: edits and swaps of neighbours needed to turn `a` into `b`. */
export function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  const cell = (row: number, column: number) => rows[row]?.[column] ?? 0;
  for (let row = 1; row <= a.length; row += 1) {
    const line = [row];
    rows.push(line);
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = cell(row - 1, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swap = swapped ? cell(row - 2, column - 2) + 1 : replaced;
      line.push(Math.min(cell(row - 1, column) + 1, cell(row, column - 1) + 1, replaced, swap));
    }
  }
  return cell(a.length, b.length);
}

/** Indices in `b` of the characters of `a` that Jaro counts as matching, in the order of `a`. */
function jaroMatches(a: string, b: string): { inA: number[]; inB: number[] } {
  const reach = Math.max(0, Math.floor(Math.max(a.length, b.length) / 2) - 1);
  const taken = new Set<number>();
  const inA: number[] = [];
  for (let at = 0; at < a.length; at += 1) {
    const end = Math.min(b.length - 1, at + reach);
    for (let other = Math.max(0, at - reach); other <= end; other += 1) {
      if (taken.has(other) || a[at] !== b[other]) continue;
      taken.add(other);
      inA.push(at);
      break;
    }
  }
  return { inA, inB: [...taken].sort((x, y) => x - y) };
}

/** Jaro similarity, 0 to 1. */
export function jaro(a: string, b: string): number {
  if (a === b) return 1;
  const { inA, inB } = jaroMatches(a, b);
  const matches = inA.length;
  if (matches === 0) return 0;
  const outOfPlace = inA.filter((at, index) => a[at] !== b[inB[index] ?? -1]).length / 2;
  return (matches / a.length + matches / b.length + (matches - outOfPlace) / matches) / 3;
}

/** At most three of `names` that resemble `typed`, best first. */
export function similarNames(typed: string, names: readonly string[]): string[] {
  const word = typed.slice(0, 64);
  return names
    .map((name) => ({ name, distance: editDistance(word, name), likeness: jaro(word, name) }))
    .filter(({ distance, likeness }) => distance <= 2 || likeness >= 0.7)
    .sort((a, b) => a.distance - b.distance || b.likeness - a.likeness)
    .slice(0, 3)
    .map(({ name }) => name);
}

const otherTools = new Map<string, readonly string[]>([
  ...["tickets", "ls", "queue", "ps"].map((word) => [word, ["show", "list"]] as const),
  ["start", ["run"]],
  ["kill", ["cancel"]],
  ["abort", ["cancel"]],
]);

const quoted = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(" or ");

/** The tip for a word that names no command, or null: words of other tools first, then likeness. */
export function commandTip(typed: string, names: readonly string[]): string | null {
  const known = otherTools.get(typed);
  if (known !== undefined) {
    const calls = quoted(known.map((name) => `sloop ${name}`));
    return `\`${typed}\` is not a command; did you mean ${quoted(known)}? run ${calls}`;
  }
  return likelyTip(typed, names);
}

/** `did you mean …?` for the closest names, or null. */
export function likelyTip(typed: string, names: readonly string[]): string | null {
  const close = similarNames(typed, names);
  return close.length === 0 ? null : `did you mean ${quoted(close)}?`;
}

// Which known word a misspelt one was probably meant to be.

function distance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const swap = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(swap, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}

/** The known word with the fewest edits from `word`, and how many; null when none is known. Ties: the first listed. */
export function nearest(word: string, known: readonly string[]): { word: string; edits: number } | null {
  // Longer words are no misspellings, and the cost grows with the length.
  const short = word.slice(0, 64);
  let best: { word: string; edits: number } | null = null;
  for (const candidate of known) {
    const edits = distance(short, candidate);
    if (best === null || edits < best.edits) best = { word: candidate, edits };
  }
  return best;
}

/** The known word `word` is close enough to for a "did you mean": at most a third of its letters differ, null otherwise. */
export function closeTo(word: string, known: readonly string[]): string | null {
  const best = nearest(word, known);
  return best !== null && best.edits <= Math.max(1, Math.floor(word.length / 3)) ? best.word : null;
}

// Numbers out of repetitions: contestants take turns, so that a noisy machine is noisy for all of them.

export type Summary = { median: number; min: number; max: number; samples: number };

/** Median, smallest and largest of at least one value. */
export function summarize(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  const lower = sorted.length % 2 === 1 ? upper : (sorted[middle - 1] ?? Number.NaN);
  return {
    median: (lower + upper) / 2,
    min: sorted[0] ?? Number.NaN,
    max: sorted.at(-1) ?? Number.NaN,
    samples: sorted.length,
  };
}

/** One repetition; resolves to the number it gave. */
export type Contestant = () => number | Promise<number>;

/** Runs every contestant once per round, each round starting with another one; a round before the first warms up. */
export async function interleave<Name extends string>(
  rounds: number,
  contestants: Record<Name, Contestant>,
): Promise<Record<Name, Summary>> {
  const names = Object.keys(contestants) as Name[];
  const values = new Map<Name, number[]>(names.map((name) => [name, []]));
  for (let round = -1; round < rounds; round += 1) {
    const first = (round + 1) % names.length;
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
      const value = await contestants[name]();
      if (round >= 0) values.get(name)?.push(value);
    }
  }
  return Object.fromEntries(names.map((name) => [name, summarize(values.get(name) ?? [])])) as Record<Name, Summary>;
}

/** How long `work` took, in milliseconds. */
export async function timed(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

// Chance that can be repeated: everything a fuzz run does follows from its seed.

export type Random = {
  /** An integer from 0 to `below` - 1. */
  below(below: number): number;
  pick<T>(list: readonly T[]): T;
  /** True once in `n` times. */
  oneIn(n: number): boolean;
};

/** Mulberry32: small, fast and good enough to throw things with. */
export function openRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const below = (limit: number) => next() % Math.max(1, limit);
  return {
    below,
    pick: <T>(list: readonly T[]) => list[below(list.length)] as T,
    oneIn: (n) => below(n) === 0,
  };
}

// Long work in the daemon's one thread, cut into slices so that requests are answered between them.

/** Awaited between two pieces of work: waits only once the slice is used up, and then until everything due has had its turn. */
export type Breathe = () => Promise<void> | undefined;

/** Slices of at most `sliceMs`, beginning now. */
export function openSlices(sliceMs: number): Breathe {
  let began = performance.now();
  return () => {
    if (performance.now() - began < sliceMs) return undefined;
    return new Promise((resolve) => {
      setImmediate(() => {
        began = performance.now();
        resolve();
      });
    });
  };
}

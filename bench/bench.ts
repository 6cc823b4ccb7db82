// What every bench is given, and what it gives back.

import type { Row } from "./row.ts";

export type BenchContext = {
  /** Absolute path of the compiled sloop, the same file from first to last. */
  bin: string;
  /** A compiled program that does nothing. */
  empty: string;
  /** A compiled program that answers every JSON line on a Unix socket with that line. */
  echo: string;
  /** A folder of this bench's own. */
  dir: string;
  quick: boolean;
  /** `full` normally, `quick` under `--quick`. */
  pick(full: number, quick: number): number;
  /** Undone when the bench is over, in reverse order, also after an interrupt. */
  keep<T extends AsyncDisposable | Disposable>(thing: T): T;
  /** Undone likewise. */
  later(undo: () => void | Promise<void>): void;
};

export type Bench = { name: string; run(context: BenchContext): Promise<Row[]> };

// Ids for tickets and projects that have none, each the next free one.

import { SloopError } from "../core/errors.ts";
import { freeOrdinals } from "../core/ids.ts";

/** A function that gives out `<prefix>-<n>` above every one of `taken`. It throws SloopError `internal` when none is left. */
export function openIds(prefix: string, taken: Iterable<string>): () => string {
  const next = freeOrdinals(prefix, taken);
  return () => {
    const ordinal = next();
    if (ordinal === null) throw new SloopError("internal", `the ID counter is exhausted for prefix \`${prefix}\``);
    return `${prefix}-${ordinal}`;
  };
}

// One line of the result: what was measured, beside what, against which target (the table "Speed and size").

import type { Summary } from "./measure.ts";

export type Unit = "ms" | "per s" | "MB/s" | "MiB" | "ticks";

/** `value`: the median; `ratio`: the median over the rival's; `beyond`: the median less the rival's. */
export type Target = { of: "value" | "ratio" | "beyond"; bound: number; sense: "at most" | "at least" };

export type Row = {
  bench: string;
  what: string;
  unit: Unit;
  measured: Summary;
  /** The limit or the rival of the same run. */
  rival: { what: string; measured: Summary } | null;
  /** Median over the rival's median. */
  ratio: number | null;
  target: Target | null;
  /** Null without a target. */
  met: boolean | null;
  note: string | null;
};

export type RowParts = Pick<Row, "what" | "unit" | "measured"> & Partial<Pick<Row, "rival" | "target" | "note">>;

/** What the target's bound is compared with. */
export function judgedValue(row: Pick<Row, "measured" | "rival">, of: Target["of"]): number {
  const { median } = row.measured;
  const rival = row.rival?.measured.median ?? Number.NaN;
  switch (of) {
    case "value":
      return median;
    case "ratio":
      return median / rival;
    case "beyond":
      return median - rival;
  }
}

/** Completes a row: its ratio, and whether the target is met. */
export function makeRow(bench: string, parts: RowParts): Row {
  const { what, unit, measured, rival = null, target = null, note = null } = parts;
  const ratio = rival === null ? null : judgedValue({ measured, rival }, "ratio");
  let met: boolean | null = null;
  if (target !== null) {
    const value = judgedValue({ measured, rival }, target.of);
    met = target.sense === "at most" ? value <= target.bound : value >= target.bound;
  }
  return { bench, what, unit, measured, rival, ratio, target, met, note };
}

export const atMost = (bound: number, of: Target["of"] = "value"): Target => ({ of, bound, sense: "at most" });
export const atLeast = (bound: number, of: Target["of"] = "value"): Target => ({ of, bound, sense: "at least" });

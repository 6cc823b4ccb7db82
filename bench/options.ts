// What `bun run bench` is told.

import { parseArgs } from "node:util";

export type Options = {
  /** JSON on standard output instead of the table. */
  json: boolean;
  /** Names of the benches to run; empty for all. */
  only: string[];
  /** Fewer and smaller repetitions: for a first look, not for a judgement. */
  quick: boolean;
  /** Where the JSON goes; null for a new file in bench/results, or nowhere with `json`. */
  out: string | null;
  /** Print the names and end. */
  list: boolean;
};

export const usage = `usage: bun run bench [--quick] [--only NAME[,NAME]] [--json] [--out FILE] [--list]`;

/** Throws TypeError for what it does not know. */
export function parseOptions(argv: readonly string[], known: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      json: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      only: { type: "string", multiple: true, default: [] },
      out: { type: "string" },
    },
  });
  const only = values.only.flatMap((names) => names.split(",")).filter((name) => name !== "");
  const unknown = only.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new TypeError(`no bench is named \`${unknown}\`; there are ${known.join(", ")}`);
  return { json: values.json, only, quick: values.quick, out: values.out ?? null, list: values.list };
}

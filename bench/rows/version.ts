// `sloop --version`, the whole process, beside an empty compiled program.

import type { Bench } from "../bench.ts";
import { interleave, timed } from "../measure.ts";
import { atMost, makeRow } from "../row.ts";

/** Runs a program to its end, in milliseconds. Throws when it fails. */
export function runProcess(argv: string[], options: { cwd?: string; env?: Record<string, string> } = {}) {
  return timed(() => {
    const done = Bun.spawnSync(argv, { ...options, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    if (done.exitCode !== 0) throw new Error(`${argv.join(" ")}: ${done.exitCode} ${done.stderr}`);
  });
}

export const version: Bench = {
  name: "version",
  async run({ bin, empty, pick }) {
    const times = await interleave(pick(60, 8), {
      sloop: () => runProcess([bin, "--version"]),
      empty: () => runProcess([empty]),
    });
    return [
      makeRow("version", {
        what: "`sloop --version`, whole process",
        unit: "ms",
        measured: times.sloop,
        rival: { what: "empty program", measured: times.empty },
        target: atMost(1.3, "ratio"),
      }),
    ];
  },
};

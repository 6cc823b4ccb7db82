// `bun run bench`: measures what sloop promises of its speed and size, beside a limit or a rival in the same run.
// A command, never a test: it judges by targets and always ends with 0 unless a bench itself failed.

import "../test/support/preload.ts";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Bench, BenchContext } from "./bench.ts";
import { benches } from "./benches.ts";
import { interleave } from "./measure.ts";
import { type Options, parseOptions, usage } from "./options.ts";
import { makePrograms, type Programs } from "./programs.ts";
import { renderTable } from "./report.ts";
import type { Row } from "./row.ts";
import { runProcess } from "./rows/version.ts";

type Result = {
  started_at: string;
  finished_at: string;
  quick: boolean;
  bun: string;
  platform: string;
  processors: number;
  /** One-minute load averages before and after. */
  load: [number, number];
  /** How fast this machine starts processes, in ms: absolute targets were set where an empty program takes about 5. */
  machine: Machine;
  rows: Row[];
  failures: { bench: string; problem: string }[];
};

/** What an interrupt must undo. */
const undoing = new Set<AsyncDisposableStack>();

function endOnSignal(): void {
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.once(name, () => {
      const all = [...undoing].reverse().map((stack) => stack.disposeAsync());
      void Promise.allSettled(all).then(() => process.exit(130));
    });
  }
}

async function runBench(bench: Bench, programs: Programs, { dir, quick }: { dir: string; quick: boolean }) {
  await using stack = new AsyncDisposableStack();
  undoing.add(stack);
  stack.defer(() => void undoing.delete(stack));
  const own = join(dir, bench.name);
  mkdirSync(own);
  const context: BenchContext = {
    ...programs,
    dir: own,
    quick,
    pick: (full, small) => (quick ? small : full),
    keep: (thing) => stack.use(thing),
    later: (undo) => stack.defer(undo),
  };
  return await bench.run(context);
}

function chosen(options: Options): Bench[] {
  return benches.filter((bench) => options.only.length === 0 || options.only.includes(bench.name));
}

type Machine = { true_ms: number; git_ms: number; empty_ms: number };

async function gauge(programs: Programs): Promise<Machine> {
  const times = await interleave(10, {
    nothing: () => runProcess(["true"]),
    git: () => runProcess(["git", "--version"]),
    empty: () => runProcess([programs.empty]),
  });
  return { true_ms: times.nothing.median, git_ms: times.git.median, empty_ms: times.empty.median };
}

function machineLine({ machine, load, processors }: Result): string {
  const { true_ms, git_ms, empty_ms } = machine;
  const times = `true ${true_ms.toFixed(1)} ms, git --version ${git_ms.toFixed(1)} ms, empty program ${empty_ms.toFixed(1)} ms`;
  return `this machine: ${times}; ${processors} processors, load ${load.map((n) => n.toFixed(1)).join(" then ")}`;
}

async function measure(options: Options): Promise<Result> {
  await using stack = new AsyncDisposableStack();
  undoing.add(stack);
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "slb-")));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  const before = loadavg()[0] ?? 0;
  const started_at = new Date().toISOString();
  const programs = await makePrograms(dir);
  // Everything below uses this very file, whatever is built meanwhile.
  process.env["SLOOP_BIN"] = programs.bin;
  const machine = await gauge(programs);
  const rows: Row[] = [];
  const failures: Result["failures"] = [];
  for (const bench of chosen(options)) {
    console.error(`${bench.name} ...`);
    try {
      rows.push(...(await runBench(bench, programs, { dir, quick: options.quick })));
    } catch (error) {
      failures.push({ bench: bench.name, problem: error instanceof Error ? (error.stack ?? "") : String(error) });
    }
  }
  undoing.delete(stack);
  return {
    started_at,
    finished_at: new Date().toISOString(),
    quick: options.quick,
    bun: Bun.version,
    platform: `${process.platform}-${process.arch}`,
    processors: cpus().length,
    load: [before, loadavg()[0] ?? 0],
    machine,
    rows,
    failures,
  };
}

async function publish(result: Result, options: Options): Promise<void> {
  const text = `${JSON.stringify(result, null, 2)}\n`;
  if (options.json) process.stdout.write(text);
  else console.log(`${renderTable(result.rows)}\n\n${machineLine(result)}`);
  const stamp = result.started_at.replaceAll(/[:.]/g, "-");
  const out = options.out ?? (options.json ? null : join(import.meta.dir, "results", `${stamp}.json`));
  if (out !== null) {
    mkdirSync(dirname(out), { recursive: true });
    await Bun.write(out, text);
    console.error(`written: ${out}`);
  }
  for (const { bench, problem } of result.failures) console.error(`${bench} failed: ${problem}`);
}

async function main(argv: readonly string[]): Promise<number> {
  const names = benches.map((bench) => bench.name);
  let options: Options;
  try {
    options = parseOptions(argv, names);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${usage}`);
    return 2;
  }
  if (options.list) {
    console.log(names.join("\n"));
    return 0;
  }
  endOnSignal();
  const result = await measure(options);
  await publish(result, options);
  return result.failures.length === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));

// The compiled binary under test: where it is, building it when it is missing or older than its sources, running it.

import { mkdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { until } from "./until.ts";

export const projectRoot: string = dirname(dirname(import.meta.dir));

function newestSource(): number {
  let newest = 0;
  for (const pattern of ["src/**/*", "templates/**/*", "migrations/*.sql", "build.ts", "package.json"]) {
    for (const file of new Bun.Glob(pattern).scanSync({ cwd: projectRoot })) {
      newest = Math.max(newest, statSync(join(projectRoot, file)).mtimeMs);
    }
  }
  return newest;
}

function fresh(file: string): boolean {
  const info = statSync(file, { throwIfNoEntry: false });
  return info !== undefined && info.mtimeMs >= newestSource();
}

async function build(file: string): Promise<void> {
  const lock = `${join(projectRoot, "dist")}.lock`;
  const mine = await until(
    () => {
      try {
        mkdirSync(lock);
        return "mine";
      } catch {
        return fresh(file) ? "theirs" : null;
      }
    },
    "another test process to build the binary (a stale dist.lock?)",
    60_000,
  );
  if (mine === "theirs") return;
  try {
    if (fresh(file)) return;
    const done = Bun.spawnSync([process.execPath, "build.ts"], { cwd: projectRoot, stdout: "pipe", stderr: "pipe" });
    if (done.exitCode !== 0) throw new Error(`bun build.ts failed:\n${done.stderr}${done.stdout}`);
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

let found: Promise<string> | null = null;

async function find(): Promise<string> {
  const given = process.env["SLOOP_BIN"];
  if (given !== undefined && given !== "") return given;
  const file = join(projectRoot, "dist", "sloop");
  if (!fresh(file)) await build(file);
  return file;
}

/** Absolute path of the binary: `$SLOOP_BIN`, else `dist/sloop`, built at the first call if its sources are newer. */
export function bin(): Promise<string> {
  found ??= find();
  return found;
}

export type Ran = { code: number; stdout: string; stderr: string };
export type RunOptions = { cwd?: string; env?: Record<string, string | undefined>; stdin?: string; timeoutMs?: number };

function environment(extra: Record<string, string | undefined> | undefined): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...process.env, TZ: "UTC", ...extra })) {
    if (value !== undefined) env[name] = value;
  }
  return env;
}

/** Runs any command to its end; `undefined` in `env` removes a variable. Killed after `timeoutMs` (60 000). */
export async function command(argv: string[], options: RunOptions = {}): Promise<Ran> {
  const child = Bun.spawn(argv, {
    cwd: options.cwd ?? projectRoot,
    env: environment(options.env),
    stdin: options.stdin === undefined ? "ignore" : new TextEncoder().encode(options.stdin),
    stdout: "pipe",
    stderr: "pipe",
    timeout: options.timeoutMs ?? 60_000,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}

/** Runs the binary to its end. */
export async function sloop(args: string[], options: RunOptions = {}): Promise<Ran> {
  return await command([await bin(), ...args], options);
}

// A throw-away world for one test: a Git repository, a home, state and socket folders, and an end that leaves no process.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Ran, type RunOptions, sloop } from "./bin.ts";
import { until } from "./until.ts";

export type World = AsyncDisposable & {
  /** Canonical path of the whole world; everything below lies in it. */
  dir: string;
  /** Canonical path of the repository's top level. */
  root: string;
  env: Record<string, string | undefined>;
  /** Writes a file below the root, making folders. */
  write(path: string, text: string): void;
  read(path: string): string;
  /** Runs git in the root; throws on failure; standard output without the last newline. */
  git(...args: string[]): string;
  /** Adds everything and commits. */
  commit(message: string): string;
  /** Runs the binary in the root. */
  sloop(args: string[], options?: RunOptions): Promise<Ran>;
};

export type WorldOptions = {
  /** Folder name of the repository (default `repo`); may hold spaces or non-ASCII letters. */
  name?: string;
  /** `none`: no `git init`. `empty`: no commit. Default: one commit holding `README.md`. */
  git?: "none" | "empty" | "committed";
  env?: Record<string, string | undefined>;
};

/** Every live process whose environment names `dir`: what a test started, directly or not. Linux only; else none. */
export function processesIn(dir: string): number[] {
  const found: number[] = [];
  let names: string[] = [];
  try {
    names = readdirSync("/proc");
  } catch {
    return found;
  }
  for (const name of names) {
    if (!/^[0-9]+$/.test(name) || Number(name) === process.pid) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const state = stat.slice(stat.lastIndexOf(")") + 2)[0];
      if (state !== "Z" && readFileSync(`/proc/${name}/environ`, "utf8").includes(dir)) found.push(Number(name));
    } catch {
      // gone meanwhile, or not ours to read
    }
  }
  return found;
}

/** Ends every process of `processesIn(dir)`, waiting until none is left. */
export async function endProcesses(dir: string): Promise<void> {
  await until(() => {
    const pids = processesIn(dir);
    for (const pid of pids) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // gone meanwhile
      }
    }
    return pids.length === 0;
  }, `processes of ${dir} to end`);
}

/** A new world; `await using world = await newWorld()` removes it and all its processes. */
export async function newWorld(options: WorldOptions = {}): Promise<World> {
  const dir = realpathSync(mkdtempSync("/tmp/slt-"));
  const root = join(dir, options.name ?? "repo");
  for (const folder of [root, join(dir, "home"), join(dir, "state")]) mkdirSync(folder, { recursive: true });
  mkdirSync(join(dir, "run"), { mode: 0o700 });
  const env = {
    HOME: join(dir, "home"),
    XDG_STATE_HOME: join(dir, "state"),
    XDG_RUNTIME_DIR: join(dir, "run"),
    ...options.env,
  };
  const git = (...args: string[]): string => {
    const done = Bun.spawnSync(["git", ...args], { cwd: root, stdout: "pipe", stderr: "pipe" });
    if (done.exitCode !== 0) throw new Error(`git ${args.join(" ")}: ${done.stderr}`);
    return done.stdout.toString().trimEnd();
  };
  const world: World = {
    dir,
    root,
    env,
    write(path, text) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    },
    read: (path) => readFileSync(join(root, path), "utf8"),
    git,
    commit(message) {
      git("add", "-A");
      git("commit", "-q", "-m", message);
      return git("rev-parse", "HEAD");
    },
    sloop: (args, extra = {}) => sloop(args, { cwd: root, ...extra, env: { ...env, ...extra.env } }),
    async [Symbol.asyncDispose]() {
      await endProcesses(dir);
      rmSync(dir, { recursive: true, force: true });
    },
  };
  if (options.git === "none") return world;
  git("init", "-q", "-b", "main");
  git("config", "user.name", "Test");
  git("config", "user.email", "test@example.invalid");
  if (options.git === "empty") return world;
  world.write("README.md", "# scratch\n");
  world.commit("first");
  return world;
}

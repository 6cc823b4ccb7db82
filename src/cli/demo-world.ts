// The demo's scratch world: a directory with a repository, a home, and places for state and sockets, and nothing outside it.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import agent from "../../templates/demo/agent.sh" with { type: "text" };
import config from "../../templates/demo/config.yaml" with { type: "text" };
import first from "../../templates/demo/first.md" with { type: "text" };
import plain from "../../templates/demo/plain.yaml" with { type: "text" };
import second from "../../templates/demo/second.md" with { type: "text" };
import test from "../../templates/demo/test.sh" with { type: "text" };
import tested from "../../templates/demo/tested.yaml" with { type: "text" };
import { SloopError } from "../core/errors.ts";
import { runCommand } from "../system/detached.ts";
import type { Environment } from "../system/environment.ts";
import { scaffoldInto } from "./init.ts";
import type { Session } from "./session.ts";

export type DemoWorld = { directory: string; root: string; env: Environment };

/** In the order they are posted. */
export const demoTickets = [".agents/sloop/tickets/first.md", ".agents/sloop/tickets/second.md"] as const;

const files: readonly (readonly [path: string, text: string])[] = [
  ["README.md", "# The demo's project\n\nTwo tickets in `.agents/sloop/tickets` make `greet.sh`.\n"],
  [".gitignore", ".worktrees/\n"],
  ["test.sh", test],
  [".agents/demo-agent.sh", agent],
  [".agents/sloop/config.yaml", config],
  [".agents/sloop/flows/default.yaml", plain],
  [".agents/sloop/flows/tested.yaml", tested],
  [demoTickets[0], first],
  [demoTickets[1], second],
];

/** A socket's path must stay short, and its name needs 45 bytes of it; a longer temporary directory will not do. */
const longestBase = 40;

function temporaryBase(env: Session["env"]): string {
  const wanted = env["TMPDIR"] ?? "";
  return wanted.startsWith("/") && Buffer.byteLength(wanted) <= longestBase ? wanted : "/tmp";
}

const who = { NAME: "Sloop Demo", EMAIL: "demo@sloop.invalid" };

function demoEnvironment(env: Session["env"], directory: string): Environment {
  const kept = Object.entries(env).flatMap(([name, value]): [string, string][] =>
    value === undefined || /^(SLOOP|GIT|BUN)_/.test(name) ? [] : [[name, value]],
  );
  return {
    ...Object.fromEntries(kept),
    HOME: join(directory, "home"),
    XDG_STATE_HOME: join(directory, "state"),
    XDG_RUNTIME_DIR: join(directory, "run"),
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: who.NAME,
    GIT_AUTHOR_EMAIL: who.EMAIL,
    GIT_COMMITTER_NAME: who.NAME,
    GIT_COMMITTER_EMAIL: who.EMAIL,
  };
}

/** Runs git in the demo's repository; its standard output. Throws SloopError `internal` when it is missing or fails. */
export function demoGit(world: DemoWorld, ...args: string[]): string {
  let done: ReturnType<typeof runCommand>;
  try {
    done = runCommand(["git", ...args], { cwd: world.root, env: world.env });
  } catch (error) {
    throw new SloopError("internal", `cannot run git: ${(error as Error).message}`, { hint: "install git first" });
  }
  if (done.exitCode !== 0) throw new SloopError("internal", `git ${args[0]} failed: ${done.stderr.trim()}`);
  return done.stdout.trimEnd();
}

function fillRepository(world: DemoWorld): void {
  for (const [path, text] of files) {
    mkdirSync(dirname(join(world.root, path)), { recursive: true });
    writeFileSync(join(world.root, path), text);
  }
  scaffoldInto(world.root);
  demoGit(world, "init", "-q");
  // `git init -b` needs git 2.28.
  demoGit(world, "symbolic-ref", "HEAD", "refs/heads/main");
  // For whoever goes on in a world that was kept: there must be somebody who commits.
  demoGit(world, "config", "user.name", who.NAME);
  demoGit(world, "config", "user.email", who.EMAIL);
  demoGit(world, "add", "-A");
  demoGit(world, "commit", "-q", "-m", "A project with two tickets");
}

/** Makes the scratch directory; to be filled with `fillWorld` and removed with `removeWorld`. Throws SloopError `internal`. */
export function makeWorld(env: Session["env"]): DemoWorld {
  try {
    const directory = realpathSync(mkdtempSync(join(temporaryBase(env), "sloop-demo-")));
    return { directory, root: join(directory, "project"), env: demoEnvironment(env, directory) };
  } catch (error) {
    throw new SloopError("internal", `cannot make a temporary directory: ${(error as Error).message}`);
  }
}

/** Makes the repository in it, with one commit. Throws SloopError `internal`. */
export function fillWorld(world: DemoWorld): void {
  for (const name of ["project", "home", "state"]) mkdirSync(join(world.directory, name));
  mkdirSync(join(world.directory, "run"), { mode: 0o700 });
  fillRepository(world);
}

/** Removes everything; a process that is just ending may still write, so it tries more than once. */
export async function removeWorld(world: DemoWorld): Promise<void> {
  for (let left = 20; ; left -= 1) {
    try {
      rmSync(world.directory, { recursive: true, force: true });
      return;
    } catch (error) {
      if (left === 0) throw error;
      await Bun.sleep(50);
    }
  }
}

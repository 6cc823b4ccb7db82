// The repository a command is typed in: its root, the light check of its configuration, its paths, its client (cli.md 8).

import { existsSync } from "node:fs";
import { join } from "node:path";
import { Client, type WhenAbsent } from "../client/client.ts";
import type { Starter } from "../client/connect.ts";
import { SloopError } from "../core/errors.ts";
import type { Loaded } from "../parse/load.ts";
import { fileSource, readIfPresent } from "../system/files.ts";
import { findRoot, PathError, type RepositoryPaths, repositoryPaths } from "../system/paths.ts";
import { startedFrom } from "../system/replace.ts";
import { quickWorktreeDir } from "./essentials.ts";
import type { Session } from "./session.ts";

export type Repository = { root: string; paths: RepositoryPaths };

/** The directory the command was typed in. Throws SloopError when it is gone. */
export function currentDirectory(): string {
  try {
    return process.cwd();
  } catch {
    throw new SloopError("invalid_arguments", "the current directory no longer exists");
  }
}

type Parser = (path: string, text: string) => { worktreeDir: string };

/** The parser that knows all of YAML, and the words for what is wrong; most configurations never need it. */
async function loadParser(): Promise<Parser> {
  return (await import("../parse/config.ts")).parseEssentials;
}

function worktreeDirBy(parse: Parser, text: string): string | null {
  try {
    return parse("", text).worktreeDir;
  } catch {
    return null;
  }
}

async function rootAbove(directory: string): Promise<string | null> {
  let unsure = false;
  const quick = findRoot(directory, (text) => {
    const found = quickWorktreeDir(text);
    unsure ||= found === null;
    return found;
  });
  if (!unsure) return quick;
  const parse = await loadParser();
  return findRoot(directory, (text) => worktreeDirBy(parse, text));
}

async function checkEssentials(root: string): Promise<void> {
  const path = join(root, configFile);
  let bytes: Uint8Array | null;
  try {
    bytes = readIfPresent(path);
  } catch (error) {
    throw new SloopError("invalid_arguments", `${path}: cannot be read: ${(error as Error).message}`);
  }
  const text = new TextDecoder().decode(bytes ?? new Uint8Array());
  if (quickWorktreeDir(text) === null) (await loadParser())(path, text);
}

const configFile = ".agents/sloop/config.yaml";
const configHint = "`sloop template config` prints a working one";

/** Adds the template to look at to what a configuration check throws. */
export function withConfigHint(error: unknown): unknown {
  if (!(error instanceof SloopError) || error.hint !== null) return error;
  const flow = /\.agents\/sloop\/flows\//.test(error.message);
  const hint = flow ? "`sloop template flow` prints a working one" : configHint;
  return new SloopError(error.code, error.message, { details: error.details, hint });
}

function pathsOf(root: string, env: Session["env"]): RepositoryPaths {
  try {
    return repositoryPaths({ root, env, uid: process.geteuid?.() ?? 0, platform: process.platform });
  } catch (error) {
    if (error instanceof PathError) throw new SloopError("invalid_arguments", error.message);
    throw error;
  }
}

/** Finds the repository around `directory`. Throws SloopError `invalid_arguments` when there is none or its config is broken. */
export async function openRepository(directory: string, env: Session["env"]): Promise<Repository> {
  const root = await rootAbove(directory);
  if (root === null) {
    const message = `no \`.agents/sloop/config.yaml\` in ${directory} or any directory above it`;
    throw new SloopError("invalid_arguments", message, { hint: "`sloop init` sets this directory up" });
  }
  try {
    await checkEssentials(root);
  } catch (error) {
    throw withConfigHint(error);
  }
  return { root, paths: pathsOf(root, env) };
}

/** Loads and checks everything a daemon would; its warnings, one line each. Throws SloopError `invalid_arguments` naming the file. */
export async function checkConfiguration(root: string, env: Session["env"]): Promise<string[]> {
  return (await loadConfiguration(root, env)).warnings;
}

/** The whole configuration and every flow as they are now. Throws as a daemon's start would. */
export async function loadConfiguration(root: string, env: Session["env"]): Promise<Loaded> {
  const { loadAll } = await import("../parse/load.ts");
  try {
    return loadAll(fileSource, root, env["HOME"] ?? null);
  } catch (error) {
    throw withConfigHint(error);
  }
}

/** The same, and that there is a repository to work on. */
export async function checkStart(root: string, env: Session["env"]): Promise<string[]> {
  const warnings = await checkConfiguration(root, env);
  if (existsSync(join(root, ".git"))) return warnings;
  const message = `${root} is not the top level of a Git work tree: it has no \`.git\``;
  const hint = "`git init` makes it one; in a larger repository, move `.agents` to its top level";
  throw new SloopError("invalid_arguments", message, { hint });
}

/** argv of a daemon: by the path we were started from, links kept, which is where a restart looks for its successor. */
function byPath({ env, self }: Pick<Session, "env" | "self">): readonly string[] {
  const [executable = "", ...source] = self;
  return source.length > 0 ? self : [startedFrom(executable, env)];
}

/** How a daemon for `root` is started from this session. */
export function starterFor(root: string, session: Pick<Session, "env" | "self">): Starter {
  const check = async () => void (await checkStart(root, session.env));
  return { check, argv: byPath(session), env: session.env };
}

/** A client that starts a daemon when none answers. */
export function clientFor(repository: Repository, session: Pick<Session, "env" | "self">): Client {
  return openClient(repository, { kind: "start", starter: starterFor(repository.root, session) });
}

/** A client with a policy of its own for when nobody answers. */
export function openClient(repository: Repository, whenAbsent: WhenAbsent): Client {
  return new Client({ paths: repository.paths, pid: process.pid, whenAbsent });
}

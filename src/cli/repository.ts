// The repository a command is typed in: its root, the light check of its configuration, its paths, its client (cli.md 8).

import { join } from "node:path";
import { Client, type WhenAbsent } from "../client/client.ts";
import type { Starter } from "../client/connect.ts";
import { SloopError } from "../core/errors.ts";
import { configFile } from "../system/config-file.ts";
import { PathError, type RepositoryPaths, repositoryPaths } from "../system/paths.ts";
import { findRoot } from "../system/root.ts";
import { quickBytes } from "./ahead.ts";
import { quickWorktreeDir, withConfigHint } from "./essentials.ts";
import type { Session } from "./session.ts";

export type Repository = {
  root: string;
  paths: RepositoryPaths;
  /** The light check of the configuration, made once however often it is asked for. Throws SloopError `invalid_arguments`. */
  check(): Promise<void>;
};

/** The directory the command was typed in, as the kernel names it: without links. Throws SloopError when it is gone. */
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

async function worktreeDirOf(text: string): Promise<string | null> {
  const quick = quickWorktreeDir(text);
  if (quick !== null) return quick;
  const parse = await loadParser();
  try {
    return parse("", text).worktreeDir;
  } catch {
    return null;
  }
}

async function readConfig(path: string): Promise<Uint8Array> {
  const quick = await quickBytes(path);
  if (quick !== null) return quick;
  const { readIfPresent } = await import("../system/files.ts");
  try {
    return readIfPresent(path) ?? new Uint8Array();
  } catch (error) {
    throw new SloopError("invalid_arguments", `${path}: cannot be read: ${(error as Error).message}`);
  }
}

const strict = new TextDecoder("utf-8", { fatal: true });

function decode(path: string, bytes: Uint8Array): string {
  try {
    return strict.decode(bytes);
  } catch {
    throw new SloopError("invalid_arguments", `${path}: not valid UTF-8; save the file as UTF-8`);
  }
}

async function checkEssentials(root: string): Promise<void> {
  const path = join(root, configFile);
  try {
    const text = decode(path, await readConfig(path));
    if (quickWorktreeDir(text) === null) (await loadParser())(path, text);
  } catch (error) {
    throw withConfigHint(error);
  }
}

function pathsOf(root: string, env: Session["env"]): RepositoryPaths {
  try {
    return repositoryPaths({ root, env, uid: process.geteuid?.() ?? 0, platform: process.platform });
  } catch (error) {
    if (error instanceof PathError) throw new SloopError("invalid_arguments", error.message);
    throw error;
  }
}

/** `work` done at the first call; every call gets what came of it. */
function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | null = null;
  return () => {
    done ??= work();
    return done;
  };
}

/** Finds the repository around `directory`; its configuration is still to be checked. Throws SloopError `invalid_arguments` when there is none. */
export async function openRepository(directory: string, env: Session["env"]): Promise<Repository> {
  const root = await findRoot(directory, worktreeDirOf);
  if (root === null) {
    const message = `no \`${configFile}\` in ${directory} or any directory above it`;
    throw new SloopError("invalid_arguments", message, { hint: "`sloop init` sets this directory up" });
  }
  return { root, paths: pathsOf(root, env), check: once(() => checkEssentials(root)) };
}

/** How a daemon for `root` is started from this session. */
export function starterFor(root: string, session: Pick<Session, "env" | "self">): Starter {
  const prepare = async () => {
    const { checkStart, programByPath } = await import("./configuration.ts");
    checkStart(root, session.env);
    return programByPath(session);
  };
  return { prepare, env: session.env };
}

/** A client that starts a daemon when none answers. */
export function clientFor(repository: Repository, session: Pick<Session, "env" | "self">): Client {
  return openClient(repository, { kind: "start", starter: starterFor(repository.root, session) });
}

/** A client with a policy of its own for when nobody answers. */
export function openClient(repository: Repository, whenAbsent: WhenAbsent): Client {
  return new Client({ paths: repository.paths, pid: process.pid, whenAbsent, check: repository.check });
}

/** Finds the repository and its daemon, starting one if need be. */
export async function openSession(session: Session): Promise<Client> {
  return clientFor(await openRepository(currentDirectory(), session.env), session);
}

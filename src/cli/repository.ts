// The repository a command is typed in: its root, the light check of its configuration, its paths, its client (cli.md 8).

import { existsSync } from "node:fs";
import { join } from "node:path";
import { Client, type WhenAbsent } from "../client/client.ts";
import type { Starter } from "../client/connect.ts";
import { SloopError } from "../core/errors.ts";
import { parseEssentials } from "../parse/config.ts";
import { configPath, loadAll } from "../parse/load.ts";
import { fileSource, readIfPresent } from "../system/files.ts";
import { findRoot, PathError, type RepositoryPaths, repositoryPaths } from "../system/paths.ts";
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

function worktreeDirOf(text: string): string | null {
  try {
    return parseEssentials("", text).worktreeDir;
  } catch {
    return null;
  }
}

function checkEssentials(root: string): void {
  const path = configPath(root);
  let bytes: Uint8Array | null;
  try {
    bytes = readIfPresent(path);
  } catch (error) {
    throw new SloopError("invalid_arguments", `${path}: cannot be read: ${(error as Error).message}`);
  }
  parseEssentials(path, new TextDecoder().decode(bytes ?? new Uint8Array()));
}

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
export function openRepository(directory: string, env: Session["env"]): Repository {
  const root = findRoot(directory, worktreeDirOf);
  if (root === null) {
    const message = `no \`.agents/sloop/config.yaml\` in ${directory} or any directory above it`;
    throw new SloopError("invalid_arguments", message, { hint: "`sloop init` sets this directory up" });
  }
  try {
    checkEssentials(root);
  } catch (error) {
    throw withConfigHint(error);
  }
  return { root, paths: pathsOf(root, env) };
}

/** Loads and checks everything a daemon would. Throws SloopError `invalid_arguments` naming the file. */
export function checkConfiguration(root: string, env: Session["env"]): void {
  try {
    loadAll(fileSource, root, env["HOME"] ?? null);
  } catch (error) {
    throw withConfigHint(error);
  }
}

function checkStart(root: string, env: Session["env"]): void {
  checkConfiguration(root, env);
  if (existsSync(join(root, ".git"))) return;
  const message = `${root} is not the top level of a Git work tree: it has no \`.git\``;
  const hint = "`git init` makes it one; in a larger repository, move `.agents` to its top level";
  throw new SloopError("invalid_arguments", message, { hint });
}

/** How a daemon for `root` is started from this session. */
export function starterFor(root: string, session: Pick<Session, "env" | "self">): Starter {
  return { check: () => checkStart(root, session.env), argv: session.self, env: session.env };
}

/** A client that starts a daemon when none answers. */
export function clientFor(repository: Repository, session: Pick<Session, "env" | "self">): Client {
  return openClient(repository, { kind: "start", starter: starterFor(repository.root, session) });
}

/** A client with a policy of its own for when nobody answers. */
export function openClient(repository: Repository, whenAbsent: WhenAbsent): Client {
  return new Client({ paths: repository.paths, pid: process.pid, whenAbsent });
}

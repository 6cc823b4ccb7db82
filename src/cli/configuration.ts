// The whole configuration, checked as a daemon would (cli.md 8): before one is started, and for `post`. Loads the YAML library.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { SloopError } from "../core/errors.ts";
import { type Loaded, loadAll } from "../parse/load.ts";
import { fileSource } from "../system/files.ts";
import { startedFrom } from "../system/replace.ts";
import { withConfigHint } from "./essentials.ts";
import { remark } from "./say.ts";
import type { Session } from "./session.ts";

/** Loads and checks everything a daemon would; its warnings, one line each. Throws SloopError `invalid_arguments` naming the file. */
export function checkConfiguration(root: string, env: Session["env"]): string[] {
  return loadConfiguration(root, env).warnings;
}

const loaded = new Map<string, Loaded>();

/** The whole configuration and every flow as they were when this command first looked. Throws as a daemon's start would. */
export function loadConfiguration(root: string, env: Session["env"]): Loaded {
  const known = loaded.get(root);
  if (known !== undefined) return known;
  try {
    const read = loadAll(fileSource, root, env["HOME"] ?? null);
    loaded.set(root, read);
    return read;
  } catch (error) {
    throw withConfigHint(error);
  }
}

/** The same, and that there is a repository to work on. */
export function checkStart(root: string, env: Session["env"]): string[] {
  const warnings = checkConfiguration(root, env);
  if (existsSync(join(root, ".git"))) return warnings;
  const message = `${root} is not the top level of a Git work tree: it has no \`.git\``;
  const hint = "`git init` makes it one; in a larger repository, move `.agents` to its top level";
  throw new SloopError("invalid_arguments", message, { hint });
}

/** argv of a daemon: by the path we were started from, links kept, which is where a restart looks for its successor. */
export function programByPath({ env, self }: Pick<Session, "env" | "self">): readonly string[] {
  const [executable = "", ...source] = self;
  return source.length > 0 ? self : [startedFrom(executable, env)];
}

/** What the configuration says that nothing reads: people are told, programs are not. */
export async function warn(session: Session, warnings: readonly string[]): Promise<void> {
  if (session.json) return;
  for (const warning of warnings) await remark(`warning: ${warning}`);
}

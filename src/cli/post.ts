// `sloop post`: the one command that checks the whole configuration before it asks anybody (cli.md 3.3).

import { readFileSync, statSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import type { Config } from "../core/config.ts";
import { configFile } from "../system/config-file.ts";
import { readIfPresent } from "../system/files.ts";
import { findCommand } from "./commands.ts";
import { loadConfiguration, warn } from "./configuration.ts";
import { usageError } from "./refusal.ts";
import { clientFor, currentDirectory, openRepository, type Repository } from "./repository.ts";
import { postArgs } from "./request.ts";
import { respond } from "./respond.ts";
import { sameIdWarnings } from "./same-id.ts";
import { tellNothingQueued } from "./say.ts";
import type { Session } from "./session.ts";
import { misspeltKeys } from "./ticket-keys.ts";

/** argv arrives decoded, bad bytes replaced; only the kernel still knows whether the replacement was typed. */
function checkUtf8(path: string): void {
  if (!path.includes("\uFFFD")) return;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(readFileSync("/proc/self/cmdline"));
  } catch {
    throw usageError("`<FILE>` is not valid UTF-8", findCommand("post"));
  }
}

/** Relative paths are the daemon's to resolve, from the root; one that exists from here was meant from here. */
function postedFile(path: string, directory: string, root: string): string {
  if (isAbsolute(path) || directory === root) return path;
  const here = resolve(directory, path);
  return statSync(here, { throwIfNoEntry: false })?.isDirectory() === false ? here : path;
}

/** An agent that is not installed is the commonest reason for a run that never starts. */
function missingProgram(config: Config, name: string | null, env: Session["env"]): string[] {
  const program = name === null ? undefined : config.agent?.targets[name]?.cmd[0];
  if (program === undefined || program.includes("{") || Bun.which(program, { PATH: env["PATH"] ?? "" }) !== null)
    return [];
  return [`agent target \`${name}\` starts \`${program}\`, which is not on your PATH; no run can start without it`];
}

/** Keys that are almost known ones: also when the post was refused, since a missing field is often a misspelt one. */
function keyWarnings(root: string, file: string): string[] {
  try {
    const bytes = readIfPresent(resolve(root, file));
    return bytes === null ? [] : misspeltKeys(file, new TextDecoder().decode(bytes));
  } catch {
    // Not a file that can be read: the daemon has said so.
    return [];
  }
}

/** What the daemon read at its start and somebody has written since: this ticket will run by the old text. */
function writtenSince({ root, paths }: Repository, flow: string): string[] {
  const writtenAt = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  // The daemon writes who it is as it starts, and again when it replaces itself.
  const started = writtenAt(paths.lockFile);
  const files = [configFile, `.agents/sloop/flows/${flow}.yaml`];
  return files
    .filter((file) => started > 0 && writtenAt(join(root, file)) > started)
    .map((file) => `${file} was written after the daemon started; \`sloop daemon restart\` loads it`);
}

/** The command. */
export async function post(session: Session): Promise<number> {
  const [path = ""] = session.values.words;
  checkUtf8(path);
  const directory = currentDirectory();
  const repository = await openRepository(directory, session.env);
  const loaded = loadConfiguration(repository.root, session.env);
  await warn(session, loaded.warnings);
  const client = clientFor(repository, session);
  const file = postedFile(path, directory, repository.root);
  const reply = await client.call("post", postArgs(session.values, file));
  const code = await respond(session, client, "post", reply);
  await warn(session, keyWarnings(repository.root, file));
  if (reply.ok) {
    await warn(session, missingProgram(loaded.config, reply.data.ticket.target, session.env));
    await warn(session, writtenSince(repository, reply.data.ticket.flow));
    await warn(session, sameIdWarnings(repository.root, loaded.config.ticketDir, reply.data));
  }
  if (reply.ok && session.values.switches.has("manual")) await tellNothingQueued(session, reply.data.ticket.id);
  return code;
}

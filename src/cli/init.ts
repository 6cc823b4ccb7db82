// `sloop init`: makes what is missing of `.agents/sloop` in the current directory, and never changes what is there (cli.md 11).

import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { SloopError } from "../core/errors.ts";
import { parseEssentials } from "../parse/config.ts";
import { rawTestCommand, scaffold } from "../parse/templates.ts";
import { configFile } from "../system/config-file.ts";
import { readIfPresent, systemCode } from "../system/files.ts";
import { quoteWord } from "./quote.ts";
import { currentDirectory } from "./repository.ts";
import { remark, sayLocal } from "./say.ts";
import type { Session } from "./session.ts";

const base = ".agents/sloop";
/** In the order in which they are made and reported; a slash ends a directory. */
const entries =
  "config.yaml projects/ projects/default.md tickets/ flows/ flows/default.yaml flows/train.yaml prompts/ prompts/review.md"
    .split(" ")
    .map((name) => `${base}/${name}`);

const byFiles: readonly (readonly [file: string, command: readonly string[]])[] = [
  ["Cargo.toml", ["cargo", "test"]],
  ["bun.lock", ["bun", "test"]],
  ["bun.lockb", ["bun", "test"]],
  ["package.json", ["npm", "test"]],
  ["go.mod", ["go", "test", "./..."]],
  ["pyproject.toml", ["pytest"]],
  ["Makefile", ["make", "test"]],
];

type Found = "file" | "directory" | "other" | null;

function look(path: string): Found {
  try {
    const found = statSync(path);
    if (found.isFile()) return "file";
    return found.isDirectory() ? "directory" : "other";
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new SloopError("internal", `${path}: ${(error as Error).message}`);
  }
}

function testCommand(root: string): string[] {
  let written: string[] | null = null;
  try {
    const bytes = readIfPresent(join(root, base, "config.yaml"));
    written = bytes === null ? null : rawTestCommand(new TextDecoder().decode(bytes));
  } catch {
    // No configuration yet, or none that can be read: what lies in the directory decides.
  }
  if (written !== null) return written;
  const fitting = byFiles.find(([file]) => look(join(root, file)) === "file");
  return [...(fitting?.[1] ?? ["cargo", "test"])];
}

/** Makes one entry; false when it was there already. `text` null: a directory. */
function make(root: string, path: string, text: string | null): boolean {
  const full = join(root, path);
  const found = look(full);
  const wanted = text === null ? "directory" : "file";
  if (found === wanted) return false;
  if (found !== null) {
    throw new SloopError("conflict", `${path}: a ${wanted} belongs here, and something else stands there`);
  }
  try {
    if (text === null) mkdirSync(full);
    else writeFileSync(full, text, { flag: "wx" });
    return true;
  } catch (error) {
    const code = systemCode(error);
    if (code === "EEXIST" || code === "ENOTDIR") throw new SloopError("conflict", `${path}: something is in the way`);
    throw new SloopError("internal", `${path}: ${(error as Error).message}`);
  }
}

export type Scaffolded = { repository_root: string; created: string[]; existing: string[] };

/** Scaffolds `root`; what was made before a failure stays. Throws SloopError `conflict` or `internal`. */
export function scaffoldInto(root: string): Scaffolded {
  const command = testCommand(root);
  make(root, ".agents", null);
  make(root, base, null);
  const texts = new Map(scaffold(command).map((file) => [file.path, file.text]));
  const created: string[] = [];
  const existing: string[] = [];
  for (const entry of entries) {
    const path = entry.replace(/\/$/, "");
    const text = entry === path ? (texts.get(path) ?? "") : null;
    (make(root, path, text) ? created : existing).push(path);
  }
  return { repository_root: root, created, existing };
}

/** The nearest directory above `root` that is set up, or null. */
function setUpAbove(root: string): string | null {
  for (let at = dirname(root); ; at = dirname(at)) {
    if (look(join(at, configFile)) === "file") return at;
    if (dirname(at) === at) return null;
  }
}

/** Where the configuration at `root` puts worktrees, or the usual place. */
function worktreesOf(root: string): string {
  const path = join(root, configFile);
  try {
    const text = new TextDecoder().decode(readIfPresent(path) ?? new Uint8Array());
    return resolve(root, parseEssentials(path, text).worktreeDir);
  } catch {
    return join(root, ".worktrees");
  }
}

/** The repository whose run has its worktree at or above `directory`, and that worktree; null when there is none. */
function runAround(directory: string): { root: string; worktree: string } | null {
  for (let at = directory; dirname(at) !== at; at = dirname(at)) {
    if (look(join(at, ".git")) !== "file") continue;
    for (let root = setUpAbove(at); root !== null; root = setUpAbove(root)) {
      if (worktreesOf(root) === dirname(at)) return { root, worktree: at };
    }
  }
  return null;
}

/** What is made in a run's worktree would go with it, and every command typed there is for the repository around it. */
function refuseInWorktree(directory: string): void {
  const run = runAround(directory);
  if (run === null) return;
  const message = `${run.worktree} is the worktree of a run; the repository is ${run.root}, and it is set up`;
  throw new SloopError("conflict", message, { hint: `cd ${quoteWord(run.root)}` });
}

function warningsOf({ repository_root: root, existing }: Scaffolded): string[] {
  if (look(join(root, ".git")) !== null) return [];
  const above = setUpAbove(root);
  const noGit = `${root} is not the top level of a Git work tree, so the daemon will not run here`;
  if (above === null) return [`${noGit}; \`git init\` makes it one`];
  const undo = existing.length === 0 ? `: \`rm -r ${base}\` here undoes this` : "";
  return [`${noGit}; ${above} is set up already and serves what is typed below it, but not here any more${undo}`];
}

function initText(done: Scaffolded): string {
  return [
    `initialized sloop in ${done.repository_root}`,
    ...done.created.map((path) => `  created: ${path}`),
    ...done.existing.map((path) => `  existing: ${path}`),
    "",
    `write a ticket: sloop template ticket > ${base}/tickets/first.md`,
    "other starter files: sloop template flow, project or config",
  ].join("\n");
}

/** The command. */
export async function init(session: Session): Promise<number> {
  const directory = currentDirectory();
  refuseInWorktree(directory);
  const done = scaffoldInto(directory);
  const warnings = warningsOf(done);
  await sayLocal(session.json, warnings.length > 0 ? { ...done, warnings } : done, initText(done));
  if (!session.json) for (const warning of warnings) await remark(`warning: ${warning}`);
  return 0;
}

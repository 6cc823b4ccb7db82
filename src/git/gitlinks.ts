// Repositories inside a repository: a commit holds their name only, so one that nothing tells where to find is lost with its worktree.

import { treeChanges } from "./changes.ts";
import { git } from "./run.ts";

const gitlink = "160000";

/** Paths that `.gitmodules` of a commit names. */
async function submodulesOf(cwd: string, commit: string): Promise<Set<string>> {
  const args = ["config", "--null", "--blob", `${commit}:.gitmodules`, "--get-regexp", "^submodule\\..*\\.path$"];
  const { code, stdout } = await git(args, { cwd });
  if (code !== 0) return new Set();
  // Each entry is `key\nvalue`.
  return new Set(stdout.split("\0").map((entry) => entry.slice(entry.indexOf("\n") + 1)));
}

/** Paths that become a repository of their own between two commits although no `.gitmodules` tells of where. */
export async function strayRepositories(cwd: string, from: string, to: string): Promise<string[]> {
  const changes = (await treeChanges(cwd, from, to)) ?? [];
  const added = changes.filter((change) => change.to?.mode === gitlink && change.from?.mode !== gitlink);
  if (added.length === 0) return [];
  const known = await submodulesOf(cwd, to);
  return added.map(({ path }) => path).filter((path) => !known.has(path));
}

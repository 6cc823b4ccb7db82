// The hooks that take part in what sloop and its agents do with git: `sloop doctor` mentions them.

import { accessSync, constants } from "node:fs";
import { join, resolve } from "node:path";
import { isRegularFile } from "../system/files.ts";
import type { Git } from "./doctor-ask.ts";
import { pasteWord } from "./doctor-text.ts";
import type { Finding } from "./finding.ts";

const names = ["pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-merge"] as const;

function runs(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return isRegularFile(path);
  } catch {
    return false;
  }
}

/** The hooks git would run in a commit or a merge here: nothing is wrong with them, but they have a say. */
export async function checkMergeHooks(git: Git, root: string): Promise<Finding[]> {
  const asked = await git("rev-parse", "--git-path", "hooks");
  if (asked.exitCode !== 0 || asked.stdout === "") return [];
  const directory = resolve(root, asked.stdout);
  const found = names.filter((name) => runs(join(directory, name)));
  if (found.length === 0) return [];
  const paths = found.map((name) => pasteWord(join(directory, name))).join(" ");
  return [
    {
      check: "merge hooks",
      severity: "warning",
      message: `git runs ${found.map((name) => `\`${name}\``).join(", ")} of ${directory}`,
      why: "they run in an agent's commits and in merges: one that fails, or asks somebody, holds up a run",
      fix: `chmod -x ${paths} (only if they should not run; hooks that end by themselves are no trouble)`,
    },
  ];
}

// Keeps run worktrees out of `git status` and `git add -A` in the root checkout, without touching any file people share.

import { appendFileSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { isRegularFile } from "../system/files.ts";
import { readLayout, readText } from "./layout.ts";

/** A pattern that means exactly this folder at the top level, whatever characters are in its name. */
function pattern(worktreeDir: string): string {
  return `/${worktreeDir.replace(/[\\*?[\]]/g, "\\$&")}/`;
}

/**
 * Adds the folder of run worktrees to the clone's own `info/exclude`, once. Null when it is there now; else why it could
 * not be written, which harms no run.
 */
export function excludeWorktrees(root: string, worktreeDir: string): string | null {
  const layout = readLayout(root);
  if (layout === null) return "the repository has no git directory";
  const path = join(layout.commonDir, "info", "exclude");
  const text = readText(path) ?? "";
  const line = pattern(worktreeDir);
  if (text.split("\n").includes(line)) return null;
  if (existsSync(path) && !isRegularFile(path)) return `${path} is not a file`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    appendFileSync(path, `${text === "" || text.endsWith("\n") ? "" : "\n"}${line}\n`);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

// The light check of the configuration that every command makes (cli.md 8), without loading the YAML library for plain files.

import { SloopError } from "../core/errors.ts";
import { parseDirectory } from "../parse/directory.ts";
import { parseSimple } from "../parse/fast.ts";
import { type MapNode, member } from "../parse/node.ts";

function readWorktreeDir(root: MapNode): string | null {
  const node = member(root, "worktree_dir");
  if (node === null) return ".worktrees";
  if (node.kind !== "string") return null;
  const parsed = parseDirectory(node.text);
  return parsed.ok ? parsed.directory : null;
}

/** `worktree_dir` of a plain and right configuration; null: the real parser has to look at it. */
export function quickWorktreeDir(text: string): string | null {
  const root = parseSimple(text)?.root;
  if (root?.kind !== "map") return null;
  const version = member(root, "version");
  if (version?.kind !== "integer" || version.text !== "1") return null;
  return readWorktreeDir(root);
}

const configHint = "`sloop template config` prints a working one";

/** Adds the template to look at to what a configuration check throws. */
export function withConfigHint(error: unknown): unknown {
  if (!(error instanceof SloopError) || error.hint !== null) return error;
  const flow = /\.agents\/sloop\/flows\//.test(error.message);
  const hint = flow ? "`sloop template flow` prints a working one" : configHint;
  return new SloopError(error.code, error.message, { details: error.details, hint });
}

// Where a posted ticket lies, and its bytes: judged with symlinks resolved, before anything is read.

import { realpathSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { SloopError } from "../core/errors.ts";
import { contentHash } from "../core/hash.ts";
import type { Daemon } from "../daemon/context.ts";
import { decodeUtf8 } from "../parse/source.ts";
import { readIfPresent } from "../system/files.ts";

export type PostedFile = {
  absolute: string;
  /** Repository-relative, as it is registered and shown. */
  path: string;
  stem: string;
  text: string;
  hash: string;
};

/** The path with every symlink resolved; of a missing file, that of its longest existing ancestor. */
function resolveLinks(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(resolveLinks(parent), basename(path));
  }
}

function below(directory: string, path: string): boolean {
  return path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}

function refuse(message: string): SloopError {
  return new SloopError("invalid_arguments", message, { hint: "`sloop template ticket` prints a file to start from" });
}

function locate(daemon: Daemon, typed: string): string {
  const { root } = daemon.paths;
  const { ticketDir } = daemon.config;
  if (typed.includes("\0")) throw refuse(`\`${typed.replaceAll("\0", "\\0")}\` is not a path`);
  const absolute = resolveLinks(resolve(root, typed));
  if (!below(root, absolute)) throw refuse(`\`${typed}\` is outside the repository`);
  if (!below(resolveLinks(join(root, ticketDir)), absolute)) {
    throw refuse(`\`${typed}\` is outside the ${ticketDir} directory`);
  }
  return absolute;
}

function readBytes(absolute: string, path: string): Uint8Array {
  let bytes: Uint8Array | null;
  try {
    bytes = statSync(absolute, { throwIfNoEntry: false })?.isFile() === true ? readIfPresent(absolute) : null;
  } catch (error) {
    throw new SloopError("internal", `${path}: cannot be read: ${(error as Error).message}`);
  }
  if (bytes === null) throw new SloopError("not_found", `ticket file \`${path}\` not found`);
  return bytes;
}

/** Finds and reads the file of a `post`. Throws SloopError in the order of protocol.md 7.5. */
export function readPostedFile(daemon: Daemon, typed: string): PostedFile {
  const absolute = locate(daemon, typed);
  const path = relative(daemon.paths.root, absolute);
  const bytes = readBytes(absolute, path);
  const text = decodeUtf8(bytes);
  if (text === null) throw refuse(`${path}: is not valid UTF-8 text`);
  if (!path.endsWith(".md")) throw refuse(`${path}: tickets are \`.md\` files`);
  return { absolute, path, stem: basename(path).slice(0, -".md".length), text, hash: contentHash(bytes) };
}

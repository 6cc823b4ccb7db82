// Where a posted ticket lies, and its bytes: judged with symlinks resolved, before anything is read.

import { realpathSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { SloopError } from "../core/errors.ts";
import { contentHash } from "../core/hash.ts";
import type { Daemon } from "../daemon/context.ts";
import { decodeUtf8 } from "../parse/source.ts";
import { NotAFileError, readIfPresent } from "../system/files.ts";

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

type Located = Pick<PostedFile, "absolute" | "path">;

/** The ticket directory may itself be a link, also one that leads elsewhere; a link in it may not lead out. */
function locate(daemon: Daemon, typed: string): Located {
  const { root } = daemon.paths;
  const { ticketDir } = daemon.config;
  if (typed.includes("\0")) throw refuse(`\`${typed.replaceAll("\0", "\\0")}\` is not a path`);
  const absolute = resolveLinks(resolve(root, typed));
  const tickets = resolveLinks(join(root, ticketDir));
  const inside = below(root, absolute);
  if (!below(tickets, absolute)) {
    throw refuse(`\`${typed}\` is outside ${inside ? `the ${ticketDir} directory` : "the repository"}`);
  }
  return { absolute, path: inside ? relative(root, absolute) : join(ticketDir, relative(tickets, absolute)) };
}

function readBytes(absolute: string, path: string): Uint8Array {
  const missing = (why: string) => new SloopError("not_found", `ticket file \`${path}\` not found${why}`);
  let bytes: Uint8Array | null;
  try {
    bytes = readIfPresent(absolute);
  } catch (error) {
    if (error instanceof NotAFileError) throw error.tooLarge ? refuse(error.message) : missing(`: ${error.message}`);
    throw new SloopError("internal", `${path}: cannot be read: ${(error as Error).message}`);
  }
  if (bytes === null) throw missing("");
  return bytes;
}

/** Finds and reads the file of a `post`. Throws SloopError in the order of protocol.md 7.5. */
export function readPostedFile(daemon: Daemon, typed: string): PostedFile {
  const { absolute, path } = locate(daemon, typed);
  const bytes = readBytes(absolute, path);
  const text = decodeUtf8(bytes);
  if (text === null) throw refuse(`${path}: is not valid UTF-8 text`);
  if (!path.endsWith(".md")) throw refuse(`${path}: tickets are \`.md\` files`);
  return { absolute, path, stem: basename(path).slice(0, -".md".length), text, hash: contentHash(bytes) };
}

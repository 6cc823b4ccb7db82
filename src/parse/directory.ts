// The directory keys of config.yaml: relative, inside the repository, normalised. Purely lexical.

/** `path` normalised, or what is wrong with it as the end of a sentence that starts with the key. */
export function parseDirectory(path: string): { ok: true; directory: string } | { ok: false; problem: string } {
  if (path.startsWith("/")) {
    return { ok: false, problem: `\`${path}\` is absolute; it must be a repository-relative directory` };
  }
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) {
      return { ok: false, problem: `\`${path}\` climbs above the repository root` };
    }
  }
  if (parts.length === 0) {
    return { ok: false, problem: `\`${path}\` must name a directory below the repository root` };
  }
  return { ok: true, directory: parts.join("/") };
}

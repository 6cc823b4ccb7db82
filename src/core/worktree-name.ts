// Legal names of Git branches, and the branch-like label that a ticket file's name gives its ticket.

import { defaultWorktree, validSlug } from "./ids.ts";

/** Names in which nothing can be wrong, told at a glance: thousands of tickets may have one. */
const plainBranch = /^[A-Za-z0-9][A-Za-z0-9_-]*(?:\/[A-Za-z0-9][A-Za-z0-9_-]*)*$/;

/** Whether Git would take `name` as a local branch (`git check-ref-format --branch`), told from the text alone. */
export function validBranch(name: string): boolean {
  if (plainBranch.test(name)) return name !== "HEAD";
  if (name === "" || name === "@" || name === "HEAD" || name.startsWith("-")) return false;
  if (name.endsWith(".") || name.includes("..") || name.includes("@{")) return false;
  // Half a surrogate pair has no UTF-8, so git would be told another name.
  if (!name.isWellFormed()) return false;
  for (const char of name) {
    const code = char.codePointAt(0) ?? 0;
    if (code <= 0x20 || code === 0x7f || "~^:?*[\\".includes(char)) return false;
  }
  return name.split("/").every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"));
}

/** Whether an explicit ticket id is usable: no white space at the ends, and its run branches are legal names. */
export function validTicketId(id: string): boolean {
  return id !== "" && !/^\p{White_Space}|\p{White_Space}$/u.test(id) && validBranch(`sloop/${id}-a1-00000000`);
}

/** The last path component of a ticket file without its `.md`. */
export function fileStem(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return name.endsWith(".md") ? name.slice(0, -3) : name;
}

/** The worktree a ticket file without a `worktree` key gets: `sloop/<stem>`; the problem when its stem is not a slug. */
export function worktreeFromFile(path: string): { ok: true; worktree: string } | { ok: false; problem: string } {
  const stem = fileStem(path);
  if (validSlug(stem)) return { ok: true, worktree: defaultWorktree(stem, "") };
  const problem = `\`${stem}\` is not a valid worktree slug; name the file like \`abc-def.md\` (lowercase letters, digits, single dashes) or set \`worktree\` in its frontmatter`;
  return { ok: false, problem };
}

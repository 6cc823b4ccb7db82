// Identifiers: how tickets, projects, runs and their branches are named, and how such names are read back.

/** The first 8 characters of a run id, or the whole when it is shorter: worktree folder, branch tail, socket name. */
export function shortId(runId: string): string {
  return runId.slice(0, 8);
}

/** A run's name for people: `<ticket id>-r<attempt>`. */
export function runAlias(ticketId: string, attempt: number): string {
  return `${ticketId}-r${attempt}`;
}

/** Splits an alias at its last `-r`; null unless the rest is all digits above 0 and the left part is not empty. */
export function parseAlias(text: string): { ticketId: string; attempt: number } | null {
  const at = text.lastIndexOf("-r");
  if (at < 1) return null;
  const digits = text.slice(at + 2);
  if (!/^[0-9]+$/.test(digits)) return null;
  const attempt = Number(digits);
  if (attempt < 1 || !Number.isSafeInteger(attempt)) return null;
  return { ticketId: text.slice(0, at), attempt };
}

/** The branch a run works on: `sloop/<ticket id>-a<attempt>-<short id>`. */
export function runBranch(ticketId: string, attempt: number, runId: string): string {
  return `sloop/${ticketId}-a${attempt}-${shortId(runId)}`;
}

/** Whether `text` may be an id prefix: ASCII letters, digits, `-`, `_`, a letter or digit at both ends. */
export function validPrefix(text: string): boolean {
  return /^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$/.test(text);
}

/** Whether a ticket file's stem is a worktree slug: lowercase groups joined by single dashes. */
export function validSlug(text: string): boolean {
  return /^[a-z0-9]+(-[a-z0-9]+)*$/.test(text);
}

const largestOrdinal = 0xffffffffffffffffn;

/** 1 + the greatest positive all-digit suffix among `ids` with exactly that prefix; null when 64 bits are used up. */
export function nextOrdinal(prefix: string, ids: Iterable<string>): bigint | null {
  let greatest = 0n;
  const start = `${prefix}-`;
  for (const id of ids) {
    if (!id.startsWith(start)) continue;
    const digits = id.slice(start.length);
    if (!/^[0-9]+$/.test(digits)) continue;
    const value = BigInt(digits);
    if (value > greatest && value <= largestOrdinal) greatest = value;
  }
  return greatest === largestOrdinal ? null : greatest + 1n;
}

/** Gives out the numbers that are free for `prefix`, one after another; null once 64 bits are used up. */
export function freeOrdinals(prefix: string, ids: Iterable<string>): () => bigint | null {
  let next = nextOrdinal(prefix, ids);
  return () => {
    const given = next;
    next = given === null || given === largestOrdinal ? null : given + 1n;
    return given;
  };
}

/** The number after the id's last `-`, for recency ties; 0 when there is none. */
export function ordinal(id: string): bigint {
  const digits = id.slice(id.lastIndexOf("-") + 1);
  return id.includes("-") && /^[0-9]+$/.test(digits) ? BigInt(digits) : 0n;
}

/** The branch-like label of a ticket without a `worktree` key: `sloop/<file stem>`, without a file `sloop/<id>`. */
export function defaultWorktree(stem: string | null, id: string): string {
  return `sloop/${stem ?? id}`;
}

// A fresh clone has ticket files with ids and a daemon that knows none of them: the first post is then given an id that is taken.

import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import type { PostReply } from "../protocol/replies.ts";

const mostFiles = 1000;
const headBytes = 2048;

/** The beginning of a regular file, where a ticket's keys are. */
function headOf(path: string): string {
  if (!statSync(path).isFile()) return "";
  const descriptor = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(headBytes);
    return bytes.subarray(0, readSync(descriptor, bytes, 0, headBytes, 0)).toString();
  } finally {
    closeSync(descriptor);
  }
}

function otherHolder(directory: string, id: string, own: string): string | null {
  const names = readdirSync(directory).filter((name) => name.endsWith(".md"));
  for (const name of names.slice(0, mostFiles)) {
    const path = join(directory, name);
    if (path !== own && headOf(path).split("\n").includes(`id: ${id}`)) return name;
  }
  return null;
}

/** What to say when the first id that was ever given out here stands in another file of the ticket directory already. */
export function sameIdWarnings(root: string, ticketDir: string, reply: PostReply): string[] {
  const { id, file } = reply.ticket;
  if (!reply.created || !reply.file_rewritten || !id.endsWith("-1")) return [];
  try {
    const other = otherHolder(join(root, ticketDir), id, join(root, file));
    if (other === null) return [];
    return [
      `${other} says \`id: ${id}\` as well: the tickets of this clone were never registered here. Give ${file} an id that no file has, and run \`sloop reindex\``,
    ];
  } catch {
    // A file that went away, or may not be read, says nothing.
    return [];
  }
}

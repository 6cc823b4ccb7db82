// A fresh clone has ticket files with ids and a daemon that knows none of them: the first post is then given an id that is taken.

import { join } from "node:path";
import type { PostReply } from "../protocol/replies.ts";
import { fileSource } from "../system/files.ts";

const mostFiles = 1000;

function otherHolder(directory: string, id: string, own: string): string | null {
  const names = (fileSource.list(directory) ?? []).filter((name) => name.endsWith(".md"));
  for (const name of names.slice(0, mostFiles)) {
    const path = join(directory, name);
    const bytes = path === own ? null : fileSource.read(path);
    if (bytes !== null && new TextDecoder().decode(bytes).split("\n").includes(`id: ${id}`)) return name;
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

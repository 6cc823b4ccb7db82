// What people are shown of commits: the abbreviated id and the first line of the message.

import { git } from "./run.ts";

export type CommitText = { hash: string; message: string };

const objectName = /^[0-9a-f]{40}([0-9a-f]{24})?$/;

/** The commits of `oids` that git can still read, by full id. Never rejects. */
export async function readCommits(root: string, oids: readonly string[]): Promise<Map<string, CommitText>> {
  const asked = [...new Set(oids)].filter((oid) => objectName.test(oid));
  const found = new Map<string, CommitText>();
  if (asked.length === 0) return found;
  const argv = ["log", "--no-walk=unsorted", "--ignore-missing", "-z", "--format=%H %h%n%B", "--stdin"];
  const { stdout } = await git(argv, { cwd: root, input: `${asked.join("\n")}\n` });
  for (const record of stdout.split("\0")) {
    const [head = "", message = ""] = record.split("\n", 2);
    const [oid, hash] = head.split(" ");
    if (oid !== undefined && hash !== undefined) found.set(oid, { hash, message });
  }
  return found;
}

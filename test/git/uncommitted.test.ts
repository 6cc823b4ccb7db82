// What git calls changed in a worktree, and what of it really is.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { contentTree, listUncommitted, treeOf } from "../../src/git/uncommitted.ts";

let dir: string;
const git = (...args: string[]) => {
  const ran = Bun.spawnSync(["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", ...args], { cwd: dir });
  expect(ran.exitCode).toBe(0);
};
const write = (name: string, text: string) => writeFileSync(join(dir, name), text);

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "uncommitted ü-"));
  git("init", "-q", "-b", "main");
  for (const name of ["a", "b", "ü\nx"]) write(name, `${name}\n`);
  write(".gitignore", "ignored\n");
  symlinkSync("a", join(dir, "link"));
  git("add", "-A");
  git("commit", "-qm", "first");
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const edits: [what: string, edit: () => void, paths: string[] | null][] = [
  ["nothing", () => undefined, []],
  ["an edit", () => write("a", "other\n"), ["a"]],
  ["an edit of the same size", () => write("a", "b\n"), ["a"]],
  [
    "a staged edit",
    () => {
      write("a", "other\n");
      git("add", "a");
    },
    ["a"],
  ],
  [
    "a staged edit that was taken back on disk",
    () => {
      write("a", "b\n");
      git("add", "a");
      write("a", "a\n");
    },
    ["a"],
  ],
  ["a deletion", () => unlinkSync(join(dir, "b")), ["b"]],
  ["a name with a newline", () => write("ü\nx", "other\n"), ["ü\nx"]],
  ["a new file", () => write("new", ""), ["new"]],
  [
    "a folder of new files",
    () => {
      mkdirSync(join(dir, "d"));
      write("d/1", "");
      write("d/2", "");
    },
    ["d/"],
  ],
  ["an ignored file", () => write("ignored", ""), []],
  ["permission to execute", () => chmodSync(join(dir, "a"), 0o755), ["a"]],
  [
    "a link that leads elsewhere",
    () => {
      unlinkSync(join(dir, "link"));
      symlinkSync("b", join(dir, "link"));
    },
    ["link"],
  ],
  ["a renamed file", () => git("mv", "a", "c"), ["a", "c"]],
  [
    "people's wish not to see new files",
    () => {
      git("config", "status.showUntrackedFiles", "no");
      write("new", "");
    },
    ["new"],
  ],
  ["no repository any more", () => rmSync(join(dir, ".git"), { recursive: true }), null],
  ["a repository that is damaged", () => rmSync(join(dir, ".git/HEAD")), null],
];

test.each(edits)("%s", async (_what, edit, paths) => {
  edit();
  expect(await listUncommitted(dir)).toEqual(paths);
});

test("inside another repository, a folder that is none says so", async () => {
  mkdirSync(join(dir, "inner"));
  write("inner/.git", "gitdir: nowhere\n");
  expect(await listUncommitted(join(dir, "inner"))).toBeNull();
});

test("the tree of everything is what committing it makes, and touches nothing", async () => {
  write("new", "new\n");
  unlinkSync(join(dir, "b"));
  const before = await listUncommitted(dir);
  const tree = await contentTree(dir);
  expect(await listUncommitted(dir)).toEqual(before);
  git("add", "-A");
  git("commit", "-qm", "all");
  expect(tree).toBe(await treeOf(dir, "HEAD"));
  expect(await contentTree(join(dir, "nowhere"))).toBeNull();
});

describe("a rule that came after the files", () => {
  beforeEach(() => {
    write("crlf", "one\r\ntwo\r\n");
    git("add", "-A");
    git("commit", "-qm", "crlf");
    write(".gitattributes", "crlf text\n");
    git("add", ".gitattributes");
    git("commit", "-qm", "rule");
    unlinkSync(join(dir, "crlf"));
    git("checkout", "-q", "--", "crlf");
    // Git compares what it would store only where it cannot trust the time of the file.
    unlinkSync(join(dir, ".git/index"));
    git("read-tree", "HEAD");
  });

  test("makes git call a file changed that is as it was checked out", async () => {
    const { stdout } = Bun.spawnSync(["git", "status", "--porcelain"], { cwd: dir });
    expect(stdout.toString()).toBe(" M crlf\n");
    expect(await listUncommitted(dir)).toEqual([]);
  });

  test("an edit of it is one", async () => {
    write("crlf", "one\r\nTWO\r\n");
    expect(await listUncommitted(dir)).toEqual(["crlf"]);
  });
});

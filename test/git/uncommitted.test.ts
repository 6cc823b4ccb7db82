// What git calls changed in a worktree, and what of it really is.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copyIndex } from "../../src/git/index-copy.ts";
import { endPassingGit } from "../../src/git/run.ts";
import { readWorktreeState, treeOf } from "../../src/git/uncommitted.ts";

let root: string;
/** A linked worktree of `root`, as a run's is. */
let dir: string;

const names = async (worktree = dir) =>
  (await readWorktreeState(root, worktree))?.uncommitted.map(({ path }) => path) ?? null;
const git = (...args: string[]) => {
  const ran = Bun.spawnSync(["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", ...args], { cwd: dir });
  expect(ran.exitCode).toBe(0);
};
const write = (name: string, text: string) => writeFileSync(join(dir, name), text);

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "uncommitted ü-"));
  dir = root;
  git("init", "-q", "-b", "main");
  for (const name of ["a", "b", "ü\nx"]) write(name, `${name}\n`);
  write(".gitignore", "ignored\n");
  symlinkSync("a", join(dir, "link"));
  git("add", "-A");
  git("commit", "-qm", "first");
  dir = join(root, "wt");
  Bun.spawnSync(["git", "worktree", "add", "-q", "-b", "work", dir], { cwd: root });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

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
  ["no repository any more", () => rmSync(join(dir, ".git")), null],
  ["a repository that is damaged", () => rmSync(join(root, ".git/worktrees/wt/HEAD")), null],
];

test.each(edits)("%s", async (_what, edit, paths) => {
  edit();
  expect(await names()).toEqual(paths);
});

test("inside another repository, a folder that is none says so", async () => {
  mkdirSync(join(dir, "inner"));
  write("inner/.git", "gitdir: nowhere\n");
  expect(await names(join(dir, "inner"))).toBeNull();
});

test("the tree of everything is what committing it makes, and looking touches nothing", async () => {
  write("new", "new\n");
  unlinkSync(join(dir, "b"));
  const before = Bun.spawnSync(["git", "status", "--porcelain"], { cwd: dir }).stdout.toString();
  const state = await readWorktreeState(root, dir);
  expect(Bun.spawnSync(["git", "status", "--porcelain"], { cwd: dir }).stdout.toString()).toBe(before);
  git("add", "-A");
  git("commit", "-qm", "all");
  expect(state?.content).toBe(await treeOf(dir, "HEAD"));
  const oid = Bun.spawnSync(["git", "rev-parse", "HEAD:new"], { cwd: dir }).stdout.toString().trim();
  expect(state?.uncommitted).toEqual([
    { path: "b", oid: "deleted" },
    { path: "new", oid },
  ]);
  expect(await readWorktreeState(root, join(dir, "nowhere"))).toBeNull();
});

test("a folder of new files is known again by what is in it", async () => {
  mkdirSync(join(dir, "out"));
  write("out/1", "one");
  const first = await readWorktreeState(root, dir);
  expect(await readWorktreeState(root, dir)).toEqual(first);
  write("out/2", "two");
  const second = await readWorktreeState(root, dir);
  expect(second?.uncommitted.map(({ path }) => path)).toEqual(["out/"]);
  expect(second?.uncommitted).not.toEqual(first!.uncommitted);
});

test("more than 500 paths are named no further", async () => {
  for (let n = 0; n < 501; n += 1) write(`new ${n}`, "");
  const state = await readWorktreeState(root, dir);
  expect([state?.uncommitted.length, state?.more]).toEqual([500, true]);
});

test("a copied index is never younger than the real one: else git would trust a file that changed right after it", () => {
  const index = join(root, ".git/worktrees/wt/index");
  const instant = new Date(Date.now() - 60_000);
  utimesSync(index, instant, instant);
  copyIndex(index, join(root, "copy"));
  expect(statSync(join(root, "copy")).mtimeMs).toBeLessThanOrEqual(statSync(index).mtimeMs);
  expect(readFileSync(join(root, "copy"))).toEqual(readFileSync(index));
});

const tricks: [what: string, trick: () => void][] = [
  ["skip-worktree", () => git("update-index", "--skip-worktree", "a")],
  ["assume-unchanged", () => git("update-index", "--assume-unchanged", "a")],
  [
    "core.ignoreStat",
    () => {
      git("config", "core.ignoreStat", "true");
      git("update-index", "--really-refresh");
    },
  ],
  [
    "another work tree",
    () => {
      git("config", "extensions.worktreeConfig", "true");
      git("config", "--worktree", "core.worktree", root);
    },
  ],
];

test.each(tricks)("%s hides no edit", async (_what, trick) => {
  trick();
  write("a", "other\n");
  expect(await names()).toEqual(["a"]);
});

test("replaced objects are not looked through", async () => {
  const blob = (text: string) =>
    Bun.spawnSync(["git", "hash-object", "-w", "--stdin"], { cwd: dir, stdin: Buffer.from(text) })
      .stdout.toString()
      .trim();
  git("replace", blob("a\n"), blob("good\n"));
  unlinkSync(join(dir, "a"));
  git("checkout", "-q", "--", "a");
  expect(await names()).toEqual(["a"]);
});

test("a submodule: what is built inside is nothing, an edit is one that no object name tells", async () => {
  const library = join(root, "library");
  Bun.spawnSync([
    "sh",
    "-c",
    `git init -q '${library}' && cd '${library}' && echo x > lib && git add . && git -c user.name=t -c user.email=t@example.invalid commit -qm lib`,
  ]);
  git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "sub");
  git("commit", "-qm", "sub");
  write("sub/built", "");
  expect(await names()).toEqual([]);
  write("sub/lib", "y\n");
  expect((await readWorktreeState(root, dir))?.uncommitted).toEqual([{ path: "sub", oid: null }]);
});

test.each(["HEAD", "index"])("a pipe in the place of %s keeps nobody waiting for ever", async (name) => {
  const gitDir = join(root, ".git/worktrees/wt", name);
  rmSync(gitDir);
  Bun.spawnSync(["mkfifo", gitDir]);
  const looking = readWorktreeState(root, dir);
  // As at the daemon's end: git itself waits for a writer.
  for (let over = false; !over; ) {
    over = await Promise.race([looking.then(() => true), Bun.sleep(50).then(() => false)]);
    endPassingGit();
  }
  expect(await looking).toBeNull();
});

test("another repository's git in the place of its own is none", async () => {
  Bun.spawnSync(["git", "clone", "-q", root, join(root, "clone")]);
  rmSync(join(dir, ".git"));
  renameSync(join(root, "clone/.git"), join(dir, ".git"));
  expect(await names()).toBeNull();
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
    unlinkSync(join(root, ".git/worktrees/wt/index"));
    git("read-tree", "HEAD");
  });

  test("makes git call a file changed that is as it was checked out", async () => {
    const { stdout } = Bun.spawnSync(["git", "status", "--porcelain"], { cwd: dir });
    expect(stdout.toString()).toBe(" M crlf\n");
    expect(await names()).toEqual([]);
  });

  test("an edit of it is one", async () => {
    write("crlf", "one\r\nTWO\r\n");
    expect(await names()).toEqual(["crlf"]);
  });
});

// Reading a repository: the same answers as git gives, also for packed references, linked worktrees and odd HEADs.

import { expect, test } from "bun:test";
import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  branchExists,
  gitDirectoryPresent,
  isAncestor,
  mergeBase,
  observeCommits,
  readBranchTip,
  readHead,
  readHeadCommit,
  readTarget,
} from "../../src/git/inspect.ts";
import { git, lastLine, splitNul } from "../../src/git/run.ts";
import { newWorld } from "../support/repo.ts";

test("the target is the root's branch, or the configured one, wherever HEAD is", async () => {
  await using world = await newWorld({ name: "répo with blanks" });
  const tip = world.git("rev-parse", "HEAD");
  expect(readTarget(world.root, null)).toEqual({ branch: "main", tip });
  world.git("branch", "release/1.0");
  world.git("checkout", "-q", "--detach");
  expect(readTarget(world.root, null)).toEqual({ problem: "HEAD is detached" });
  expect(readTarget(world.root, "release/1.0")).toEqual({ branch: "release/1.0", tip });
  expect(readTarget(world.root, "nope")).toEqual({ problem: "branch `nope` is missing" });
});

test("an unborn HEAD has no commit yet", async () => {
  await using world = await newWorld({ git: "empty" });
  expect(readTarget(world.root, null)).toEqual({ problem: "HEAD has no commit yet" });
  expect(readHeadCommit(world.root)).toBeNull();
});

test("a directory without git has neither HEAD nor branches", async () => {
  await using world = await newWorld({ git: "none" });
  expect(gitDirectoryPresent(world.root)).toBe(false);
  expect(readHead(world.root)).toBeNull();
  expect(branchExists(world.root, "main")).toBe(false);
});

test("loose, packed and symbolic branches read as git reads them", async () => {
  await using world = await newWorld();
  const names = ["a", "ab", "x/y-z", "ünï"];
  for (const name of names) world.git("branch", name);
  world.git("pack-refs", "--all");
  world.write("f", "1");
  const later = world.commit("later");
  world.git("branch", "-f", "ab");
  world.git("symbolic-ref", "refs/heads/alias", "refs/heads/ab");
  for (const name of [...names, "alias", "main"]) {
    expect(readBranchTip(world.root, name)).toBe(world.git("rev-parse", `refs/heads/${name}`));
  }
  expect(readBranchTip(world.root, "ab")).toBe(later);
  for (const name of ["b", "x", "x/y", "", "main\n"]) expect(readBranchTip(world.root, name)).toBeNull();
  world.git("branch", "-D", "a");
  expect(branchExists(world.root, "a")).toBe(false);
});

test("a linked worktree has its own HEAD and the common branches", async () => {
  await using world = await newWorld();
  const path = join(world.dir, "linked wörktree");
  world.git("worktree", "add", "-q", "-b", "side", path);
  expect(readHead(path)).toEqual({ branch: "side" });
  expect(readBranchTip(path, "main")).toBe(world.git("rev-parse", "main"));
  expect(readTarget(path, null)).toEqual({ branch: "side", tip: world.git("rev-parse", "side") });
});

test("references that may be no files are asked of git", async () => {
  await using world = await newWorld();
  // Where this folder is, the files beside it need not be the truth.
  mkdirSync(join(world.root, ".git/reftable"));
  world.git("checkout", "-q", "-b", "side");
  world.write("f", "2");
  const tip = world.commit("two");
  expect(readTarget(world.root, null)).toEqual({ branch: "side", tip });
  expect(readTarget(world.root, "main")).toEqual({ branch: "main", tip: world.git("rev-parse", "main") });
  expect(readBranchTip(world.root, "no")).toBeNull();
  expect(await observeCommits(world.root, "side")).toEqual({ complete: true, oids: [tip] });
  world.git("checkout", "-q", "--detach");
  expect(readHead(world.root)).toEqual({ oid: tip });
});

test("commits are counted from the branch's first reflog entry, oldest first", async () => {
  await using world = await newWorld();
  world.git("checkout", "-q", "-b", "sloop/TICK-1-a1-0a0a0a0a");
  const branch = "sloop/TICK-1-a1-0a0a0a0a";
  expect(await observeCommits(world.root, branch)).toEqual({ complete: true, oids: [] });
  world.write("a", "1");
  const first = world.commit("one");
  world.write("a", "2");
  const second = world.commit("two");
  expect(await observeCommits(world.root, branch)).toEqual({ complete: true, oids: [first, second] });
  // Rewriting the default branch must not invent commits.
  world.git("branch", "-f", "main", "HEAD");
  expect(await observeCommits(world.root, branch)).toEqual({ complete: true, oids: [first, second] });
});

test("a lost, emptied or damaged reflog means unknown, never none", async () => {
  await using world = await newWorld();
  world.git("checkout", "-q", "-b", "work");
  world.write("a", "1");
  world.commit("one");
  const log = join(world.root, ".git/logs/refs/heads/work");
  const unknown = { complete: false, oids: [] };
  writeFileSync(log, `${"0".repeat(40)} ${"1".repeat(40)} x <x> 0 +0000\tbranch: Created\n`);
  expect(await observeCommits(world.root, "work")).toEqual(unknown);
  writeFileSync(log, "garbage\n");
  expect(await observeCommits(world.root, "work")).toEqual(unknown);
  world.git("reflog", "expire", "--expire=now", "--all");
  expect(await observeCommits(world.root, "work")).toEqual(unknown);
  rmSync(log);
  expect(await observeCommits(world.root, "work")).toEqual(unknown);
  expect(await observeCommits(world.root, "no such branch")).toEqual(unknown);
});

test("ancestry is true, false or unknown", async () => {
  await using world = await newWorld();
  const first = world.git("rev-parse", "HEAD");
  world.write("a", "1");
  const second = world.commit("two");
  expect(await isAncestor(world.root, first, second)).toBe(true);
  expect(await isAncestor(world.root, second, second)).toBe(true);
  expect(await isAncestor(world.root, second, first)).toBe(false);
  expect(await isAncestor(world.root, "1".repeat(40), first)).toBeNull();
  expect(await mergeBase(world.root, first, second)).toBe(first);
  expect(await mergeBase(world.root, second, first)).toBe(first);
  expect(await mergeBase(world.root, second, second)).toBe(second);
  expect(await mergeBase(world.root, "1".repeat(40), first)).toBeNull();
});

test("our git ignores the repository a hook would tie it to, and fails as a value", async () => {
  await using world = await newWorld();
  mkdirSync(join(world.dir, "other"));
  process.env["GIT_DIR"] = join(world.dir, "other");
  process.env["GIT_INDEX_FILE"] = join(world.dir, "index");
  try {
    const { code, stdout } = await git(["rev-parse", "--show-toplevel"], { cwd: world.root });
    expect({ code, stdout: stdout.trim() }).toEqual({ code: 0, stdout: world.root });
  } finally {
    delete process.env["GIT_DIR"];
    delete process.env["GIT_INDEX_FILE"];
  }
  expect((await git(["no-such-command"], { cwd: world.root })).code).toBe(1);
  expect(await git(["status"], { cwd: join(world.dir, "missing") })).toMatchObject({ code: null, stdout: "" });
  expect((await git(["hash-object", "--stdin"], { cwd: world.root, input: "x" })).code).toBe(0);
});

test("a git that takes too long is ended with everything it started", async () => {
  await using world = await newWorld();
  world.git("config", "alias.hang", `!sleep 600 & echo $$ > "${world.dir}/pid"; wait`);
  const { code } = await git(["hang"], { cwd: world.root, timeoutMs: 300 });
  expect(code).not.toBe(0);
  expect(existsSync(join(world.dir, "pid"))).toBe(true);
});

test("output is split at NUL only, and git's last line is found", () => {
  expect(splitNul("a b\0c\nd\0")).toEqual(["a b", "c\nd"]);
  expect(splitNul("")).toEqual([]);
  expect(lastLine("one\n  two \n\n", "x")).toBe("two");
  expect(lastLine("\n", "x")).toBe("x");
});

test("a broken loose reference is no branch", async () => {
  await using world = await newWorld();
  writeFileSync(join(world.root, ".git/refs/heads/broken"), "not an oid\n");
  expect(readBranchTip(world.root, "broken")).toBeNull();
  appendFileSync(join(world.root, ".git/HEAD"), "");
  expect(readHead(world.root)).toEqual({ branch: "main" });
});

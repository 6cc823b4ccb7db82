// A merge lands whole or changes nothing, whoever has the target checked out.

import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  abortMerge,
  checkoutReady,
  findMergeCheckout,
  operationInProgress,
  unmergedPaths,
} from "../../src/git/checkout.ts";
import { undoFailedMerge } from "../../src/git/leftover.ts";
import {
  conflictReason,
  guardedMergeArgv,
  mergeArgv,
  mergeByRef,
  movedCode,
  overwriteReason,
  planMerge,
  syncArgv,
} from "../../src/git/merge.ts";
import { overwrittenPaths } from "../../src/git/overwrite.ts";
import { git, startGatedGit } from "../../src/git/run.ts";
import { identify } from "../../src/system/process.ts";
import { newWorld, type World } from "../support/repo.ts";

const branch = "sloop/TICK-1-a1-0a0a0a0a";

/** Commits `files` on `on` without touching any checkout's place for longer than needed. */
function commitOn(world: World, on: string, files: Record<string, string>): string {
  const path = join(world.dir, "scratch");
  world.git("worktree", "add", "-q", "--force", ...(on === "main" ? ["--detach", path, "main"] : [path, on]));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(path, name, ".."), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  world.git("-C", path, "add", "-A");
  world.git("-C", path, "commit", "-q", "-m", `on ${on}`);
  const tip = world.git("-C", path, "rev-parse", "HEAD");
  world.git("worktree", "remove", "--force", path);
  return tip;
}

async function diverged(files: { branch: Record<string, string>; main: Record<string, string> }) {
  const world = await newWorld({ name: "repö with blanks" });
  world.git("branch", branch);
  const branchTip = commitOn(world, branch, files.branch);
  for (const [name, text] of Object.entries(files.main)) world.write(name, text);
  const targetTip = Object.keys(files.main).length === 0 ? world.git("rev-parse", "main") : world.commit("main");
  return { world, branchTip, targetTip };
}

const ask = (world: World, targetTip: string, branchTip: string, ffOnly = false) =>
  planMerge({ root: world.root, targetTip, branchTip, ffOnly });

test("a plan is nothing, fast-forward, a tree, a conflict or a refusal, and touches nothing", async () => {
  const { world, branchTip, targetTip } = await diverged({ branch: { a: "1\n" }, main: { b: "2\n" } });
  await using _ = world;
  const before = world.git("status", "--porcelain", "--branch");
  const base = world.git("merge-base", branchTip, targetTip);
  expect(await ask(world, targetTip, base)).toEqual({ kind: "nothing" });
  expect(await ask(world, base, branchTip)).toEqual({ kind: "fast_forward" });
  expect(await ask(world, base, branchTip, true)).toEqual({ kind: "fast_forward" });
  expect(await ask(world, targetTip, branchTip, true)).toMatchObject({ kind: "refused" });
  expect(await ask(world, targetTip, "1".repeat(40))).toMatchObject({ kind: "refused" });
  const plan = await ask(world, targetTip, branchTip);
  expect(plan).toMatchObject({ kind: "merge_tree" });
  if (plan.kind === "merge_tree") expect(world.git("ls-tree", "--name-only", plan.tree)).toBe("README.md\na\nb");
  expect(world.git("status", "--porcelain", "--branch")).toBe(before);
});

test("conflicts are named by path, blanks and umlauts whole, without a checkout noticing", async () => {
  const names = ["plain", "with blank", "sub/ümlaut", "line\nbreak"];
  const files = (text: string) => Object.fromEntries(names.map((name) => [name, text]));
  const { world, branchTip, targetTip } = await diverged({ branch: files("theirs\n"), main: files("ours\n") });
  await using _ = world;
  const plan = await ask(world, targetTip, branchTip);
  expect(plan.kind).toBe("conflict");
  if (plan.kind === "conflict") expect(plan.paths.toSorted()).toEqual(names.toSorted());
  expect(world.git("status", "--porcelain")).toBe("");
  expect(operationInProgress(world.root)).toBeNull();
});

test("unrelated histories are refused with git's own words", async () => {
  await using world = await newWorld();
  const orphan = world.git("commit-tree", "-m", "orphan", world.git("hash-object", "-t", "tree", "-w", "/dev/null"));
  const plan = await ask(world, world.git("rev-parse", "main"), orphan);
  expect(plan).toEqual({ kind: "refused", reason: expect.stringContaining("unrelated") });
});

test("a reason names at most ten paths", () => {
  const paths = Array.from({ length: 12 }, (_, index) => `p${index}`);
  expect(conflictReason(paths.slice(0, 2))).toBe("conflicts in p0, p1");
  expect(conflictReason(paths)).toBe("conflicts in p0, p1, p2, p3, p4, p5, p6, p7, p8, p9 and 2 more");
});

test("a target nobody has checked out moves by compare-and-swap, with sloop as author", async () => {
  const { world, branchTip, targetTip } = await diverged({ branch: { a: "1\n" }, main: { b: "2\n" } });
  await using _ = world;
  world.git("checkout", "-q", "--detach");
  world.git("config", "author.name", "Somebody");
  world.git("config", "committer.email", "somebody@example.invalid");
  expect(findMergeCheckout(world.root, "main")).toBeNull();
  const plan = await ask(world, targetTip, branchTip);
  if (plan.kind !== "merge_tree") throw new Error("expected a tree");
  const merge = { root: world.root, target: "main", targetTip, branch, branchTip, plan };
  const moved = await mergeByRef(merge);
  expect(moved).toEqual({ kind: "moved", tip: world.git("rev-parse", "main") });
  expect(world.git("show", "-s", "--format=%an|%ae|%cn|%ce|%s|%P", "main")).toBe(
    `sloop|sloop@sloop.invalid|sloop|sloop@sloop.invalid|Merge run branch '${branch}'|${targetTip} ${branchTip}`,
  );
  expect(await mergeByRef(merge)).toEqual({ kind: "lost" });
  expect(world.git("rev-parse", "main")).toBe(moved.kind === "moved" ? moved.tip : "");
});

test("a fast-forward of a reference makes no commit; a refusing hook fails it with its words", async () => {
  const { world, branchTip, targetTip } = await diverged({ branch: { a: "1\n" }, main: {} });
  await using _ = world;
  world.git("checkout", "-q", "--detach");
  const hook = join(world.root, ".git/hooks/reference-transaction");
  mkdirSync(join(world.root, ".git/hooks"), { recursive: true });
  writeFileSync(hook, '#!/bin/sh\n[ "$1" = prepared ] && { echo "frozen today" >&2; exit 1; }\nexit 0\n');
  chmodSync(hook, 0o755);
  const merge = {
    root: world.root,
    target: "main",
    targetTip,
    branch,
    branchTip,
    plan: { kind: "fast_forward" as const },
  };
  expect(await mergeByRef(merge)).toMatchObject({ kind: "failed" });
  expect(world.git("rev-parse", "main")).toBe(targetTip);
  chmodSync(hook, 0o644);
  expect(await mergeByRef(merge)).toEqual({ kind: "moved", tip: branchTip });
  expect(world.git("rev-parse", "main")).toBe(branchTip);
});

test("the merge checkout is found in the root, in a linked worktree, while rebasing, or nowhere", async () => {
  await using world = await newWorld({ name: "repö" });
  world.git("branch", "release");
  expect(findMergeCheckout(world.root, "main")).toBe(world.root);
  expect(findMergeCheckout(world.root, "release")).toBeNull();
  const linked = join(world.dir, "linked ü");
  world.git("worktree", "add", "-q", linked, "release");
  expect(findMergeCheckout(world.root, "release")).toBe(linked);
  expect(findMergeCheckout(linked, "main")).toBe(world.root);
  Bun.spawnSync(["rm", "-rf", linked]);
  expect(findMergeCheckout(world.root, "release")).toBeNull();
  world.write("f", "1");
  world.commit("one");
  world.git("checkout", "-q", "-b", "topic", "HEAD~1");
  world.write("f", "2");
  world.commit("two");
  Bun.spawnSync(["git", "rebase", "main"], { cwd: world.root });
  expect(findMergeCheckout(world.root, "topic")).toBe(world.root);
  expect(await checkoutReady(world.root)).toContain("a rebase is in progress");
});

test("a bare repository's own HEAD is no checkout", async () => {
  await using world = await newWorld();
  world.git("config", "core.bare", "true");
  expect(findMergeCheckout(world.root, "main")).toBeNull();
});

test("a checkout is ready with unstaged and untracked files, and says what is in the way otherwise", async () => {
  await using world = await newWorld({ name: "repö x" });
  world.write("README.md", "edited\n");
  world.write("untracked", "x");
  expect(await checkoutReady(world.root)).toBeNull();
  world.git("add", "README.md");
  expect(await checkoutReady(world.root)).toBe(`${world.root} is not ready: it has staged changes`);
  world.git("reset", "-q");
  world.write(".git/index.lock", "");
  expect(await checkoutReady(world.root)).toContain("index.lock");
  expect(existsSync(join(world.root, ".git/index.lock"))).toBe(true);
  world.git("rev-parse", "HEAD");
  Bun.spawnSync(["rm", join(world.root, ".git/index.lock")]);
  for (const [name, what] of [
    ["MERGE_HEAD", "a merge"],
    ["CHERRY_PICK_HEAD", "a cherry-pick"],
    ["REVERT_HEAD", "a revert"],
    ["rebase-apply", "a rebase"],
    ["sequencer", "a sequence"],
  ] as const) {
    world.write(`.git/${name}`, "x");
    expect(await checkoutReady(world.root)).toContain(`${what}`);
    Bun.spawnSync(["rm", join(world.root, ".git", name)]);
  }
  expect(await checkoutReady(join(world.dir, "none"))).toContain("no git checkout");
});

test("a linked worktree's operations are its own", async () => {
  await using world = await newWorld();
  const linked = join(world.dir, "linked");
  world.git("worktree", "add", "-q", "-b", "side", linked);
  world.write(".git/MERGE_HEAD", world.git("rev-parse", "HEAD"));
  expect(await checkoutReady(linked)).toBeNull();
  expect(await checkoutReady(world.root)).toContain("MERGE_HEAD");
});

async function runMerge(world: World, branchTip: string, ffOnly = false) {
  const started = startGatedGit(mergeArgv({ target: "main", branch, branchTip, ffOnly }), world.root);
  expect(identify(started.pid, started.pidStartTime)).toBe("matches");
  started.open();
  return started.exited;
}

test("behind its gate git merges into a checkout, keeping unstaged edits, as sloop", async () => {
  const { world, branchTip, targetTip } = await diverged({ branch: { "ä b": "1\n" }, main: { b: "2\n" } });
  await using _ = world;
  world.write("README.md", "my edit\n");
  expect(await runMerge(world, branchTip)).toMatchObject({ code: 0, signal: null });
  expect(world.git("show", "-s", "--format=%an|%ce|%P", "main")).toBe(
    `sloop|sloop@sloop.invalid|${targetTip} ${branchTip}`,
  );
  expect(world.read("README.md")).toBe("my edit\n");
  expect(world.read("ä b")).toBe("1\n");
});

test("git refuses to overwrite somebody's edit, and its last words are kept", async () => {
  const { world, branchTip, targetTip } = await diverged({ branch: { "README.md": "theirs\n" }, main: { b: "2\n" } });
  await using _ = world;
  world.write("README.md", "my edit\n");
  const ended = await runMerge(world, branchTip);
  expect(ended.code).not.toBe(0);
  expect(ended.output).toContain("would be overwritten by merge");
  expect(world.git("rev-parse", "main")).toBe(targetTip);
  expect(world.read("README.md")).toBe("my edit\n");
  const checkpoint = { targetHead: targetTip, branchTip, completedTarget: null };
  expect(await undoFailedMerge(world.root, world.root, checkpoint)).toBeNull();
  expect(await checkoutReady(world.root)).toBeNull();
});

test("ff_only makes no merge commit and fails when the target moved on", async () => {
  const { world, branchTip, targetTip } = await diverged({ branch: { a: "1\n" }, main: { b: "2\n" } });
  await using _ = world;
  expect((await runMerge(world, branchTip, true)).code).not.toBe(0);
  expect(world.git("rev-parse", "main")).toBe(targetTip);
});

test("a gate that is never opened changes nothing", async () => {
  const { world, branchTip, targetTip } = await diverged({ branch: { a: "1\n" }, main: { b: "2\n" } });
  await using _ = world;
  const started = startGatedGit(mergeArgv({ target: "main", branch, branchTip, ffOnly: false }), world.root);
  expect(await started.stop(1000)).toBe(true);
  expect((await started.exited).signal).toBe("SIGTERM");
  expect(world.git("rev-parse", "main")).toBe(targetTip);
});

test("a sync that conflicts names its paths and is given up without a trace", async () => {
  const { world, targetTip } = await diverged({ branch: { "ä b": "theirs\n" }, main: { "ä b": "ours\n" } });
  await using _ = world;
  const path = join(world.dir, "wörk tree");
  world.git("worktree", "add", "-q", path, branch);
  const [, ...args] = syncArgv(branch, targetTip);
  expect((await git(args, { cwd: path, write: true })).code).toBe(1);
  expect(await unmergedPaths(path)).toEqual(["ä b"]);
  expect(await abortMerge(path)).toBeNull();
  expect(operationInProgress(path)).toBeNull();
  expect(world.git("-C", path, "status", "--porcelain")).toBe("");
  expect(await abortMerge(path)).toContain("MERGE_HEAD");
});

test("edited and untracked files that a merge would overwrite are known beforehand", async () => {
  const { world, branchTip, targetTip } = await diverged({
    branch: { "README.md": "theirs\n", "nëw file": "theirs\n", calm: "x\n" },
    main: { b: "2\n" },
  });
  await using _ = world;
  const plan = await ask(world, targetTip, branchTip);
  if (plan.kind !== "merge_tree") throw new Error("expected a tree");
  const question = { checkout: world.root, from: targetTip, to: plan.tree };
  expect(await overwrittenPaths(question)).toEqual([]);
  world.write("b", "edited, but not by the branch\n");
  expect(await overwrittenPaths(question)).toEqual([]);
  world.write("README.md", "mine\n");
  world.write("nëw file", "mine\n");
  expect(await overwrittenPaths(question)).toEqual(["README.md", "nëw file"]);
  expect(overwriteReason("/r", ["a", "b"])).toBe("files in /r would be overwritten by merge: a, b");
});

test("a git that hangs in a hook or a merge driver is ended, and the reason says so", async () => {
  const { world, branchTip, targetTip } = await diverged({ branch: { f: "theirs\n" }, main: { f: "ours\n" } });
  await using _ = world;
  world.write(".git/info/attributes", "f merge=hangs\n");
  world.git("config", "merge.hangs.driver", "sleep 600");
  const question = { root: world.root, targetTip, branchTip, ffOnly: false, timeoutMs: 500 };
  expect(await planMerge(question)).toEqual({ kind: "refused", reason: expect.stringContaining("hang") });
  world.git("checkout", "-q", "--detach");
  mkdirSync(join(world.root, ".git/hooks"), { recursive: true });
  writeFileSync(join(world.root, ".git/hooks/reference-transaction"), "#!/bin/sh\nsleep 600\n", { mode: 0o755 });
  const plan = { kind: "fast_forward" as const };
  const merge = { root: world.root, target: "main", targetTip, branch, branchTip, plan, timeoutMs: 500 };
  expect(await mergeByRef(merge)).toEqual({ kind: "failed", reason: expect.stringContaining("hang") });
  expect(world.git("rev-parse", "main")).toBe(targetTip);
  expect(existsSync(join(world.root, ".git/refs/heads/main.lock"))).toBe(false);
}, 30_000);

test("behind its guard git merges only where HEAD is the target at the tip that was looked at", async () => {
  const { world, branchTip, targetTip } = await diverged({ branch: { a: "1\n" }, main: { b: "2\n" } });
  await using _ = world;
  world.git("branch", "twin");
  const argv = guardedMergeArgv({ target: "main", targetTip, branch, branchTip, ffOnly: false });
  const run = async () => {
    const started = startGatedGit(argv, world.root);
    started.open();
    return (await started.exited).code;
  };
  for (const where of ["twin", "--detach"]) {
    world.git("checkout", "-q", where);
    expect([where, await run()]).toEqual([where, movedCode]);
  }
  world.git("checkout", "-q", "main");
  world.write("more", "x\n");
  const tip = world.commit("more");
  expect(await run()).toBe(movedCode);
  expect(world.git("rev-parse", "main", "twin")).toBe(`${tip}\n${targetTip}`);
  // A branch that is another name of the target is the target.
  world.git("reset", "-q", "--hard", targetTip);
  world.git("symbolic-ref", "refs/heads/alias", "refs/heads/main");
  world.git("symbolic-ref", "HEAD", "refs/heads/alias");
  expect(await run()).toBe(0);
}, 30_000);

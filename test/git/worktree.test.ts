// A run's worktree is made whole or not at all; what is uncommitted in it outlives it.

import { expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { keepUncommitted, readWip } from "../../src/git/keep.ts";
import { dropKept, keepTip } from "../../src/git/kept-refs.ts";
import { addWorktree, removeWorktree, worktreePath } from "../../src/git/worktree.ts";
import { newWorld, type World } from "../support/repo.ts";

const branch = "sloop/TICK-1-a1-0a0a0a0a";
const runId = "0a0a0a0a7d4e5061a2b3c4d5e6f70819";

function request(world: World, changes: { path?: string; branch?: string; startPoint?: string } = {}) {
  const path = worktreePath(world.root, ".worktrees", "0a0a0a0a");
  return { root: world.root, path, branch, startPoint: world.git("rev-parse", "main"), ...changes };
}

function listed(world: World): string[] {
  return world
    .git("worktree", "list", "--porcelain")
    .split("\n")
    .filter((line) => line.startsWith("worktree "));
}

test("a worktree starts at the commit asked for, on its own branch, without an upstream", async () => {
  await using world = await newWorld({ name: "repö with blanks" });
  const first = world.git("rev-parse", "HEAD");
  world.write("later", "x");
  world.commit("later");
  world.git("config", "branch.autoSetupMerge", "always");
  const asked = request(world, { startPoint: first });
  expect(await addWorktree(asked)).toEqual({ ok: true });
  expect(world.git("-C", asked.path, "rev-parse", "HEAD")).toBe(first);
  expect(world.git("-C", asked.path, "symbolic-ref", "--short", "HEAD")).toBe(branch);
  expect(world.git("for-each-ref", "--format=%(upstream)", `refs/heads/${branch}`)).toBe("");
  // Asked again, what is there counts as made.
  expect(await addWorktree(asked)).toEqual({ ok: true });
});

test("a directory that is something else is not taken, and not touched", async () => {
  await using world = await newWorld();
  const asked = request(world);
  mkdirSync(asked.path, { recursive: true });
  writeFileSync(join(asked.path, "mine"), "x");
  expect(await addWorktree(asked)).toMatchObject({ ok: false });
  expect(readdirSync(asked.path)).toEqual(["mine"]);
  rmSync(asked.path, { recursive: true });
  world.git("worktree", "add", "-q", "-b", "other", asked.path);
  expect(await addWorktree(asked)).toMatchObject({ ok: false });
  expect(world.git("-C", asked.path, "symbolic-ref", "--short", "HEAD")).toBe("other");
});

test("a branch that exists is refused and stays", async () => {
  await using world = await newWorld();
  world.git("branch", branch);
  expect(await addWorktree(request(world))).toEqual({ ok: false, problem: expect.stringContaining(branch) });
  expect(world.git("rev-parse", branch)).toBe(world.git("rev-parse", "main"));
  expect(existsSync(request(world).path)).toBe(false);
});

test("a failed creation leaves neither directory nor branch nor record", async () => {
  await using world = await newWorld();
  const hook = join(world.root, ".git/hooks/post-checkout");
  mkdirSync(join(world.root, ".git/hooks"), { recursive: true });
  // A hook that only fails leaves a whole checkout, which is taken; one that spoils it does not.
  writeFileSync(hook, "#!/bin/sh\necho spoilt > README.md\necho 'hook says no' >&2\nexit 1\n");
  chmodSync(hook, 0o755);
  const refused = await addWorktree(request(world));
  expect(refused).toEqual({ ok: false, problem: "hook says no" });
  expect(existsSync(request(world).path)).toBe(false);
  expect(world.git("branch", "--list", branch)).toBe("");
  expect(listed(world)).toHaveLength(1);
  rmSync(hook);
  expect(await addWorktree(request(world, { startPoint: "1".repeat(40) }))).toMatchObject({ ok: false });
  expect(world.git("branch", "--list", branch)).toBe("");
  writeFileSync(join(world.root, "file"), "");
  expect(await addWorktree(request(world, { path: join(world.root, "file/below") }))).toMatchObject({ ok: false });
  expect(world.git("branch", "--list", branch)).toBe("");
});

test("many at a time in one repository all succeed", async () => {
  await using world = await newWorld();
  const asked = Array.from({ length: 8 }, (_, index) =>
    request(world, { path: join(world.root, `.worktrees/${index}`), branch: `sloop/T-${index}` }),
  );
  const made = await Promise.all(asked.map(addWorktree));
  expect(made.every(({ ok }) => ok)).toBe(true);
  const gone = await Promise.all(
    asked.map(({ root, path, branch: name }) => removeWorktree({ root, path, branch: name })),
  );
  expect(gone.every(({ ok }) => ok)).toBe(true);
  expect(listed(world)).toHaveLength(1);
  expect(world.git("for-each-ref", "refs/heads/sloop/")).toBe("");
});

test("removal takes a dirty and an already deleted worktree, not one that a person locked; the branch only if asked", async () => {
  await using world = await newWorld();
  const asked = request(world);
  await addWorktree(asked);
  writeFileSync(join(asked.path, "untracked"), "x");
  writeFileSync(join(asked.path, "README.md"), "changed");
  world.git("worktree", "lock", asked.path);
  expect(await removeWorktree({ root: world.root, path: asked.path, branch, saved: true })).toMatchObject({
    ok: false,
  });
  expect(existsSync(join(asked.path, "untracked"))).toBe(true);
  world.git("worktree", "unlock", asked.path);
  // What git leaves when it is killed in the middle of making one.
  writeFileSync(join(world.root, ".git/worktrees/0a0a0a0a/locked"), "initializing");
  expect(await removeWorktree({ root: world.root, path: asked.path, branch: null })).toEqual({ ok: true });
  expect(existsSync(asked.path)).toBe(false);
  expect(world.git("branch", "--list", "--format=%(refname:short)", branch)).toBe(branch);
  expect(await removeWorktree({ root: world.root, path: asked.path, branch })).toEqual({ ok: true });
  expect(await removeWorktree({ root: world.root, path: asked.path, branch })).toEqual({ ok: true });
  expect(world.git("branch", "--list", branch)).toBe("");
});

test("making and removing worktrees leaves those of others alone whose directory is not there now", async () => {
  await using world = await newWorld();
  const elsewhere = join(world.dir, "disk");
  world.git("worktree", "add", "-q", "-b", "mine", elsewhere);
  renameSync(elsewhere, join(world.dir, "unmounted"));
  const asked = request(world);
  expect(await addWorktree(asked)).toEqual({ ok: true });
  rmSync(asked.path, { recursive: true });
  expect(await removeWorktree({ root: world.root, path: asked.path, branch })).toEqual({ ok: true });
  expect(await addWorktree({ ...asked, startPoint: "no-such-commit" })).toMatchObject({ ok: false });
  expect(readdirSync(join(world.root, ".git/worktrees"))).toEqual(["disk"]);
  renameSync(join(world.dir, "unmounted"), elsewhere);
  expect(Bun.spawnSync(["git", "status", "--porcelain"], { cwd: elsewhere }).exitCode).toBe(0);
});

test("a directory that is no worktree is not removed", async () => {
  await using world = await newWorld();
  const path = join(world.root, ".worktrees/mine");
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "precious"), "x");
  expect(await removeWorktree({ root: world.root, path, branch: null })).toMatchObject({ ok: false });
  expect(readFileSync(join(path, "precious"), "utf8")).toBe("x");
});

async function withWorktree(world: World): Promise<string> {
  world.write(".gitignore", "ignored\n.worktrees\n");
  world.write("kept.txt", "old\n");
  world.write("gone.txt", "old\n");
  world.commit("files");
  const asked = request(world);
  expect(await addWorktree(asked)).toEqual({ ok: true });
  return asked.path;
}

test("changed, new, deleted and staged files are kept as one commit; ignored ones are not; nothing is touched", async () => {
  await using world = await newWorld({ name: "repö x" });
  const path = await withWorktree(world);
  writeFileSync(join(path, "kept.txt"), "new\n");
  rmSync(join(path, "gone.txt"));
  mkdirSync(join(path, "sub dir"));
  writeFileSync(join(path, "sub dir/nëw file"), "fresh\n");
  writeFileSync(join(path, "staged"), "staged\n");
  world.git("-C", path, "add", "staged");
  writeFileSync(join(path, "ignored"), "secret\n");
  const status = world.git("-C", path, "status", "--porcelain");
  const index = readFileSync(join(world.root, ".git/worktrees/0a0a0a0a/index"));
  const kept = await keepUncommitted({ root: world.root, worktree: path, runId });
  expect(kept).toEqual({ ref: `refs/sloop/wip/${runId}`, files: 4 });
  expect(await readWip(world.root, runId)).toEqual(kept);
  expect(readFileSync(join(world.root, ".git/worktrees/0a0a0a0a/index")).equals(index)).toBe(true);
  expect(world.git("-C", path, "status", "--porcelain")).toBe(status);
  expect(readdirSync(join(world.root, ".git/worktrees/0a0a0a0a")).join()).not.toContain("sloop-wip");
  const ref = `refs/sloop/wip/${runId}`;
  expect(world.git("show", `${ref}:sub dir/nëw file`)).toBe("fresh");
  expect(world.git("show", `${ref}:kept.txt`)).toBe("new");
  expect(world.git("ls-tree", "-r", "--name-only", ref)).not.toContain("gone.txt");
  expect(world.git("ls-tree", "-r", "--name-only", ref)).not.toContain("ignored");
  expect(world.git("show", "-s", "--format=%an %ae %cn %P", ref)).toBe(
    `sloop sloop@sloop.invalid sloop ${world.git("rev-parse", branch)}`,
  );
});

test("a clean worktree, or none, keeps nothing", async () => {
  await using world = await newWorld();
  const path = await withWorktree(world);
  writeFileSync(join(path, "ignored"), "x");
  expect(await keepUncommitted({ root: world.root, worktree: path, runId })).toBeNull();
  expect(await keepUncommitted({ root: world.root, worktree: join(world.dir, "none"), runId })).toBeNull();
  expect(await readWip(world.root, runId)).toBeNull();
});

test("a half-merged worktree with conflicts is kept as it stands, and no hook is run", async () => {
  await using world = await newWorld();
  const path = await withWorktree(world);
  writeFileSync(join(path, "kept.txt"), "theirs\n");
  world.git("-C", path, "commit", "-qam", "theirs");
  world.write("kept.txt", "ours\n");
  world.commit("ours");
  Bun.spawnSync(["git", "merge", "main"], { cwd: path });
  expect(world.git("-C", path, "status", "--porcelain")).toContain("UU kept.txt");
  const hook = join(world.root, ".git/hooks/reference-transaction");
  mkdirSync(join(world.root, ".git/hooks"), { recursive: true });
  writeFileSync(hook, `#!/bin/sh\necho ran >> "${world.dir}/hooked"\nexit 1\n`);
  chmodSync(hook, 0o755);
  const kept = await keepUncommitted({ root: world.root, worktree: path, runId });
  expect(kept?.files).toBe(1);
  expect(existsSync(join(world.dir, "hooked"))).toBe(false);
  rmSync(hook);
  expect(world.git("show", `${kept?.ref}:kept.txt`)).toContain("<<<<<<<");
  expect(world.git("-C", path, "status", "--porcelain")).toContain("UU kept.txt");
});

test("executable bits are kept", async () => {
  await using world = await newWorld();
  const path = await withWorktree(world);
  writeFileSync(join(path, "tool"), "#!/bin/sh\n");
  chmodSync(join(path, "tool"), 0o755);
  await keepUncommitted({ root: world.root, worktree: path, runId });
  expect(world.git("ls-tree", `refs/sloop/wip/${runId}`, "tool")).toStartWith("100755");
  expect(statSync(join(path, "tool")).mode & 0o111).toBe(0o111);
});

test("a tip is kept only when nothing else reaches it, and both references can be dropped", async () => {
  await using world = await newWorld();
  const path = await withWorktree(world);
  expect(await keepTip({ root: world.root, branch, runId })).toBeNull();
  writeFileSync(join(path, "kept.txt"), "work\n");
  world.git("-C", path, "commit", "-qam", "work");
  const tip = world.git("rev-parse", branch);
  world.git("tag", "v1", branch);
  expect(await keepTip({ root: world.root, branch, runId })).toBeNull();
  world.git("tag", "-d", "v1");
  writeFileSync(join(path, "more"), "x");
  // The commit of uncommitted files reaches the tip too, but goes on its own terms.
  await keepUncommitted({ root: world.root, worktree: path, runId });
  expect(await keepTip({ root: world.root, branch, runId })).toBe(`refs/sloop/kept/${runId}`);
  expect(world.git("rev-parse", `refs/sloop/kept/${runId}`)).toBe(tip);
  await removeWorktree({ root: world.root, path, branch });
  expect(world.git("cat-file", "-t", tip)).toBe("commit");
  await dropKept(world.root, runId);
  await dropKept(world.root, runId);
  expect(world.git("for-each-ref", "refs/sloop/")).toBe("");
  expect(await keepTip({ root: world.root, branch, runId })).toBeNull();
});

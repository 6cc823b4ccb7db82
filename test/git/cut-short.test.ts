// What a git killed in the middle of a merge left is taken back, path by path; what a person did meanwhile is not touched.

import { expect, test } from "bun:test";
import { existsSync, lstatSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { undoFailedMerge } from "../../src/git/leftover.ts";
import { newWorld, type World } from "../support/repo.ts";

const branch = "sloop/TICK-1-a1-0a0a0a0a";
const big = "a line of a file that takes a while to write\n".repeat(1000);

type Case = { world: World; targetHead: string; branchTip: string };

/** The branch changes files of every kind; the target may have moved on. */
async function prepared(moved: boolean): Promise<Case> {
  const world = await newWorld({ name: "repö x" });
  for (const name of ["edited", "sub/dropped", "folder", '"quoted', "line\nbreak", "kept"]) world.write(name, "old\n");
  world.commit("files");
  world.git("checkout", "-q", "-b", branch);
  for (const name of ["edited", '"quoted', "line\nbreak"]) world.write(name, big);
  rmSync(join(world.root, "sub"), { recursive: true });
  rmSync(join(world.root, "folder"));
  world.write("folder/inner", "new\n");
  world.write("new/deep/added", "new\n");
  symlinkSync("edited", join(world.root, "link"));
  const branchTip = world.commit("run");
  world.git("checkout", "-q", "main");
  if (moved) world.write("other", "x\n");
  const targetHead = moved ? world.commit("moved") : world.git("rev-parse", "HEAD");
  return { world, targetHead, branchTip };
}

const undo = ({ world, targetHead, branchTip }: Case) =>
  undoFailedMerge(world.root, world.root, { targetHead, branchTip, completedTarget: null });

test("files written, half written, added and removed are as they were; edits elsewhere stay", async () => {
  for (const moved of [false, true]) {
    const at = await prepared(moved);
    await using _ = at.world;
    const { world } = at;
    world.write("kept", "a person's edit\n");
    world.write("notes", "untracked\n");
    const before = world.git("status", "--porcelain");
    world.write("edited", big);
    world.write('"quoted', big.slice(0, 5000));
    world.write("line\nbreak", "");
    rmSync(join(world.root, "sub"), { recursive: true });
    rmSync(join(world.root, "folder"));
    world.write("folder/inner", "new\n");
    world.write("new/deep/added", "ne");
    symlinkSync("edited", join(world.root, "link"));
    expect(await undo(at)).toBeNull();
    expect(world.git("status", "--porcelain")).toBe(before);
    expect([existsSync(join(world.root, "new")), lstatSync(join(world.root, "folder")).isFile()]).toEqual([
      false,
      true,
    ]);
    expect([world.read("kept"), world.read("sub/dropped")]).toEqual(["a person's edit\n", "old\n"]);
  }
}, 30_000);

test("a whole merge that was staged and not committed is taken back, edits elsewhere stay", async () => {
  for (const moved of [false, true]) {
    const at = await prepared(moved);
    await using _ = at.world;
    const { world } = at;
    world.write("kept", "a person's edit\n");
    world.git("merge", "-q", "--no-commit", "--no-ff", at.branchTip);
    rmSync(join(world.root, ".git/MERGE_HEAD"));
    expect(await undo(at)).toBeNull();
    expect(world.git("status", "--porcelain")).toBe(" M kept");
    expect(existsSync(join(world.root, ".git/AUTO_MERGE"))).toBe(false);
  }
}, 30_000);

test("what a person did there meanwhile stays: an edit, something staged, a lock, a commit", async () => {
  const at = await prepared(true);
  await using _ = at.world;
  const { world } = at;
  world.write("edited", "a person's own\n");
  world.write("new/deep/added", "a person's own\n");
  expect(await undo(at)).toBeNull();
  expect([world.read("edited"), world.read("new/deep/added")]).toEqual(["a person's own\n", "a person's own\n"]);
  world.write(".git/index.lock", "");
  world.write("edited", big);
  expect(await undo(at)).toContain("index.lock");
  expect([world.read("edited"), existsSync(join(world.root, ".git/index.lock"))]).toEqual([big, true]);
  rmSync(join(world.root, ".git/index.lock"));
  world.git("add", "edited");
  world.write("precious", "mine\n");
  world.git("add", "precious");
  expect(await undo(at)).toContain("something else was staged");
  world.git("commit", "-q", "-m", "a person's");
  expect(await undo(at)).toBeNull();
  expect(world.read("edited")).toBe(big);
}, 30_000);

test("a checkout with nothing to take back is left as it is", async () => {
  const at = await prepared(true);
  await using _ = at.world;
  mkdirSync(join(at.world.root, "empty"));
  at.world.write("precious", "mine\n");
  at.world.git("add", "precious");
  const before = at.world.git("status", "--porcelain");
  expect(await undo(at)).toBeNull();
  expect(at.world.git("status", "--porcelain")).toBe(before);
});

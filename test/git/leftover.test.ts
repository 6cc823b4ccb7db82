// What an interrupted merge left behind is judged by the table, first match first, and judging changes nothing.

import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { abortMerge, checkoutReady } from "../../src/git/checkout.ts";
import {
  inspectLeftoverMerge,
  type LeftoverVerdict,
  mergeInProgress,
  undoFailedMerge,
} from "../../src/git/leftover.ts";
import { newWorld, type World } from "../support/repo.ts";

const branch = "sloop/TICK-1-a1-0a0a0a0a";

type Case = { world: World; branchTip: string; targetHead: string };

/** `main` in the root and the run's branch have diverged without conflict. */
async function diverged(): Promise<Case> {
  const world = await newWorld({ name: "repö x" });
  world.git("checkout", "-q", "-b", branch);
  world.write("work.txt", "run\n");
  const branchTip = world.commit("run");
  world.git("checkout", "-q", "main");
  world.write("other.txt", "main\n");
  const targetHead = world.commit("main");
  return { world, branchTip, targetHead };
}

function judge(at: Case, changes: { checkout?: string | null; completedTarget?: string; branchTip?: string } = {}) {
  const { world, targetHead } = at;
  const checkout = changes.checkout === undefined ? world.root : changes.checkout;
  const branchTip = changes.branchTip ?? at.branchTip;
  const checkpoint = { targetHead, branchTip, completedTarget: changes.completedTarget ?? null };
  return inspectLeftoverMerge({ root: world.root, checkout, target: "main", branch, checkpoint });
}

function snapshot(world: World): string {
  return `${world.git("status", "--porcelain", "--branch")} ${world.git("rev-parse", "HEAD")} ${mergeInProgress(world.root)}`;
}

async function expectVerdict(at: Case, verdict: LeftoverVerdict, changes = {}): Promise<void> {
  const before = snapshot(at.world);
  expect(await judge(at, changes)).toBe(verdict);
  expect(snapshot(at.world)).toBe(before);
}

test("nothing happened yet: retry, but not over somebody's staged change", async () => {
  const at = await diverged();
  await using _ = at.world;
  await expectVerdict(at, "retry");
  at.world.write("README.md", "unstaged\n");
  await expectVerdict(at, "retry");
  at.world.git("add", "README.md");
  await expectVerdict(at, "unsafe");
});

test("our merge cut short before its commit is given up and retried", async () => {
  const at = await diverged();
  await using _ = at.world;
  at.world.git("merge", "-q", "--no-commit", at.branchTip);
  expect(mergeInProgress(at.world.root)).toBe(true);
  await expectVerdict(at, "abort_then_retry");
  expect(await abortMerge(at.world.root)).toBeNull();
  await expectVerdict(at, "retry");
});

test("a merge somebody has staged something into is not ours to give up", async () => {
  const at = await diverged();
  await using _ = at.world;
  at.world.git("merge", "-q", "--no-commit", at.branchTip);
  at.world.write("precious.txt", "mine\n");
  at.world.git("add", "precious.txt");
  await expectVerdict(at, "unsafe");
  const checkpoint = { targetHead: at.targetHead, branchTip: at.branchTip, completedTarget: null };
  expect(await undoFailedMerge(at.world.root, at.world.root, checkpoint)).toContain("staged");
  expect(mergeInProgress(at.world.root)).toBe(true);
});

test("somebody else's merge, a lock file or unmerged entries are unsafe", async () => {
  const at = await diverged();
  await using _ = at.world;
  at.world.git("checkout", "-q", "-b", "foreign", "main~1");
  at.world.write("foreign.txt", "x\n");
  const foreign = at.world.commit("foreign");
  at.world.git("checkout", "-q", "main");
  at.world.git("merge", "-q", "--no-commit", foreign);
  await expectVerdict(at, "unsafe");
  at.world.git("merge", "--abort");
  at.world.write(".git/index.lock", "");
  expect(await judge(at)).toBe("unsafe");
  expect(at.world.read(".git/index.lock")).toBe("");
});

test("our merge with a lock file beside it stays untouched", async () => {
  const at = await diverged();
  await using _ = at.world;
  at.world.git("merge", "-q", "--no-commit", at.branchTip);
  at.world.write(".git/index.lock", "");
  expect(await judge(at)).toBe("unsafe");
  expect(mergeInProgress(at.world.root)).toBe(true);
});

test("a landed merge is done, whether the checkpoint says so or not, also when the target moved on", async () => {
  const at = await diverged();
  await using _ = at.world;
  at.world.git("merge", "-q", "-m", "merge", at.branchTip);
  await expectVerdict(at, "done");
  await expectVerdict(at, "done", { completedTarget: at.world.git("rev-parse", "HEAD") });
  at.world.write("more", "x");
  at.world.commit("more");
  await expectVerdict(at, "done");
});

test("a target that moved without the branch, or a completed merge that was taken back, is unsafe", async () => {
  const at = await diverged();
  await using _ = at.world;
  await expectVerdict(at, "unsafe", { completedTarget: at.targetHead });
  at.world.write("more", "x");
  at.world.commit("more");
  await expectVerdict(at, "unsafe");
});

test("a branch that moved, or is gone, is unsafe", async () => {
  const at = await diverged();
  await using _ = at.world;
  await expectVerdict(at, "unsafe", { branchTip: at.targetHead });
  at.world.git("branch", "-D", branch);
  await expectVerdict(at, "unsafe");
});

test("without a checkout the target's reference alone decides", async () => {
  const at = await diverged();
  await using _ = at.world;
  at.world.git("checkout", "-q", "--detach");
  at.world.write("README.md", "staged\n");
  at.world.git("add", "README.md");
  await expectVerdict(at, "retry", { checkout: null });
  at.world.git("branch", "-f", "main", at.branchTip);
  await expectVerdict(at, "done", { checkout: null });
  at.world.git("branch", "-f", "main", `${at.targetHead}~1`);
  await expectVerdict(at, "unsafe", { checkout: null });
});

test("a merge that a commit hook refused is undone whole", async () => {
  const at = await diverged();
  await using _ = at.world;
  mkdirSync(join(at.world.root, ".git/hooks"), { recursive: true });
  const hook = join(at.world.root, ".git/hooks/pre-merge-commit");
  writeFileSync(hook, "#!/bin/sh\necho 'not on a Friday' >&2\nexit 1\n");
  chmodSync(hook, 0o755);
  at.world.write("README.md", "my edit\n");
  expect(Bun.spawnSync(["git", "merge", "-q", "-m", "m", at.branchTip], { cwd: at.world.root }).exitCode).not.toBe(0);
  expect(mergeInProgress(at.world.root)).toBe(true);
  const checkpoint = { targetHead: at.targetHead, branchTip: at.branchTip, completedTarget: null };
  expect(await undoFailedMerge(at.world.root, at.world.root, checkpoint)).toBeNull();
  expect(mergeInProgress(at.world.root)).toBe(false);
  expect(at.world.git("rev-parse", "HEAD")).toBe(at.targetHead);
  expect(at.world.read("README.md")).toBe("my edit\n");
  expect(await undoFailedMerge(at.world.root, at.world.root, checkpoint)).toBeNull();
});

test("after git refused to overwrite an edit the checkout is ready again", async () => {
  const at = await diverged();
  await using _ = at.world;
  at.world.git("checkout", "-q", branch);
  at.world.write("README.md", "changed by the run\n");
  const branchTip = at.world.commit("more");
  at.world.git("checkout", "-q", "main");
  at.world.write("README.md", "my edit\n");
  const status = at.world.git("status", "--porcelain");
  expect(Bun.spawnSync(["git", "merge", "-q", "-m", "m", branchTip], { cwd: at.world.root }).exitCode).not.toBe(0);
  const checkpoint = { targetHead: at.targetHead, branchTip, completedTarget: null };
  expect(await undoFailedMerge(at.world.root, at.world.root, checkpoint)).toBeNull();
  expect(await checkoutReady(at.world.root)).toBeNull();
  expect(at.world.git("status", "--porcelain")).toBe(status);
  expect(at.world.read("README.md")).toBe("my edit\n");
});

/** Both sides changed README.md, and git has stopped there under sloop's own message. */
async function conflicted(message: string): Promise<Case> {
  const at = await diverged();
  const { world } = at;
  world.git("checkout", "-q", branch);
  world.write("README.md", "run\n");
  const branchTip = world.commit("run's README");
  world.git("checkout", "-q", "main");
  world.write("README.md", "person\n");
  world.commit("a person was faster");
  Bun.spawnSync(["git", "merge", "-q", "-m", message, branchTip], { cwd: world.root });
  expect(mergeInProgress(world.root)).toBe(true);
  return { ...at, branchTip };
}

const checkpointOf = ({ targetHead, branchTip }: Case) => ({ targetHead, branchTip, completedTarget: null });

test("our merge that met a commit made just before it is given up with its conflict", async () => {
  const at = await conflicted(`Merge run branch '${branch}'`);
  await using _ = at.world;
  at.world.write("notes", "untracked\n");
  await expectVerdict(at, "abort_then_retry");
  expect(await undoFailedMerge(at.world.root, at.world.root, checkpointOf(at))).toBeNull();
  expect(at.world.git("status", "--porcelain")).toBe("?? notes");
  expect(at.world.read("README.md")).toBe("person\n");
}, 30_000);

test("a conflict is left alone when a person made it, has begun to resolve it, or has staged something", async () => {
  const changes: [string, (world: World) => void][] = [
    [`Merge branch '${branch}'`, () => undefined],
    [`Merge run branch '${branch}'`, (world) => world.write("README.md", "half resolved\n")],
    [
      `Merge run branch '${branch}'`,
      (world) => {
        world.write("precious.txt", "mine\n");
        world.git("add", "precious.txt");
      },
    ],
  ];
  for (const [message, change] of changes) {
    const at = await conflicted(message);
    await using _ = at.world;
    change(at.world);
    await expectVerdict(at, "unsafe");
    expect(await undoFailedMerge(at.world.root, at.world.root, checkpointOf(at))).toContain("left in progress");
    expect(mergeInProgress(at.world.root)).toBe(true);
  }
}, 30_000);

// What a merge does to people's checkouts: it lands whole, or nothing is changed (engine.md 11.6-11.8).

import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { arm, hookEnv, newScene, put, reached, release, type Scene } from "../support/scene.ts";

type Stage = Record<string, unknown>;

async function mergeRow(scene: Scene): Promise<Stage> {
  const stages = (await scene.value("TICK-1-r1"))["stages"] as Stage[];
  return stages.find((row) => row["stage"] === "merge")!;
}

const inProgress = (scene: Scene) => existsSync(join(scene.root, ".git/MERGE_HEAD"));
const status = (scene: Scene) => scene.git("status", "--porcelain", "--untracked-files=no");

/** Runs one ticket with the repository changed after the agent is done and before the merge is begun. */
async function landAfter(scene: Scene, change: () => void): Promise<void> {
  arm(scene, "after-stage-build");
  await scene.data(["post", scene.ticket("first")], hookEnv(scene));
  await reached(scene, "after-stage-build");
  change();
  release(scene, "after-stage-build");
  await scene.wait("TICK-1");
}

describe("the target branch checked out in the root", () => {
  test("is fast-forwarded, unstaged edits elsewhere and untracked files untouched", async () => {
    await using scene = await newScene();
    await landAfter(scene, () => {
      scene.write("README.md", "edited by hand\n");
      scene.write("notes.txt", "mine\n");
    });
    expect(scene.git("log", "-1", "--format=%s")).toBe("work on TICK-1");
    expect(scene.read("README.md")).toBe("edited by hand\n");
    expect(scene.read("notes.txt")).toBe("mine\n");
    expect(scene.read("work-TICK-1")).toBe("work\n");
  }, 60_000);

  test("that moved on gets a merge commit of sloop's own", async () => {
    await using scene = await newScene();
    await landAfter(scene, () => {
      scene.write("other.txt", "x\n");
      scene.commit("meanwhile");
    });
    expect(scene.git("log", "-1", "--format=%an %cn %P").split(" ").slice(0, 2)).toEqual(["sloop", "sloop"]);
    expect(scene.git("log", "-1", "--format=%s")).toMatch(/^Merge run branch 'sloop\/TICK-1-a1-[0-9a-f]{8}'$/);
    expect(status(scene)).toBe("");
  }, 60_000);

  test("with a conflict stays as it was, and the reason names the path", async () => {
    await using scene = await newScene({ agent: "echo ours > README.md; git commit -qam ours" });
    await landAfter(scene, () => {
      scene.write("README.md", "theirs\n");
      scene.commit("theirs");
    });
    expect(await mergeRow(scene)).toMatchObject({ state: "failed", exit_code: 1, reason: "conflicts in README.md" });
    expect(await scene.value("TICK-1-r1")).toMatchObject({
      state: "needs_review",
      reason: "stage `merge` failed (exit 1): conflicts in README.md after agent completed with commits",
    });
    expect([scene.read("README.md"), status(scene), inProgress(scene)]).toEqual(["theirs\n", "", false]);
  }, 60_000);

  test("with staged changes is left alone; the reason names the checkout", async () => {
    await using scene = await newScene();
    await landAfter(scene, () => {
      scene.write("staged.txt", "x\n");
      scene.git("add", "staged.txt");
    });
    expect((await mergeRow(scene))["reason"]).toContain(`${scene.root} is not ready: it has staged changes`);
    expect(status(scene)).toBe("A  staged.txt");
  }, 60_000);

  test("with an edit the merge would overwrite keeps the edit", async () => {
    await using scene = await newScene({ agent: "echo ours > README.md; git commit -qam ours" });
    await landAfter(scene, () => scene.write("README.md", "precious\n"));
    expect((await mergeRow(scene))["reason"]).toBe(`files in ${scene.root} would be overwritten by merge: README.md`);
    expect([scene.read("README.md"), inProgress(scene)]).toEqual(["precious\n", false]);
    expect(scene.git("log", "--format=%s", "main")).toBe("first");
  }, 60_000);

  test("in the middle of a person's own merge is left alone", async () => {
    await using scene = await newScene();
    await landAfter(scene, () => {
      scene.git("checkout", "-q", "-b", "side");
      scene.write("README.md", "side\n");
      scene.commit("side");
      scene.git("checkout", "-q", "main");
      scene.write("README.md", "main\n");
      scene.commit("main");
      Bun.spawnSync(["git", "merge", "side"], { cwd: scene.root });
    });
    expect((await mergeRow(scene))["reason"]).toContain("a merge is in progress (MERGE_HEAD)");
    expect(inProgress(scene)).toBe(true);
  }, 60_000);

  test("whose hook refuses: nothing landed, nothing in progress, the hook's word in the reason", async () => {
    await using scene = await newScene();
    await landAfter(scene, () => {
      scene.write("other.txt", "x\n");
      scene.commit("meanwhile");
      const hook = join(scene.root, ".git/hooks/commit-msg");
      put(hook, "#!/bin/sh\necho 'not on a Sunday' >&2\nexit 1\n");
      chmodSync(hook, 0o755);
    });
    expect((await mergeRow(scene))["reason"]).toContain("not on a Sunday");
    expect([status(scene), inProgress(scene)]).toEqual(["", false]);
    expect(scene.git("log", "-1", "--format=%s", "main")).toBe("meanwhile");
  }, 60_000);
});

describe("a target branch that is checked out nowhere", () => {
  test("merge.target is moved by compare-and-swap; the checkout of another branch is not touched", async () => {
    await using scene = await newScene({ config: "merge: { target: release }" });
    scene.git("branch", "release");
    scene.write("on-main.txt", "x\n");
    scene.commit("on main");
    const head = scene.git("rev-parse", "HEAD");
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(await scene.value("TICK-1-r1")).toMatchObject({ target_branch: "release" });
    expect(scene.git("log", "--format=%s", "release")).toBe("work on TICK-1\nfirst");
    expect([scene.git("rev-parse", "HEAD"), status(scene)]).toEqual([head, ""]);
  }, 60_000);

  test("a merge commit there is sloop's own and has both parents", async () => {
    await using scene = await newScene({ config: "merge: { target: release }" });
    scene.git("branch", "release");
    await landAfter(scene, () => {
      const tree = scene.git("rev-parse", "release^{tree}");
      const commit = scene.git("commit-tree", tree, "-p", "release", "-m", "release moved");
      scene.git("update-ref", "refs/heads/release", commit);
    });
    expect(scene.git("log", "-1", "--format=%an", "release")).toBe("sloop");
    expect(scene.git("rev-list", "--count", "release")).toBe("4");
  }, 60_000);

  test("the branch fixed at the claim is merged into, whatever the root has checked out by then", async () => {
    await using scene = await newScene();
    await landAfter(scene, () => scene.git("checkout", "-q", "-b", "elsewhere"));
    expect(scene.git("log", "-1", "--format=%s", "main")).toBe("work on TICK-1");
    expect(scene.git("log", "-1", "--format=%s", "elsewhere")).toBe("first");
    expect(status(scene)).toBe("");
  }, 60_000);
});

describe("a target branch checked out in a linked worktree", () => {
  test("is merged there", async () => {
    await using scene = await newScene({ config: "merge: { target: release }" });
    const linked = join(scene.dir, "linked worktree");
    scene.git("worktree", "add", "-q", "-b", "release", linked);
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(existsSync(join(linked, "work-TICK-1"))).toBe(true);
    expect(Bun.spawnSync(["git", "status", "--porcelain"], { cwd: linked }).stdout.toString()).toBe("");
  }, 60_000);
});

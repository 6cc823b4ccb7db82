// What a merge does when a person, a hook or a cancel comes in between: it lands whole in its own branch, or nothing changed.

import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { between, has, hook, inProgress, state, status } from "../support/merging.ts";
import { newScene, type Scene } from "../support/scene.ts";

const point = "after-stage-process-checkpoint-merge";
/** One ticket, with the repository changed between two points of its run, to its end. */
async function mergeAfter(scene: Scene, name: string, change: () => void): Promise<void> {
  await between(scene, name, change);
  await scene.wait("TICK-1-r1");
}

describe("between the look at the checkout and the merge", () => {
  test("the root switched to another branch: the target alone is merged into", async () => {
    await using scene = await newScene();
    scene.git("branch", "other");
    await mergeAfter(scene, point, () => scene.git("checkout", "-q", "other"));
    expect(await state(scene)).toBe("merged");
    expect([has(scene, "main:work-TICK-1"), has(scene, "other:work-TICK-1"), status(scene)]).toEqual([true, false, ""]);
  }, 60_000);

  test("a person's commit that conflicts: found in the next try, nothing in progress", async () => {
    await using scene = await newScene({ agent: "echo ours > README.md; git commit -qam ours" });
    await mergeAfter(scene, point, () => {
      scene.write("README.md", "theirs\n");
      scene.commit("theirs");
    });
    expect((await scene.value("TICK-1-r1"))["reason"]).toContain("conflicts in README.md");
    expect([scene.read("README.md"), status(scene), inProgress(scene)]).toEqual(["theirs\n", "", []]);
  }, 60_000);

  test("a person's commit that does not: merged onto it", async () => {
    await using scene = await newScene();
    await mergeAfter(scene, point, () => {
      scene.write("other.txt", "x\n");
      scene.commit("meanwhile");
    });
    expect(await state(scene)).toBe("merged");
    expect(scene.git("log", "-1", "--format=%an")).toBe("sloop");
    expect([has(scene, "main:other.txt"), has(scene, "main:work-TICK-1"), status(scene)]).toEqual([true, true, ""]);
  }, 60_000);

  test("the target checked out, before or while its reference is moved: the checkout shows the new files", async () => {
    for (const early of [true, false]) {
      await using scene = await newScene({ config: "merge: { target: release }" });
      scene.git("branch", "release");
      // Runs within git's own update of the reference, when the old commit can still be checked out.
      const move = `[ "$1" = prepared ] && grep -q refs/heads/release && [ -z "$AGAIN" ] || exit 0
AGAIN=1 git checkout -q release`;
      await mergeAfter(scene, point, () => {
        if (early) scene.git("checkout", "-q", "release");
        else hook(scene, "reference-transaction", move);
      });
      expect(await state(scene)).toBe("merged");
      expect([scene.git("branch", "--show-current"), status(scene)]).toEqual(["release", ""]);
      expect(existsSync(join(scene.root, "work-TICK-1"))).toBe(true);
    }
  }, 60_000);

  test("the target checked out while it is moved, then edited: left alone, and the log says so", async () => {
    await using scene = await newScene({
      config: "merge: { target: release }",
      agent: "echo ours > README.md; git commit -qam ours",
    });
    scene.git("branch", "release");
    const move = `[ "$1" = prepared ] && grep -q refs/heads/release && [ -z "$AGAIN" ] || exit 0
AGAIN=1 git checkout -q release; echo precious > README.md`;
    await mergeAfter(scene, point, () => hook(scene, "reference-transaction", move));
    expect(await state(scene)).toBe("merged");
    expect(scene.read("README.md")).toBe("precious\n");
    expect(scene.events().some(({ event }) => event === "merge_checkout_left_behind")).toBe(true);
  }, 60_000);
});

describe("a person's own settings for merges", () => {
  const settings = [
    ["branch.main.mergeoptions", "--no-commit --no-ff"],
    ["branch.main.mergeoptions", "--squash"],
    ["branch.main.mergeoptions", "-s ours"],
    ["merge.ff", "only"],
  ] as const;

  test("do not make `merged` untrue, whether the target moved on or not", async () => {
    for (const [key, value] of settings) {
      for (const moved of [false, true]) {
        await using scene = await newScene();
        scene.git("config", key, value);
        await mergeAfter(scene, "after-stage-build", () => {
          if (moved) scene.write("other.txt", "x\n");
          if (moved) scene.commit("meanwhile");
        });
        expect([key, value, moved, await state(scene)]).toEqual([key, value, moved, "merged"]);
        expect([has(scene, "main:work-TICK-1"), status(scene), inProgress(scene)]).toEqual([true, "", []]);
      }
    }
  }, 120_000);

  test("merge.ff=only does not break a sync", async () => {
    const flow = `stages:
  - { name: build, action: agent }
  - { name: sync, action: { builtin: sync } }
  - { name: merge, action: { builtin: merge } }
`;
    await using scene = await newScene({ flows: { default: flow } });
    scene.git("config", "merge.ff", "only");
    await mergeAfter(scene, "after-stage-build", () => {
      scene.write("other.txt", "x\n");
      scene.commit("meanwhile");
    });
    expect(await state(scene)).toBe("merged");
  }, 60_000);
});

describe("files that git does not know, where the branch adds its own", () => {
  const cases = [
    ["an ignored file", "local.conf", "echo agent > local.conf; git add -f local.conf", "local.conf"],
    [
      "an ignored file where a folder has to be",
      "local.conf",
      "mkdir local.conf; echo a > local.conf/x; git add -f .",
      "local.conf",
    ],
    [
      "an ignored file in a folder that makes way",
      "build/local.conf",
      "echo agent > build; git add -f build",
      "build/local.conf",
    ],
  ] as const;

  for (const [what, path, agent, named] of cases) {
    test(`${what} stays as it is, and the reason names it`, async () => {
      for (const moved of [false, true]) {
        await using scene = await newScene({ agent: `${agent}; git commit -qm work` });
        scene.write(".gitignore", "local.conf\n");
        scene.commit("ignore");
        scene.write(path, "precious\n");
        await mergeAfter(scene, "after-stage-build", () => {
          if (moved) scene.write("other.txt", "x\n");
          if (moved) scene.commit("meanwhile");
        });
        expect((await scene.value("TICK-1-r1"))["reason"]).toContain(`would be overwritten by merge: ${named}`);
        expect([scene.read(path), inProgress(scene)]).toEqual(["precious\n", []]);
      }
    }, 60_000);
  }

  test("an ignored file that is the same already is in nobody's way", async () => {
    await using scene = await newScene({ agent: "echo same > local.conf; git add -f local.conf; git commit -qm work" });
    scene.write(".gitignore", "local.conf\n");
    scene.commit("ignore");
    scene.write("local.conf", "same\n");
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
  }, 60_000);
});

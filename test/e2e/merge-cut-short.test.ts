// A merge that is cut short, by a cancel, a kill or a crash: the checkout is whole, before it is merged again or given up.

import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { between, has, hook, inProgress, state, status } from "../support/merging.ts";
import { newScene, put, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

/** A filter that is slow in the root alone: it says that it is there, and goes on once `go` exists. */
function slowFilter(scene: Scene): void {
  scene.write(".gitattributes", "*.slow filter=slow\n");
  for (const name of ["a", "b", "c"]) scene.write(`${name}.slow`, "base\n");
  put(
    join(scene.dir, "slow.sh"),
    `case "$PWD" in *worktrees*) exec cat;; esac
if [ "$1" = b.slow ] && [ -e '${scene.outside}/armed' ]; then
  touch '${scene.outside}/in'; while [ ! -e '${scene.outside}/go' ]; do sleep 0.02; done
fi
exec cat
`,
  );
  scene.git("config", "filter.slow.smudge", `sh '${scene.dir}/slow.sh' %f`);
  scene.git("config", "filter.slow.clean", "cat");
  scene.git("config", "filter.slow.required", "true");
  scene.commit("slow");
  put(join(scene.outside, "armed"), "");
}

const editSlow =
  "for i in a b; do echo agent > $i.slow; done; git rm -q c.slow; echo x > g; git add -A; git commit -qm work";
const inside = (scene: Scene) => until(() => existsSync(join(scene.outside, "in")), "git in the middle of the merge");

/** Ends the git that merges, without its leave: SIGKILL spares nothing but a lock file would stay, so SIGTERM. */
async function endMerge(scene: Scene): Promise<void> {
  const [row] = scene.query<{ value: string }>(
    "select data_json as value from run_evidence where kind = 'stage_process'",
  );
  const { pid } = JSON.parse(row?.value ?? "{}") as { pid: number };
  process.kill(-pid, "SIGTERM");
  await until(
    () => !existsSync(`/proc/${pid}/exe`) || readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z "),
    "git",
  );
}

describe("a merge cut short", () => {
  test("by a cancel: the merge comes to its end first", async () => {
    for (const moved of [false, true]) {
      await using scene = await newScene({ agent: editSlow });
      slowFilter(scene);
      await between(scene, "after-stage-build", () => {
        if (moved) scene.write("other.txt", "x\n");
        if (moved) scene.commit("meanwhile");
      });
      await inside(scene);
      const cancelled = scene.data(["cancel", "TICK-1"]);
      await until(
        () => scene.query("select 1 from run_evidence where kind = 'cancel_requested'").length > 0,
        "the intent",
      );
      put(join(scene.outside, "go"), "");
      expect(await cancelled).toMatchObject({ state: "cancelling" });
      await scene.wait("TICK-1-r1");
      expect([await state(scene), has(scene, "main:g"), status(scene), inProgress(scene)]).toEqual([
        "cancelled",
        true,
        "",
        [],
      ]);
    }
  }, 120_000);

  test("in the middle of the files: every file is as it was", async () => {
    for (const moved of [false, true]) {
      await using scene = await newScene({ agent: editSlow });
      slowFilter(scene);
      await between(scene, "after-stage-build", () => {
        if (moved) scene.write("other.txt", "x\n");
        if (moved) scene.commit("meanwhile");
        scene.write("README.md", "mine\n");
      });
      await inside(scene);
      put(join(scene.outside, "go"), "");
      await endMerge(scene);
      await scene.wait("TICK-1-r1");
      expect([await state(scene), has(scene, "main:g"), existsSync(join(scene.root, "g"))]).toEqual([
        "needs_review",
        false,
        false,
      ]);
      expect([status(scene), scene.read("README.md"), inProgress(scene)]).toEqual([" M README.md", "mine\n", []]);
    }
  }, 120_000);

  test("while the daemon is down: the next one puts the files back and merges", async () => {
    await using scene = await newScene({ agent: editSlow });
    slowFilter(scene);
    await between(scene, "after-stage-build", () => scene.write("README.md", "mine\n"));
    await inside(scene);
    await scene.killDaemon();
    put(join(scene.outside, "go"), "");
    await endMerge(scene);
    await scene.data(["status"]);
    await scene.wait("TICK-1-r1");
    expect([await state(scene), has(scene, "main:g")]).toEqual(["merged", true]);
    expect([status(scene), inProgress(scene)]).toEqual([" M README.md", []]);
  }, 60_000);

  test("in a hook before its commit: nothing is staged; in one after it: it has landed", async () => {
    for (const [name, landed] of [
      ["pre-merge-commit", false],
      ["post-merge", true],
    ] as const) {
      await using scene = await newScene();
      await between(scene, "after-stage-build", () => {
        scene.write("other.txt", "x\n");
        scene.commit("meanwhile");
        hook(scene, name, `touch '${scene.outside}/in'; while [ ! -e '${scene.outside}/never' ]; do sleep 0.02; done`);
      });
      await inside(scene);
      await endMerge(scene);
      await scene.wait("TICK-1-r1");
      expect([name, await state(scene), has(scene, "main:work-TICK-1")]).toEqual([
        name,
        landed ? "merged" : "needs_review",
        landed,
      ]);
      expect([status(scene), inProgress(scene)]).toEqual(["", []]);
    }
  }, 60_000);

  test("by `stop --force` while a hook hangs: the checkout is clean when the daemon is gone", async () => {
    await using scene = await newScene();
    await between(scene, "after-stage-build", () => {
      scene.write("other.txt", "x\n");
      scene.commit("meanwhile");
      const wait = `trap '' TERM; touch '${scene.outside}/in'; while [ ! -e '${scene.outside}/never' ]; do sleep 0.02; done`;
      hook(scene, "pre-merge-commit", wait);
    });
    await inside(scene);
    expect(await scene.data(["stop", "--force"])).toMatchObject({ stopping: true });
    expect([status(scene), inProgress(scene), has(scene, "main:work-TICK-1")]).toEqual(["", [], false]);
  }, 60_000);
});

test("a cancelled run that waits for its turn to merge does not wait for a merge that hangs", async () => {
  await using scene = await newScene({ config: "scheduler: { max_parallel_tasks: 2 }" });
  hook(scene, "post-merge", `touch '${scene.outside}/in'; while [ ! -e '${scene.outside}/go' ]; do sleep 0.02; done`);
  await scene.post("first");
  await inside(scene);
  await scene.post("second");
  await until(
    () =>
      scene.query(
        "select 1 from stage_runs s join runs r on r.id = s.run_id where r.ticket_id = 'TICK-2' and s.state = 'passed'",
      ).length > 0,
    "the second run's turn",
  );
  await scene.data(["cancel", "TICK-2"]);
  await scene.wait("TICK-2-r1");
  expect((await scene.value("TICK-2-r1"))["state"]).toBe("cancelled");
  expect((await scene.value("TICK-1-r1"))["state"]).toBe("driving");
  put(join(scene.outside, "go"), "");
  await scene.wait("TICK-1-r1");
  expect((await scene.value("TICK-1-r1"))["state"]).toBe("merged");
}, 60_000);

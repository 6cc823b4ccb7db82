// files.md 13.4 and 15 D: what `sloop reindex` concludes from branches, through the compiled binary and real git.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { newScene, type Scene } from "../support/scene.ts";
import { folder, valid, writeDatabase } from "./posting.ts";
import { refusal } from "./refusal.ts";

setDefaultTimeout(60_000);

const runBranch = "sloop/T1-a1-deadbeef";

/** A repository with the ticket T1, registered. */
async function withTicket(frontmatter = "id: T1"): Promise<Scene> {
  const scene = await newScene();
  scene.write(`${folder}/t1.md`, valid(frontmatter));
  await scene.data(["reindex"]);
  return scene;
}

/** Commits on a branch of its own, from where `main` is. */
function commitOn(scene: Scene, branch: string, files: Record<string, string>): void {
  const worktree = join(scene.dir, "side");
  scene.git("branch", "-q", branch);
  scene.git("worktree", "add", "-q", worktree, branch);
  addCommits(worktree, files);
  scene.git("worktree", "remove", "--force", worktree);
}

function addCommits(worktree: string, files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    const script = `printf '%s' "$2" > "$1" && git add "$1" && git commit -q -m "$1"`;
    const done = Bun.spawnSync(["sh", "-c", script, "sh", name, text], { cwd: worktree, stderr: "pipe" });
    if (done.exitCode !== 0) throw new Error(done.stderr.toString());
  }
}

const stateOf = async (scene: Scene, id = "T1") => {
  await scene.data(["reindex"]);
  return scene.query<{ state: string }>(`select state from tickets where id = '${id}'`)[0]!.state;
};

/** Something else happens on the target branch, so that it is ahead of whatever started there. */
const moveOn = (scene: Scene) => {
  scene.write("other.txt", `${Math.random()}`);
  scene.git("add", "other.txt");
  scene.git("commit", "-q", "-m", "other");
};

describe("one branch", () => {
  test("D13: an unlanded commit", async () => {
    await using scene = await withTicket();
    commitOn(scene, runBranch, { a: "1" });
    expect(await scene.data(["reindex"])).toMatchObject({
      tickets_state_changed: 1,
      state_changes: [{ ticket: "T1", previous_state: "ready", state: "needs_review" }],
    });
    expect(await scene.data(["reindex"])).toMatchObject({ state_changes: [] });
  });

  test("merged as it is: fast-forward and with a merge commit", async () => {
    await using scene = await withTicket();
    commitOn(scene, runBranch, { a: "1" });
    scene.git("merge", "-q", "--ff-only", runBranch);
    expect(await stateOf(scene)).toBe("merged");
    await using other = await withTicket();
    commitOn(other, runBranch, { a: "1", b: "2" });
    moveOn(other);
    other.git("merge", "-q", "--no-ff", "--no-edit", runBranch);
    expect(await stateOf(other)).toBe("merged");
  });

  test("D14: squashed, one commit or several", async () => {
    await using scene = await withTicket();
    commitOn(scene, runBranch, { a: "1", b: "2", c: "3" });
    moveOn(scene);
    expect(await stateOf(scene)).toBe("needs_review");
    scene.git("merge", "-q", "--squash", runBranch);
    scene.git("commit", "-q", "-m", "squashed");
    moveOn(scene);
    expect(await stateOf(scene)).toBe("merged");
    await using other = await withTicket();
    commitOn(other, runBranch, { a: "1" });
    other.git("merge", "-q", "--squash", runBranch);
    other.git("commit", "-q", "-m", "squashed");
    expect(await stateOf(other)).toBe("merged");
  });

  test("rebased, all of it or some", async () => {
    await using scene = await withTicket();
    commitOn(scene, runBranch, { a: "1", b: "2" });
    moveOn(scene);
    scene.git("cherry-pick", `${runBranch}~1`);
    expect(await stateOf(scene)).toBe("needs_review");
    scene.git("cherry-pick", runBranch);
    expect(await stateOf(scene)).toBe("merged");
  });

  test("commits that undo each other have not landed", async () => {
    await using scene = await withTicket();
    commitOn(scene, runBranch, { "README.md": "changed", extra: "1" });
    scene.git("worktree", "add", "-q", join(scene.dir, "side"), runBranch);
    addCommits(join(scene.dir, "side"), { "README.md": "# scratch\n" });
    expect(await stateOf(scene)).toBe("needs_review");
  });

  test("D15: just created, no commit: says nothing, even when the target was rewritten since", async () => {
    await using scene = await withTicket();
    moveOn(scene);
    scene.git("branch", runBranch);
    expect(await stateOf(scene)).toBe("ready");
    scene.git("commit", "-q", "--amend", "-m", "rewritten");
    expect(await stateOf(scene)).toBe("ready");
    moveOn(scene);
    expect(await stateOf(scene)).toBe("ready");
  });

  test("without a reflog: says nothing", async () => {
    await using scene = await withTicket();
    commitOn(scene, runBranch, { a: "1" });
    rmSync(join(scene.root, ".git/logs/refs/heads", runBranch));
    expect(await stateOf(scene)).toBe("ready");
  });

  test("no common history: not landed", async () => {
    await using scene = await withTicket();
    const tree = scene.git("rev-parse", "HEAD^{tree}");
    const lone = scene.git("commit-tree", tree, "-m", "lone");
    const second = scene.git("commit-tree", tree, "-p", lone, "-m", "second");
    scene.git("branch", runBranch, lone);
    scene.git("update-ref", `refs/heads/${runBranch}`, second);
    expect(await stateOf(scene)).toBe("needs_review");
  });
});

describe("whose branch it is", () => {
  test("the ticket's worktree label, or exactly one of its run branches", async () => {
    await using scene = await withTicket("id: T1\nworktree: feature/x");
    for (const name of [
      "sloop/T1-auth",
      "sloop/T1-a1-xyz",
      "sloop/T1-a-deadbeef",
      "sloop/T1x-a1-deadbeef",
      "sloop/t1",
    ]) {
      commitOn(scene, name, { [name.replaceAll("/", "-")]: "1" });
    }
    expect(await stateOf(scene)).toBe("ready");
    commitOn(scene, "feature/x", { x: "1" });
    expect(await stateOf(scene)).toBe("needs_review");
  });

  test("an id that looks like a run branch itself", async () => {
    await using scene = await withTicket("id: T1-a1-beef");
    commitOn(scene, "sloop/T1-a1-beef-a2-cafe", { a: "1" });
    expect(await stateOf(scene, "T1-a1-beef")).toBe("needs_review");
  });

  test("needs_review beats merged", async () => {
    await using scene = await withTicket();
    commitOn(scene, runBranch, { a: "1" });
    scene.git("merge", "-q", "--no-ff", "--no-edit", runBranch);
    commitOn(scene, "sloop/T1-a2-cafe", { b: "1" });
    expect(await stateOf(scene)).toBe("needs_review");
    scene.git("branch", "-D", "sloop/T1-a2-cafe");
    expect(await stateOf(scene)).toBe("merged");
  });

  test("of two tickets, the first in path order", async () => {
    await using scene = await withTicket("id: T1\nworktree: shared");
    scene.write(`${folder}/a.md`, valid("id: T0\nworktree: shared"));
    commitOn(scene, "shared", { a: "1" });
    expect(await stateOf(scene, "T0")).toBe("needs_review");
    expect(await stateOf(scene, "T1")).toBe("ready");
  });

  test("the target branch itself proves nothing", async () => {
    await using scene = await withTicket("id: T1\nworktree: main");
    moveOn(scene);
    expect(await stateOf(scene)).toBe("ready");
  });
});

describe("against what is stored", () => {
  test("git outweighs an operator's hold; a reason to hold outweighs git", async () => {
    await using scene = await withTicket();
    await scene.data(["hold", "T1"]);
    expect(await stateOf(scene)).toBe("held");
    commitOn(scene, runBranch, { a: "1" });
    expect(await stateOf(scene)).toBe("needs_review");
    scene.write(`${folder}/t1.md`, scene.read(`${folder}/t1.md`).replace("flow: default", "flow: nope"));
    expect(await stateOf(scene)).toBe("held");
    scene.write(`${folder}/t1.md`, scene.read(`${folder}/t1.md`).replace("flow: nope", "flow: default"));
    expect(await stateOf(scene)).toBe("needs_review");
  });

  test("a stored state without evidence stays, attempts and all", async () => {
    await using scene = await withTicket();
    writeDatabase(scene, "update tickets set state = 'failed', attempts = 3");
    expect(await scene.data(["reindex"])).toMatchObject({ tickets_state_changed: 0 });
    expect(scene.query("select state, attempts from tickets")).toEqual([{ state: "failed", attempts: 3 }]);
  });

  test("a review branch squashed by hand: merged, its trigger retired, its worktree's clock started", async () => {
    await using scene = await newScene({ flows: { review: "- { name: build, action: agent }" } });
    await scene.post("one", "flow: review", ["--manual"]);
    await scene.data(["run", "TICK-1", "--at", "03:00"]);
    await scene.data(["run", "TICK-1"]);
    expect(await scene.wait("TICK-1")).toBe(1);
    const run = await scene.value("TICK-1-r1");
    expect(run["state"]).toBe("needs_review");
    scene.git("merge", "-q", "--squash", run["branch"] as string);
    scene.git("commit", "-q", "-m", "squashed");
    expect(scene.query("select cleanup_eligible_at_ms at from runs")).toEqual([{ at: null }]);
    expect(await stateOf(scene, "TICK-1")).toBe("merged");
    expect(scene.query<{ at: number | null }>("select cleanup_eligible_at_ms at from runs")[0]!.at).toBeNumber();
    expect(scene.query("select state from triggers where kind = 'at'")).toEqual([{ state: "completed" }]);
  });

  test("D17: the database is gone, the branches are not", async () => {
    await using scene = await newScene({ flows: { review: "- { name: build, action: agent }" } });
    await scene.post("merged");
    expect(await scene.wait("TICK-1")).toBe(0);
    await scene.post("reviewed", "flow: review");
    expect(await scene.wait("TICK-2")).toBe(1);
    await scene.post("idle", "", ["--hold"]);
    await scene.killDaemon();
    for (const end of ["", "-wal", "-shm"]) rmSync(join(scene.stateDir(), `sloop.db${end}`), { force: true });
    expect(await scene.data(["reindex"])).toMatchObject({ tickets_indexed: 3, tickets_state_changed: 0 });
    expect(scene.query("select id, state from tickets order by id")).toEqual([
      { id: "TICK-1", state: "merged" },
      { id: "TICK-2", state: "needs_review" },
      { id: "TICK-3", state: "ready" },
    ]);
    expect(scene.query("select * from runs")).toEqual([]);
  });
});

test("with work and no branch to have landed on, the pass fails and says what to do", async () => {
  await using scene = await withTicket();
  commitOn(scene, runBranch, { a: "1" });
  scene.git("checkout", "-q", "--detach");
  const { code, message } = await refusal(scene, ["reindex"]);
  expect(code).toBe("internal");
  expect(message).toBe(
    "cannot reindex tickets: no target branch (HEAD is detached); check out a branch or set `merge.target`",
  );
});

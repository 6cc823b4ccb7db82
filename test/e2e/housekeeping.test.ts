// Merges by hand, retention of worktrees, and vendor rejections, under the steered clock.

import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newScene, type Scene, type SceneOptions } from "../support/scene.ts";
import { until } from "../support/until.ts";

const day = 24 * 60 * 60_000;
const start = 1_803_873_600_000;

/** A scene whose daemon takes its time from a file. */
async function clocked(options: SceneOptions = {}): Promise<{ scene: Scene; setNow(ms: number): void; clock: string }> {
  const scene = await newScene(options);
  const clock = join(scene.dir, "clock");
  const setNow = (ms: number) => writeFileSync(clock, String(ms));
  setNow(start);
  scene.env["SLOOP_TEST_CLOCK_PATH"] = clock;
  return { scene, setNow, clock };
}

const noMerge = "stages:\n  - name: build\n    action: agent\n";
const ticketState = async (scene: Scene, id: string) => (await scene.value(id))["state"];

describe("a branch that waits for review", () => {
  test("merged by hand settles its ticket, not its run; a fast-forward only once the target moves on", async () => {
    await using scene = await newScene({ flows: { default: noMerge } });
    await scene.post("first");
    expect(await scene.wait("TICK-1-r1")).toBe(1);
    const run = await scene.value("TICK-1-r1");
    expect(run["state"]).toBe("needs_review");
    await scene.data(["post", ".agents/sloop/tickets/first.md"]);
    scene.git("merge", "-q", run["branch"] as string);
    scene.git("commit", "-q", "--allow-empty", "-m", "one more");
    await until(async () => (await ticketState(scene, "TICK-1")) === "merged", "the ticket to be merged");
    expect(await scene.value("TICK-1-r1")).toMatchObject({ state: "needs_review" });
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(scene.query("select kind from events order by sequence desc limit 1")).toEqual([
      { kind: "external_merge_reconciled" },
    ]);
  }, 60_000);

  test("without any work is not merged by whatever else lands", async () => {
    const agent = '[ "$SLOOP_TICKET_ID" = TICK-1 ] || { echo w > w; git add -A; git commit -qm w; }';
    await using scene = await newScene({ agent, flows: { default: noMerge } });
    for (const stem of ["first", "second"]) await scene.post(stem);
    expect(await scene.wait("TICK-1-r1")).toBe(1);
    await until(() => scene.query("select 1 from runs where ticket_id = 'TICK-2'").length > 0, "the second run");
    expect(await scene.wait("TICK-2-r1")).toBe(1);
    scene.git("merge", "-q", (await scene.value("TICK-2-r1"))["branch"] as string);
    scene.git("commit", "-q", "--allow-empty", "-m", "unrelated");
    // Both are judged in one look: once the one with work is noticed, the other one was looked at too, or is at the next.
    await until(async () => (await ticketState(scene, "TICK-2")) === "merged", "the other ticket to be merged");
    await scene.killDaemon();
    await scene.data(["status"]);
    expect(await ticketState(scene, "TICK-1")).toBe("needs_review");
  }, 60_000);
});

describe("retention", () => {
  test("a merged run's worktree and branch go after seven days, its log and rows stay", async () => {
    const { scene, setNow } = await clocked();
    await using _ = scene;
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
    const run = await scene.value("TICK-1-r1");
    const worktree = run["worktree"] as string;
    expect(await scene.data(["status"])).toMatchObject({
      next_wake: new Date(start + 7 * day).toISOString().replace(".000Z", "Z"),
    });
    setNow(start + 7 * day - 1);
    await scene.data(["pause"]);
    expect(existsSync(worktree)).toBe(true);
    setNow(start + 7 * day);
    await until(
      () => scene.query("select 1 from events where kind = 'run_worktree_cleaned'").length === 1,
      "the cleanup",
    );
    expect(existsSync(worktree)).toBe(false);
    expect(scene.git("branch", "--list", "sloop/*")).toBe("");
    expect(await scene.value("TICK-1-r1")).toMatchObject({ branch: run["branch"], worktree });
    expect((await scene.sloop(["logs", "TICK-1-r1"])).code).toBe(0);
  }, 60_000);

  test("a failed run that nobody looked at loses its directory after thirty days, never its work", async () => {
    const { scene, setNow } = await clocked({
      agent: "echo w > w; git add -A; git commit -qm w; echo half > half.txt; exit 1",
    });
    await using _ = scene;
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    const run = await scene.value("TICK-1-r1");
    setNow(start + 30 * day);
    await until(() => !existsSync(run["worktree"] as string), "the directory to go");
    expect(scene.git("log", "-1", "--format=%s", run["branch"] as string)).toBe("w");
    expect(scene.git("show", `refs/sloop/wip/${run["id"]}:half.txt`)).toBe("half");
  }, 60_000);

  test("a cancelled run's commits are kept when its branch goes", async () => {
    const agent =
      'echo w > w; git add -A; git commit -qm precious; echo run >> "$COUNT/agent"; while :; do sleep 0.02; done';
    const { scene, setNow } = await clocked({ agent });
    await using _ = scene;
    await scene.post("first");
    await until(() => scene.count("agent") === 1, "the agent");
    await until(
      () => scene.query<{ state: string }>("select state from runs")[0]?.state === "running",
      "the checkpoint",
    );
    await scene.data(["cancel", "TICK-1-r1"]);
    expect(await scene.wait("TICK-1-r1")).toBe(1);
    const run = await scene.value("TICK-1-r1");
    setNow(start + 7 * day);
    await until(() => scene.git("branch", "--list", "sloop/*") === "", "the branch to go");
    expect(scene.git("log", "-1", "--format=%s", `refs/sloop/kept/${run["id"]}`)).toBe("precious");
  }, 60_000);
});

describe("a vendor's rejection", () => {
  const reject = 'echo "You\'ve hit your weekly limit"; exit 1';

  test("that cools the target down: rate limited, requeued for the cooldown's end, and then run again", async () => {
    const agent = `if [ -e "$COUNT/once" ]; then echo w > w; git add -A; git commit -qm w; else touch "$COUNT/once"; ${reject}; fi`;
    const { scene, setNow } = await clocked({ agent });
    await using _ = scene;
    await scene.post("first");
    expect(await scene.wait("TICK-1-r1")).toBe(1);
    expect(await scene.value("TICK-1-r1")).toMatchObject({
      state: "rate_limited",
      reason: "Claude usage limit reached",
      classification: {
        class: "rate_limited",
        vendor: "claude",
        rule_id: "claude.rate-limit.usage-limit",
        diagnostic: "Claude usage limit reached",
      },
    });
    const until_ms = start + 300_000;
    const status = await scene.data(["status"]);
    expect(status["gate"]).toMatchObject({
      cooldowns: [{ target: "sh", until_ms, reason: "Claude usage limit reached" }],
    });
    expect(status["dispatch"]).toEqual({
      at: new Date(until_ms).toISOString().replace(".000Z", "Z"),
      cause: "cooldown",
    });
    const [row] = (await scene.data(["list"]))["tickets"] as { reason: string }[];
    expect(row!.reason).toBe(
      `target \`sh\` is cooling down until ${new Date(until_ms).toISOString().replace(".000Z", "Z")}: Claude usage limit reached`,
    );
    setNow(until_ms);
    await until(() => scene.query("select 1 from runs where attempt = 2").length > 0, "the second attempt");
    expect(await scene.wait("TICK-1-r2")).toBe(0);
  }, 60_000);

  test("that does not: the run failed, and the row says what to do", async () => {
    const agent = 'echo "status 401: Missing bearer or basic authentication in header" >&2; exit 1';
    await using scene = await newScene({ agent });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    const [row] = (await scene.data(["list"]))["tickets"] as { reason: string }[];
    expect(row!.reason).toBe(
      "Codex authentication is missing or expired; failed after 1 attempt(s); requeue with `sloop retry`",
    );
  }, 60_000);

  test("that a test stage prints, or an agent quotes in a record, is none", async () => {
    const agent = `echo '{"type":"tool_result","content":"You'"'"'ve hit your limit"}'; echo w > w; git add -A; git commit -qm w`;
    const flow =
      'stages:\n  - { name: build, action: agent }\n  - { name: test, action: { exec: [echo, "You\'ve hit your"] } }\n  - { name: merge, action: { builtin: merge } }\n';
    await using scene = await newScene({ agent, flows: { default: flow } });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
  }, 60_000);
});

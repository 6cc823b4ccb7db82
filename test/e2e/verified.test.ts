// What is merged is what the gates passed on: a worktree and its branch that differ are never landed.

import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { processesIn } from "../support/repo.ts";
import { arm, hookEnv, newScene, reached, release, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

const commit = "git add work; git commit -qm work";
const work = `echo work > work; ${commit}`;

/** Build, one gate, merge. `{sh}` of the gate is shell text. */
function gate(yaml: string): string {
  return `
stages:
  - name: build
    action: agent
  - name: gate
${yaml}
  - name: merge
    action: { builtin: merge }
`;
}
const command = (text: string) => gate(`    action: { exec: [sh, -c, '${text}'] }`);
const panel = `
    action: { exec: ["true"] }
    result_check:
      panel: { prompt: prompts/review.md, reviewers: [{ target: sh }, { target: sh }] }`;

type Case = { what: string; agent: string; flow: string; reason: RegExp };

const refused: Case[] = [
  {
    what: "a new file that the agent forgot",
    agent: `${work}; echo needed > needed`,
    flow: command("test -e needed"),
    reason: /^`gate` passed with uncommitted files \(needed\); commit or ignore them$/,
  },
  {
    what: "an edit that the agent forgot, seen by a check",
    agent: `${work}; echo better > work`,
    flow: gate("    action: { exec: ['true'] }\n    result_check: { exec: [grep, -q, better, work] }"),
    reason: /^`gate` passed with uncommitted files \(work\); commit or ignore them$/,
  },
  {
    what: "an edit that the index was told not to see",
    agent: `${work}; git update-index --skip-worktree work; echo better > work`,
    flow: command("grep -q better work"),
    reason: /^`gate` passed with uncommitted files \(work\); commit or ignore them$/,
  },
  {
    what: "an edit of what the gate had left at its first attempt",
    agent: `[ -e snap ] && echo agent > snap; echo "$(date)" >> work; ${commit}`,
    flow: command("[ -e snap ] || { echo gate > snap; exit 1; }").replace(
      "  - name: merge",
      "    fail_action: { return_to: build, attempts: 1 }\n  - name: merge",
    ),
    reason: /^`gate` passed with uncommitted files \(snap\); commit or ignore them$/,
  },
  {
    what: "a commit that a reviewer made after its verdict",
    agent: work,
    flow: gate(
      "    action: { exec: [sh, -c, 'sloop verdict pass; echo late > work; git commit -qam late'] }\n    result_check: reported",
    ),
    reason: /^sloop\/TICK-1-a1-[0-9a-f]+ moved to [0-9a-f]{10} while `gate` judged it$/,
  },
  {
    what: "a commit in the middle of a test",
    agent: work,
    flow: command("echo late > work; git commit -qam late"),
    reason: /moved to [0-9a-f]{10} while `gate` judged it; a stage that is to commit says so by /,
  },
  {
    what: "a repository that the agent made inside",
    agent: `mkdir app; (cd app; git init -q; echo x > x; git add x; git -c user.name=x -c user.email=x@y.invalid commit -qm x); git add -A; git commit -qm work`,
    flow: command("test -e app/x"),
    reason: /^app is a repository of its own, and the branch holds none of the files/,
  },
  {
    what: "what a command after the gate cleans away",
    agent: `${work}; echo needed > needed`,
    flow: command("test -e needed").replace(
      "  - name: merge",
      "  - name: clean\n    action: { exec: [git, clean, -fdq] }\n  - name: merge",
    ),
    reason: /^`gate` passed with uncommitted files \(needed\); commit or ignore them$/,
  },
  {
    what: "commits on a detached HEAD",
    agent: `${work}; git checkout -q --detach; echo more > work; git commit -qam more`,
    flow: command("grep -q more work"),
    reason: /^`gate` passed on [0-9a-f]{10}, but sloop\/TICK-1-a1-[0-9a-f]+ stood at [0-9a-f]{10}$/,
  },
  {
    what: "a branch of the agent's own",
    agent: `${work}; git checkout -qb mine; echo more > work; git commit -qam more`,
    flow: command("grep -q more work"),
    reason: /^`gate` passed on [0-9a-f]{10}, but/,
  },
  {
    what: "a worktree whose .git the agent removed",
    agent: `${work}; rm .git`,
    flow: command("true"),
    reason: /^git could not tell what `gate` passed on$/,
  },
  {
    what: "a reviewer that commits",
    agent: `[ -e "$COUNT/built" ] || { touch "$COUNT/built"; ${work}; exit; }
      [ -e "$COUNT/first" ] && { touch "$COUNT/first"; echo fix >> work; git commit -qam fix; }
      touch "$COUNT/first"; sloop verdict pass --reason fine`,
    flow: gate(panel),
    reason: /^sloop\/TICK-1-a1-[0-9a-f]+ moved to [0-9a-f]{10} while `gate` judged it$/,
  },
];

async function mergeStage(scene: Scene): Promise<{ state: string; reason: string | null } | undefined> {
  const { stages } = (await scene.value("TICK-1-r1")) as {
    stages: { stage: string; state: string; reason: string | null }[];
  };
  return stages.findLast(({ stage }) => stage === "merge");
}

async function expectRefused(scene: Scene, reason: RegExp): Promise<void> {
  expect(await scene.value("TICK-1-r1")).toMatchObject({ state: "needs_review" });
  const merge = await mergeStage(scene);
  expect(merge?.state).toBe("failed");
  expect(merge?.reason).toMatch(reason);
  expect(scene.git("log", "--format=%s", "main")).toBe("first");
}

describe("not merged:", () => {
  test.each(refused)(
    "$what",
    async ({ agent, flow, reason }) => {
      await using scene = await newScene({ agent, flows: { default: flow } });
      scene.write(".agents/sloop/prompts/review.md", "Review it.\n");
      await scene.post("first");
      expect(await scene.wait("TICK-1")).toBe(1);
      await expectRefused(scene, reason);
    },
    60_000,
  );

  test("a commit that came after the gate", async () => {
    await using scene = await newScene({ agent: work, flows: { default: command("true") } });
    Object.assign(scene.env, hookEnv(scene));
    arm(scene, "after-stage-gate");
    await scene.post("first");
    await reached(scene, "after-stage-gate");
    const { worktree } = (await scene.value("TICK-1-r1")) as { worktree: string };
    const late = Bun.spawnSync(["git", "commit", "-q", "--allow-empty", "-m", "late"], {
      cwd: worktree,
      env: { ...process.env, ...scene.env },
    });
    expect(late.exitCode).toBe(0);
    release(scene, "after-stage-gate");
    expect(await scene.wait("TICK-1")).toBe(1);
    await expectRefused(scene, /^sloop\/.* moved from [0-9a-f]{10} to [0-9a-f]{10} after `gate`, outside any stage$/);
  }, 60_000);
});

const merged: [what: string, agent: string, flow: string][] = [
  ["what a gate leaves behind itself", work, command("echo report > report.xml")],
  [
    "a command that commits what the agent left, and a check passed on",
    "echo work > work",
    command(commit).replace("action: agent", "action: agent\n    result_check: { exec: [test, -e, work] }"),
  ],
  [
    "a command that says that it commits, after the gate",
    work,
    command("test -e work").replace(
      "  - name: merge",
      "  - name: stamp\n    action: { exec: [git, commit, -q, --allow-empty, -m, stamp] }\n    result_check: { builtin: commits }\n  - name: merge",
    ),
  ],
  ["an ignored file", `echo out > .gitignore; git add .gitignore; ${work}; touch out`, command("test -e out")],
  ["a detached HEAD on the tip itself", `${work}; git checkout -q --detach`, command("test -e work")],
  [
    "a second attempt on what the first one's gate had left",
    `echo "$(ls)" >> work; ${commit}`,
    command("[ -e log ] || { touch log; exit 1; }").replace(
      "  - name: merge",
      "    fail_action: { return_to: build, attempts: 1 }\n  - name: merge",
    ),
  ],
  [
    "an agent that heard of it and committed",
    `if [ -e work ]; then git add -A; git commit -qm rest; else ${work}; touch needed; fi`,
    command("true").replace(
      "action: { builtin: merge }",
      "action: { builtin: merge }\n    fail_action: { return_to: build, attempts: 1 }",
    ),
  ],
];

describe("a git directory that would be waited for", () => {
  test.each([
    ["a pipe for .git", "rm .git; mkfifo .git"],
    ["an endless .git", "rm .git; ln -s /dev/zero .git"],
    ["a pipe for the index", 'i="$(git rev-parse --git-dir)/index"; rm "$i"; mkfifo "$i"'],
  ])(
    "%s keeps the daemon from nothing else",
    async (_what, trick) => {
      const agent = `[ "$SLOOP_TICKET_ID" = TICK-1 ] || { ${work}; exit; }\n${work}; ${trick}`;
      await using scene = await newScene({
        agent,
        flows: { default: command("true") },
        config: "scheduler: { max_parallel_tasks: 2 }",
      });
      await scene.post("first");
      await until(
        () =>
          scene.query("select 1 from run_evidence where kind = 'exit_classified'").length > 0 ||
          scene.query("select 1 from runs where state <> 'running'").length > 0,
        "the agent to end",
      );
      await scene.post("second");
      expect(await scene.wait("TICK-2")).toBe(0);
      // Whatever became of the first, it can be ended.
      await scene.sloop(["cancel", "TICK-1-r1"]);
      await scene.data(["stop", "--force"]);
      await until(() => processesIn(scene.root).length === 0, "everything to end");
    },
    60_000,
  );
});

describe("merged:", () => {
  test("by hand, with what nobody had committed: the daemon notices, and it is all there", async () => {
    const agent = `${work}; echo needed > needed`;
    await using scene = await newScene({ agent, flows: { default: command("test -e needed") } });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    const { wip } = (await scene.value("TICK-1-r1")) as { wip: { ref: string } };
    scene.git("merge", "--quiet", "--no-ff", "-m", "by hand", wip.ref);
    await until(() => scene.query("select 1 from tickets where state = 'merged'").length === 1, "the ticket");
    expect(scene.git("ls-tree", "--name-only", "main").split("\n")).toEqual(expect.arrayContaining(["needed", "work"]));
  }, 60_000);

  test.each(merged)(
    "%s",
    async (_what, agent, flow) => {
      await using scene = await newScene({ agent, flows: { default: flow } });
      await scene.post("first");
      const code = await scene.wait("TICK-1");
      expect([code, (await mergeStage(scene))?.reason ?? null]).toEqual([0, null]);
      expect(scene.git("ls-tree", "--name-only", "main").split("\n")).toContain("work");
    },
    60_000,
  );

  test("where the system's place for temporary files is gone, as after a cleaner", async () => {
    await using scene = await newScene({
      agent: `${work}; echo out > out`,
      flows: { default: command(`git add out; ${commit}; true`) },
    });
    scene.env["TMPDIR"] = join(scene.dir, "gone");
    await scene.post("first");
    expect([await scene.wait("TICK-1"), (await mergeStage(scene))?.reason ?? null]).toEqual([0, null]);
  }, 60_000);

  test("a gate that went on while the daemon was away", async () => {
    const flow = command('touch "OUTSIDE/in"; while ! [ -e "OUTSIDE/go" ]; do sleep 0.05; done');
    await using scene = await newScene({ agent: work, flows: { default: flow } });
    await scene.post("first");
    await until(() => existsSync(join(scene.outside, "in")), "the gate to run");
    await scene.killDaemon();
    writeFileSync(join(scene.outside, "go"), "");
    await scene.data(["status"]);
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(scene.query("select kind from run_evidence where kind = 'gate_tree'")).toHaveLength(1);
  }, 60_000);
});

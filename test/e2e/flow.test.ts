// Walks through real flows: loops, reports, checks, panels, sync, advisory stages.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { newScene } from "../support/scene.ts";

type Stage = Record<string, unknown>;
const strip = (stages: unknown) =>
  (stages as Stage[]).map((row) => `${row["stage"]}#${row["attempt"]}:${row["state"]}`).join(" ");

describe("a stage that returns to the agent", () => {
  const agent = `
n=$(ls "$COUNT" | grep -c prompt); printf '%s' "$1" > "$COUNT/prompt$n"
echo "$n" >> n.txt; git add -A; git commit -qm "try $n"`;
  const flow = `
stages:
  - name: build
    action: agent
  - name: test
    action: { exec: [sh, -c, 'if [ -e OUTSIDE/tested ]; then exit 0; fi; touch OUTSIDE/tested; echo "1 test failed"; echo why >&2; exit 3'] }
    fail_action: { return_to: build, attempts: 1 }
  - name: merge
    action: { builtin: merge }
`;

  test("runs it again with the report of what failed, byte for byte", async () => {
    await using scene = await newScene({ agent, flows: { default: flow } });
    scene.write(".agents/sloop/instructions.md", "Be careful.\n");
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
    const run = await scene.value("TICK-1-r1");
    expect(strip(run["stages"])).toBe("build#1:passed build#2:passed test#1:failed test#2:passed merge#1:passed");
    const prompt = (n: number) => readFileSync(join(scene.outside, `prompt${n}`), "utf8");
    expect(prompt(0).endsWith("\n\nBe careful.\n")).toBe(true);
    const block = `

--- previous attempt failed ---
Stage \`test\` (attempt 1) failed: exit 3
You are running again to address that failure.

The last 100 lines of that stage's output:
1 test failed
why
--- end previous attempt ---`;
    expect(prompt(1)).toBe(prompt(0) + block);
  }, 60_000);

  test("halts when the budget of the edge is spent", async () => {
    const broken = flow.replace("if [ -e OUTSIDE/tested ]; then exit 0; fi; ", "");
    await using scene = await newScene({ agent, flows: { default: broken } });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    const run = await scene.value("TICK-1-r1");
    expect(run).toMatchObject({ state: "needs_review", halt: "return_budget_exhausted" });
    expect(run["reason"]).toBe(
      "stage `test` failed (exit 3) on attempt 2 after agent completed with commits; return_to budget spent",
    );
    expect(scene.git("log", "--format=%s", "main")).toBe("first");
  }, 60_000);
});

describe("a reported stage", () => {
  const flow = (script: string) => `
stages:
  - name: build
    action: agent
  - name: review
    action: { exec: [sh, -c, '${script}'] }
    result_check: reported
  - name: merge
    action: { builtin: merge }
`;
  const cases: [string, string, string, string | null][] = [
    ["passes by its report although it exits 7", "sloop verdict pass --reason fine; exit 7", "merged", "fine"],
    [
      "fails by its report although it exits 0",
      "sloop verdict fail --reason bad --confidence high",
      "needs_review",
      "bad",
    ],
    ["fails when it stays silent", "exit 0", "needs_review", "no verdict reported"],
    [
      "keeps the first of two reports",
      "sloop verdict pass --reason one; sloop verdict fail --reason two; true",
      "merged",
      "one",
    ],
  ];
  test.each(cases)(
    "%s",
    async (_name, script, state, reason) => {
      await using scene = await newScene({ flows: { default: flow(script) } });
      await scene.post("first");
      await scene.wait("TICK-1");
      const run = await scene.value("TICK-1-r1");
      expect(run["state"]).toBe(state);
      const review = (run["stages"] as Stage[]).find((row) => row["stage"] === "review")!;
      expect(review).toMatchObject({ verdict_source: "reported", reason });
    },
    60_000,
  );
});

describe("a panel", () => {
  const flow = (quorum: number) => `
stages:
  - name: build
    action: agent
  - name: judge
    action: { exec: ['true'] }
    result_check:
      panel:
        prompt: prompts/review.md
        reviewers: [{ target: yes }, { target: no }, { target: mute }]
        require: { quorum: ${quorum} }
  - name: merge
    action: { builtin: merge }
`;
  const config = `    yes: { cmd: [sh, -c, 'sloop brief >/dev/null; sloop verdict pass --reason good', "{prompt}"] }
    no: { cmd: [sh, -c, 'sloop verdict fail --reason "" ; sloop verdict fail --reason "no test" --confidence low', "{prompt}"] }
    mute: { cmd: [sh, -c, 'exit 0', "{prompt}"] }
`;
  const cases: [number, string][] = [
    [1, "merged"],
    [2, "needs_review"],
  ];
  test.each(cases)(
    "with quorum %d ends %s, silent seats counted as fails",
    async (quorum, state) => {
      await using scene = await newScene({ config, flows: { default: flow(quorum) } });
      scene.write(".agents/sloop/prompts/review.md", "Judge it.\n");
      await scene.post("first");
      await scene.wait("TICK-1");
      const run = await scene.value("TICK-1-r1");
      expect(run["state"]).toBe(state);
      const judge = (run["stages"] as Stage[]).find((row) => row["stage"] === "judge")!;
      expect(judge).toMatchObject({
        verdict_source: "panel",
        exit_code: null,
        reason: `panel: 1 of 3 reviewers passed, quorum ${quorum}`,
        reviewers: [
          { reviewer: 0, target: "yes", verdict: "pass", confidence: "medium", reason: "good" },
          { reviewer: 1, target: "no", verdict: "fail", confidence: "low", reason: "no test" },
          { reviewer: 2, target: "mute", verdict: "fail", confidence: null, reason: "no verdict reported" },
        ],
      });
    },
    60_000,
  );
});

describe("checks and fail actions", () => {
  test("an advisory stage that fails is stepped over and shown", async () => {
    const flow = `
stages:
  - name: build
    action: agent
  - name: lint
    action: { exec: [sh, -c, 'exit 4'] }
    fail_action: continue
  - name: merge
    action: { builtin: merge }
`;
    await using scene = await newScene({ flows: { default: flow } });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(strip((await scene.value("TICK-1-r1"))["stages"])).toBe("build#1:passed lint#1:failed merge#1:passed");
  }, 60_000);

  test("an agent that commits nothing fails its commits check", async () => {
    await using scene = await newScene({ agent: "echo nothing done" });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    const run = await scene.value("TICK-1-r1");
    expect(run).toMatchObject({ state: "needs_review", halt: "fail_action", exit_code: 0 });
  }, 60_000);

  test("an agent that fails leaves its uncommitted work as a ref, and the run failed", async () => {
    await using scene = await newScene({ agent: "echo half > half.txt; mkdir d; echo 2 > d/two.txt; exit 9" });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    const run = await scene.value("TICK-1-r1");
    const ref = `refs/sloop/wip/${run["id"]}`;
    expect(run).toMatchObject({ state: "failed", exit_code: 9, wip: { ref, files: 2 } });
    expect(scene.git("show", `${ref}:half.txt`)).toBe("half");
    expect(scene.git("show", `${ref}:d/two.txt`)).toBe("2");
    expect((await scene.sloop(["show", "TICK-1-r1"])).stdout).toContain(`2 uncommitted files saved as ${ref}\n`);
  }, 60_000);

  test.each([
    ["an action", "action: { exec: [no-such-program] }"],
    ["a check", "action: { exec: ['true'] }\n    result_check: { exec: [no-such-program] }"],
  ])(
    "%s that cannot be started says why",
    async (_what, stage) => {
      const flow = `
stages:
  - { name: build, action: agent }
  - name: lint
    ${stage}
  - { name: merge, action: { builtin: merge } }
`;
      await using scene = await newScene({ flows: { default: flow } });
      await scene.post("first");
      expect(await scene.wait("TICK-1")).toBe(1);
      expect((await scene.value("TICK-1-r1"))["reason"]).toMatch(/^stage `lint` failed: .*no-such-program/);
    },
    60_000,
  );

  test("flow.test_cmd adds its stage once, behind the first", async () => {
    await using scene = await newScene({ config: "flow: { test_cmd: [sh, -c, 'test -e work-TICK-1'] }" });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(strip((await scene.value("TICK-1-r1"))["stages"])).toBe("build#1:passed test#1:passed merge#1:passed");
  }, 60_000);
});

describe("sync", () => {
  const train = `
stages:
  - name: build
    action: agent
  - name: sync
    action: { builtin: sync }
  - name: merge
    action: { builtin: merge, ff_only: true }
`;

  test("brings the target in, so that a fast-forward lands what was tested", async () => {
    const agent = `cd "$(git rev-parse --show-toplevel)"; echo w >> w; git add -A; git commit -qm work
cd "$COUNT/../repo" && echo more >> README.md && git commit -qam "meanwhile"`;
    await using scene = await newScene({ agent, flows: { default: train } });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(scene.git("log", "-1", "--format=%s %an")).toContain(
      "Merge the default branch into run branch 'sloop/TICK-1-a1-",
    );
    expect(scene.git("log", "-1", "--format=%an <%ae>")).toBe("sloop <sloop@sloop.invalid>");
    expect(scene.git("status", "--porcelain", "--untracked-files=no")).toBe("");
  }, 60_000);

  test("a conflict fails the stage, names the paths and leaves no merge behind", async () => {
    const agent = `echo ours > README.md; git commit -qam ours
cd "$COUNT/../repo" && echo theirs > README.md && git commit -qam theirs`;
    await using scene = await newScene({ agent, flows: { default: train } });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    const run = await scene.value("TICK-1-r1");
    const sync = (run["stages"] as Stage[]).find((row) => row["stage"] === "sync")!;
    expect(sync).toMatchObject({ state: "failed", exit_code: 1, reason: "conflicts in README.md" });
    const worktree = run["worktree"] as string;
    const status = Bun.spawnSync(["git", "status", "--porcelain"], { cwd: worktree }).stdout.toString();
    expect(status).toBe("");
  }, 60_000);
});

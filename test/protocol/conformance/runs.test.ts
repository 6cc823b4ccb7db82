// protocol.md 6.4, 6.5, 6.8, 7.10: run and ticket detail, key by key, on runs that ended in every way.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { commit, meet, openStage, type Stage } from "./stage.ts";
import type { Json, Wire } from "./wire.ts";

setDefaultTimeout(60_000);

let stage: Stage;
let wire: Wire;
const ids: Record<string, string> = {};

const flows = {
  tested: `stages:
  - { name: build, action: agent }
  - { name: lint, action: { exec: ["false"] }, fail_action: continue }
  - { name: test, action: { exec: [sh, -c, 'test -e ok'] }, fail_action: { return_to: build, attempts: 1 } }
  - { name: merge, action: { builtin: merge } }
`,
  advisory: `stages:
  - { name: build, action: agent }
  - { name: lint, action: { exec: [sh, -c, 'exit 4'] }, fail_action: continue }
`,
  judged: `stages:
  - { name: build, action: agent, result_check: { exec: [sh, -c, 'exit 9'] } }
  - { name: merge, action: { builtin: merge } }
`,
  plain: "stages:\n  - { name: build, action: agent }\n",
  bare: "stages:\n  - { name: chore, action: { exec: [sh, -c, 'echo x > chore; git add -A; git commit -qm chore'] } }\n  - { name: merge, action: { builtin: merge } }\n",
};

beforeAll(async () => {
  stage = await openStage({ flows, config: "scheduler: { max_parallel_tasks: 4 }" });
  wire = stage.wire;
  const scripts: [stem: string, flow: string, script: string | null][] = [
    ["good", "default", null],
    ["twice", "tested", `${commit}; if [ -e once ]; then touch ok; fi; touch once; git add -A; git commit -qm more`],
    ["spent", "tested", commit],
    ["advised", "advisory", null],
    ["judged", "judged", null],
    ["crashed", "default", "echo started; exit 7"],
    ["killed", "default", `${commit}; kill -9 $$`],
    ["lazy", "default", "true"],
    ["chore", "bare", null],
    ["loose", "plain", `${commit}; echo a > a; echo b > b`],
  ];
  for (const [stem, flow, script] of scripts) {
    const id = await stage.post(stem, { flow, trigger: { kind: "manual" } });
    ids[stem] = id;
    if (script !== null) stage.agent(id, script);
    await wire.ok("run", { trigger: { kind: "now" }, only: [], ticket: id });
  }
  for (const id of Object.values(ids)) await stage.settled(id);
  // By itself: a commit in the checkout would be in the way of the others' merges.
  ids["conflict"] = await stage.post("conflict", { trigger: { kind: "manual" } });
  stage.agent(ids["conflict"], `${meet}; echo mine > README.md; git commit -qam mine`);
  await wire.ok("run", { trigger: { kind: "now" }, only: [], ticket: ids["conflict"] });
  await stage.worker(ids["conflict"]);
  stage.scene.write("README.md", "theirs\n");
  stage.scene.git("commit", "-qm", "theirs", "README.md");
  stage.go(ids["conflict"]);
  await stage.settled(ids["conflict"]);
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const run = (stem: string, attempt = 1) => stage.value(`${ids[stem]}-r${attempt}`);
const keys = (value: unknown) =>
  Object.keys(value as Json)
    .sort()
    .join(" ");
const runKeys =
  "agent_exit_code alias attempt branch claimed_at_ms classification exit_code finished_at_ms halt id note reason stages stall started_at_ms state target_branch terminal ticket ticket_name wip worktree";
const stageKeys =
  "advisory attempt confidence duration_ms exit_code finished_at_ms reason reviewers silent_for_ms stage started_at_ms state verdict_source";
const stripKeys = "advisory attempt silent_for_ms stage state";
const summaryKeys = "alias attempt finished_at_ms id reason stages stall started_at_ms state terminal";

describe("7.10, 6.5, 6.8 run detail", () => {
  test("7.10 run: every key, instants that follow each other, null where the page says null", async () => {
    for (const stem of Object.keys(ids)) {
      const value = await run(stem);
      expect(keys(value)).toBe(runKeys);
      const instants = ["claimed_at_ms", "started_at_ms", "finished_at_ms"].map((key) => value[key] as number);
      expect(instants).toEqual(instants.toSorted((a, b) => a - b));
      expect(value).toMatchObject({
        note: null,
        terminal: true,
        target_branch: "main",
        stall: null,
        classification: null,
      });
      expect(value["agent_exit_code"]).toBe(value["exit_code"]);
      for (const row of value["stages"] as Json[]) {
        expect(keys(row)).toBe(stageKeys);
        expect(row).toMatchObject({ silent_for_ms: null, reviewers: [] });
        const { started_at_ms, finished_at_ms, duration_ms } = row;
        if (row["state"] === "pending") {
          const nothing = { started_at_ms: null, finished_at_ms: null, duration_ms: null, exit_code: null };
          expect(row).toMatchObject({ ...nothing, attempt: 0, verdict_source: null, reason: null, confidence: null });
        } else if (typeof started_at_ms === "number" && typeof finished_at_ms === "number") {
          expect(duration_ms).toBe(finished_at_ms - started_at_ms);
        } else expect(duration_ms).toBeNull();
      }
    }
  });

  const ends: [stem: string, Json, stages: Json[]][] = [
    [
      "good",
      { state: "merged", reason: null, halt: null, exit_code: 0, wip: null },
      [
        { stage: "build", state: "passed", attempt: 1, exit_code: 0, verdict_source: "exit_code", advisory: false },
        { stage: "merge", state: "passed", attempt: 1, exit_code: 0, verdict_source: "exit_code" },
      ],
    ],
    [
      "twice",
      { state: "merged", reason: null, halt: null },
      [
        { stage: "build", state: "passed", attempt: 1 },
        { stage: "build", state: "passed", attempt: 2 },
        { stage: "lint", state: "failed", attempt: 1, exit_code: 1, advisory: true },
        { stage: "lint", state: "failed", attempt: 2, advisory: true },
        { stage: "test", state: "failed", attempt: 1, exit_code: 1, advisory: false },
        { stage: "test", state: "passed", attempt: 2 },
        { stage: "merge", state: "passed", attempt: 1 },
      ],
    ],
    [
      "spent",
      {
        state: "needs_review",
        halt: "return_budget_exhausted",
        reason: "stage `test` failed (exit 1) on attempt 2 after agent completed with commits; return_to budget spent",
      },
      [
        { stage: "build", attempt: 1 },
        { stage: "build", attempt: 2 },
        { stage: "lint", attempt: 1 },
        { stage: "lint", attempt: 2 },
        { stage: "test", attempt: 1, state: "failed" },
        { stage: "test", attempt: 2, state: "failed" },
        { stage: "merge", attempt: 0, state: "pending" },
      ],
    ],
    [
      "advised",
      {
        state: "needs_review",
        halt: null,
        reason: "run ended as needs_review with only advisory failures recorded (stage `lint`)",
      },
      [
        { stage: "build", state: "passed" },
        { stage: "lint", state: "failed", exit_code: 4, advisory: true },
      ],
    ],
    [
      "judged",
      { state: "needs_review", halt: "fail_action", exit_code: 0, reason: "stage `build` failed (exit 9)" },
      [
        { stage: "build", state: "failed", exit_code: 9, verdict_source: "exit_code", confidence: null },
        { stage: "merge", state: "pending" },
      ],
    ],
    [
      "crashed",
      { state: "failed", halt: "fail_action", exit_code: 7 },
      [
        { stage: "build", state: "failed", exit_code: 7 },
        { stage: "merge", state: "pending" },
      ],
    ],
    [
      "killed",
      { state: "failed", halt: "fail_action", exit_code: null },
      [
        { stage: "build", state: "failed", exit_code: null },
        { stage: "merge", state: "pending" },
      ],
    ],
    [
      "lazy",
      { halt: "fail_action", exit_code: 0 },
      [
        { stage: "build", state: "failed", exit_code: 0 },
        { stage: "merge", state: "pending" },
      ],
    ],
    [
      "chore",
      { state: "merged", reason: null, halt: null, exit_code: 0 },
      [
        { stage: "chore", state: "passed", exit_code: 0 },
        { stage: "merge", state: "passed" },
      ],
    ],
    [
      "loose",
      { state: "needs_review", halt: null, reason: "run ended as needs_review with no failing stage recorded" },
      [{ stage: "build", state: "passed" }],
    ],
    [
      "conflict",
      { state: "needs_review", halt: "fail_action" },
      [
        { stage: "build", state: "passed" },
        { stage: "merge", state: "failed", reason: "conflicts in README.md", exit_code: expect.any(Number) },
      ],
    ],
  ];
  for (const [stem, detail, stages] of ends) {
    test(`6.5, 6.8: the run of \`${stem}\``, async () => {
      const value = await run(stem);
      expect(value).toMatchObject(detail);
      expect(value["stages"]).toMatchObject(stages);
      expect((value["stages"] as Json[]).length).toBe(stages.length);
      expect(value["ticket"]).toBe(ids[stem] as string);
      expect(value["ticket_name"]).toBe(stem);
      expect(value["alias"]).toBe(`${ids[stem]}-r1`);
      const waited = await wire.ok("wait", { run: `${ids[stem]}-r1` });
      expect(waited).toEqual({
        id: value["id"],
        alias: value["alias"],
        note: null,
        state: value["state"],
        terminal: true,
        exit_code: value["exit_code"],
        reason: null,
        classification: null,
      });
    });
  }

  test("6.8: a conflict's reason in words, 7.10 wip: uncommitted files are counted and kept", async () => {
    const { reason, stages } = await run("conflict");
    const code = (stages as Json[])[1]!["exit_code"];
    expect(code).not.toBe(0);
    expect(reason).toBe(
      `stage \`merge\` failed (exit ${code}): conflicts in README.md after agent completed with commits`,
    );
    const { wip, id } = await run("loose");
    expect(wip).toEqual({ ref: `refs/sloop/wip/${id}`, files: 2 });
    expect(stage.scene.git("rev-parse", "--verify", `refs/sloop/wip/${id}`)).toMatch(/^[0-9a-f]{40}$/);
  });
});

describe("7.10 ticket, 6.4", () => {
  test("7.10 ticket: every key; runs, highest attempt first, as summaries of the details", async () => {
    const id = ids["crashed"]!;
    await wire.ok("retry", { ticket: id });
    await wire.ok("run", { trigger: { kind: "now" }, only: [], ticket: id });
    await stage.settled(`${id}-r2`);
    const { kind, ref, value } = (await wire.ok("show", { ref: "crashed", limit: 0 })) as {
      kind: string;
      ref: string;
      value: Json;
    };
    expect({ kind, ref }).toEqual({ kind: "ticket", ref: "crashed" });
    const { runs, ...rest } = value as { runs: Json[] };
    expect(rest).toEqual({
      id,
      name: "crashed",
      project: "default",
      state: "failed",
      file: ".agents/sloop/tickets/crashed.md",
      blocked_by: [],
      worktree: "sloop/crashed",
      target: "sh",
      model: null,
      effort: null,
      reason: null,
      classification: null,
      queued_triggers: [],
      body: "Do it.",
    });
    expect(runs.map(({ alias }) => alias)).toEqual([`${id}-r2`, `${id}-r1`]);
    for (const summary of runs) {
      expect(keys(summary)).toBe(summaryKeys);
      const detail = await stage.value(summary["id"] as string);
      for (const key of ["alias", "attempt", "state", "terminal", "finished_at_ms", "reason", "stall"]) {
        expect(summary[key] as unknown).toEqual(detail[key] as unknown);
      }
      const strip = (detail["stages"] as Json[]).map(({ stage: name, state, attempt, advisory, silent_for_ms }) => ({
        stage: name,
        state,
        attempt,
        advisory,
        silent_for_ms,
      }));
      expect(summary["stages"] as Json[]).toEqual(strip);
      for (const one of summary["stages"] as Json[]) expect(keys(one)).toBe(stripKeys);
    }
  });

  test("7.10 body: the file's text now, without frontmatter, trimmed; empty when it cannot be read", async () => {
    const id = await stage.post("bodied", { trigger: { kind: "manual" }, body: "\n  First.\n\nLast.  \n\n" });
    expect((await stage.value(id))["body"]).toBe("First.\n\nLast.");
    const path = ".agents/sloop/tickets/bodied.md";
    stage.scene.write(path, `${stage.scene.read(path)}More.\n`);
    expect((await stage.value(id))["body"]).toBe("First.\n\nLast.  \n\n\nMore.");
    stage.scene.git("rm", "-q", "--cached", "--ignore-unmatch", path);
    await Bun.file(`${stage.scene.root}/${path}`).delete();
    expect((await stage.value(id))["body"]).toBe("");
    stage.scene.write(path, `---\nid: ${id}\nname: bodied\nblocked_by: []\n---\nBack.\n`);
  });
});

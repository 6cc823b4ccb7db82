// What a merge would land against what the gates passed on: every way the two can differ, and those that do not matter.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { GateTree, StageRecord, StageTree, StageVerdict, Uncommitted } from "../../src/core/evidence.ts";
import type { Action, ResultCheck, Stage } from "../../src/core/flow.ts";
import { gatePhase, unverifiedReason, type Walked } from "../../src/core/verified.ts";

const agent: Action = { kind: "agent" };
const command: Action = { kind: "exec", cmd: ["true"] };
const none: ResultCheck = { kind: "none" };
const check: ResultCheck = { kind: "exec", cmd: ["true"] };
const panel: ResultCheck = { kind: "panel", prompt: "p.md", reviewers: [], quorum: 2 };

function stage(name: string, action: Action, resultCheck: ResultCheck = none): Stage {
  return { name, action, resultCheck, failAction: { kind: "fail" } };
}

const build = stage("build", agent, { kind: "commits" });
const lint = stage("lint", command);
const verify = stage("verify", agent, check);
const review = stage("review", command, panel);
const more = stage("more", command);
const checked = stage("checked", command, check);
const maker = stage("maker", command, { kind: "commits" });
const report = stage("report", command, { kind: "reported" });
const sync = stage("sync", { kind: "sync" });

/** One execution as it was observed; a gate by default sees what it leaves, clean. */
type Step = {
  stage: Stage;
  from: string | null;
  to: string | null;
  attempt?: number;
  failed?: boolean;
  /** What its processes were started on; default one, on `from` for a command and on `to` for a check. */
  starts?: (Partial<Omit<GateTree, "uncommitted">> & { uncommitted?: Path[] | null })[];
  left?: Path[] | null;
  /** Where the branch stood when a verdict was filed. */
  verdict?: string;
};
/** A path alone stands for one that is always the same. */
type Path = string | Uncommitted;

const paths = (list: Path[] | null): Uncommitted[] | null =>
  list?.map((one) => (typeof one === "string" ? { path: one, oid: `object ${one}` } : one)) ?? null;

function walked(steps: Step[]): Walked {
  const stages = [...new Set(steps.map((step) => step.stage))];
  const log: StageRecord[] = [];
  const gateTrees: GateTree[] = [];
  const stageTrees: StageTree[] = [];
  const verdicts: StageVerdict[] = [];
  for (const { stage: at, from, to, attempt = 1, failed = false, starts, left = [], verdict } of steps) {
    const stageIndex = stages.indexOf(at);
    const phase = gatePhase(at) ?? "action";
    const seen = phase === "action" ? from : to;
    if (verdict !== undefined) {
      verdicts.push({ stage: at.name, attempt, verdict: "pass", confidence: null, reason: null, tip: verdict });
    }
    for (const start of starts ?? (gatePhase(at) === null ? [] : [{}])) {
      gateTrees.push({
        stageIndex,
        attempt,
        phase,
        seat: null,
        head: seen,
        tip: seen,
        more: false,
        content: null,
        ...start,
        uncommitted: paths(start.uncommitted === undefined ? [] : start.uncommitted),
      });
    }
    stageTrees.push({
      stageIndex,
      attempt,
      from,
      tip: to,
      tree: `tree of ${to}`,
      uncommitted: gatePhase(at) === null ? null : paths(left),
    });
    const row = { stageIndex, stage: at.name, attempt, startedAtMs: 1, finishedAtMs: 2, exitCode: 0 };
    log.push({
      ...row,
      phase: "action",
      state: failed ? "failed" : "passed",
      verdictSource: "exit_code",
      reason: null,
    });
  }
  return { flow: { name: "f", stages }, branch: "sloop/x", log, verdicts, gateTrees, stageTrees };
}

const made: Step = { stage: build, from: "a", to: "b" };

const refused: [what: string, steps: Step[], tip: string, reason: string][] = [
  [
    "a command that saw a file nobody committed",
    [made, { stage: lint, from: "b", to: "b", starts: [{ uncommitted: ["x.ts"] }], left: ["x.ts"] }],
    "b",
    "`lint` passed with uncommitted files (x.ts); commit or ignore them",
  ],
  [
    "a check that saw many",
    [{ stage: verify, from: "a", to: "b", starts: [{ uncommitted: [..."1234567"] }], left: [..."1234567"] }],
    "b",
    "`verify` passed with uncommitted files (1, 2, 3, 4, 5 and 2 more); commit or ignore them",
  ],
  [
    "files that were there before a gate do not become its leavings",
    [
      made,
      { stage: lint, from: "b", to: "b", failed: true, starts: [{ uncommitted: ["x"] }], left: ["x", "log"] },
      { ...made, attempt: 2 },
      { stage: lint, attempt: 2, from: "b", to: "b", starts: [{ uncommitted: ["x", "log"] }], left: ["x", "log"] },
    ],
    "b",
    "`lint` passed with uncommitted files (x); commit or ignore them",
  ],
  [
    "what a later command commits in other words",
    [
      { stage: verify, from: "a", to: "a", starts: [{ uncommitted: ["x"], content: "tree of z" }], left: ["x"] },
      { stage: lint, from: "a", to: "b", starts: [{ uncommitted: ["x"] }] },
    ],
    "b",
    "`verify` passed with uncommitted files (x); commit or ignore them",
  ],
  [
    "a check of what a command made, and forgot to commit",
    [made, { stage: checked, from: "b", to: "c", starts: [{ uncommitted: ["x"] }], left: ["x"] }],
    "c",
    "`checked` passed with uncommitted files (x); commit or ignore them",
  ],
  [
    "an edit of what an earlier attempt had left",
    [
      made,
      { stage: lint, from: "b", to: "b", failed: true, left: ["snap"] },
      { ...made, attempt: 2, from: "b" },
      {
        stage: lint,
        attempt: 2,
        from: "b",
        to: "b",
        starts: [{ uncommitted: [{ path: "snap", oid: "other" }] }],
        left: [{ path: "snap", oid: "other" }],
      },
    ],
    "b",
    "`lint` passed with uncommitted files (snap); commit or ignore them",
  ],
  [
    "a folder that was new, and that the gate staged",
    [made, { stage: lint, from: "b", to: "b", starts: [{ uncommitted: ["lib/"] }], left: ["lib/x"] }],
    "b",
    "`lint` passed with uncommitted files (lib/); commit or ignore them",
  ],
  [
    "an edit in a repository of its own, which no commit holds",
    [
      made,
      {
        stage: lint,
        from: "b",
        to: "b",
        starts: [{ uncommitted: [{ path: "sub", oid: null }], content: "tree of b" }],
        left: [{ path: "sub", oid: null }],
      },
    ],
    "b",
    "`lint` passed with uncommitted files (sub); commit or ignore them",
  ],
  [
    "more files than are listed",
    [made, { stage: lint, from: "b", to: "b", starts: [{ uncommitted: ["x"], more: true }], left: null }],
    "b",
    "`lint` passed with uncommitted files (x and many more); commit or ignore them",
  ],
  [
    "a commit during a test",
    [made, { stage: lint, from: "b", to: "c" }],
    "c",
    "sloop/x moved to c while `lint` judged it; a stage that is to commit says so by `result_check: { builtin: commits }`",
  ],
  [
    "a commit after its own verdict",
    [made, { stage: report, from: "b", to: "c", verdict: "b" }],
    "c",
    "sloop/x moved to c while `report` judged it",
  ],
  [
    "a HEAD elsewhere",
    [made, { stage: lint, from: "b", to: "b", starts: [{ head: "c" }] }],
    "b",
    "`lint` passed on c, but sloop/x stood at b",
  ],
  [
    "a worktree that is none",
    [made, { stage: lint, from: "b", to: "b", starts: [{ head: null }] }],
    "b",
    "git could not tell what `lint` passed on",
  ],
  [
    "git without an answer",
    [made, { stage: lint, from: "b", to: "b", starts: [{ uncommitted: null }] }],
    "b",
    "git could not tell what `lint` passed on",
  ],
  [
    "a commit after the last stage",
    [made, { stage: lint, from: "b", to: "b" }],
    "c",
    "sloop/x moved from b to c after `lint`, outside any stage",
  ],
  [
    "a commit between two gates",
    [made, { stage: review, from: "b", to: "b", starts: [{ tip: "b" }] }, { stage: lint, from: "c", to: "c" }],
    "c",
    "sloop/x moved from b to c after `review`, outside any stage",
  ],
  [
    "a commit before a sync",
    [made, { stage: lint, from: "b", to: "b" }, { stage: sync, from: "c", to: "d" }],
    "d",
    "sloop/x moved from b to c after `lint`, outside any stage",
  ],
  [
    "a commit while reviewers were seated",
    [
      made,
      {
        stage: review,
        from: "b",
        to: "c",
        starts: [
          { head: "b", tip: "b" },
          { head: "c", tip: "c" },
        ],
      },
    ],
    "c",
    "sloop/x moved to c while `review` judged it",
  ],
];

const fine: [what: string, steps: Step[], tip: string][] = [
  ["no gate at all", [made], "z"],
  ["a gate that failed and was let pass", [made, { stage: lint, from: "b", to: "b", failed: true }], "z"],
  ["a gate that saw the tip", [made, { stage: lint, from: "b", to: "b" }], "b"],
  [
    "a command that commits what it found",
    [made, { stage: lint, from: "b", to: "c", starts: [{ uncommitted: ["x"], content: "tree of c" }] }],
    "c",
  ],
  ["a command that is the first to commit", [{ stage: lint, from: "a", to: "b" }], "b"],
  [
    "a command that commits, and one that looks at it",
    [made, { stage: lint, from: "b", to: "c" }, { stage: more, from: "c", to: "c" }],
    "c",
  ],
  [
    "a command that says that it commits",
    [made, { stage: lint, from: "b", to: "b" }, { stage: maker, from: "b", to: "c" }],
    "c",
  ],
  ["a reviewer that commits before its verdict", [made, { stage: report, from: "b", to: "c", verdict: "c" }], "c"],
  ["what the gate itself leaves", [made, { stage: lint, from: "b", to: "b", left: ["log"] }], "b"],
  [
    "what it left at an earlier attempt",
    [
      made,
      { stage: lint, from: "b", to: "b", failed: true, left: ["log"] },
      { stage: build, attempt: 2, from: "b", to: "c" },
      { stage: lint, attempt: 2, from: "c", to: "c", starts: [{ uncommitted: ["log"] }], left: ["log"] },
    ],
    "c",
  ],
  [
    "what a later command commits as it was",
    [
      { stage: verify, from: "a", to: "a", starts: [{ uncommitted: ["x"], content: "tree of b" }], left: ["x"] },
      { stage: lint, from: "a", to: "b", starts: [{ uncommitted: ["x"] }] },
      { stage: sync, from: "b", to: "c" },
    ],
    "c",
  ],
  ["a sync after the gate", [made, { stage: lint, from: "b", to: "b" }, { stage: sync, from: "b", to: "c" }], "c"],
  [
    "an agent after the gate",
    [made, { stage: lint, from: "b", to: "b" }, { stage: build, attempt: 2, from: "b", to: "c" }],
    "c",
  ],
  [
    "a gate whose earlier attempt saw something else",
    [
      made,
      { stage: lint, from: "b", to: "b", starts: [{ head: "z" }], failed: true },
      { stage: build, attempt: 2, from: "c", to: "d" },
      { stage: lint, attempt: 2, from: "d", to: "d" },
    ],
    "d",
  ],
  [
    "an execution that an earlier daemon began",
    [made, { stage: lint, from: "b", to: "b" }, { stage: sync, from: null, to: "d" }],
    "d",
  ],
  ["a walk that nobody observed", [made, { stage: lint, from: null, to: null, starts: [] }], "z"],
];

describe("not verified", () => {
  test.each(refused)("%s", (_what, steps, tip, reason) => {
    expect(unverifiedReason(walked(steps), tip)).toBe(reason);
  });
});

describe("verified", () => {
  test.each(fine)("%s", (_what, steps, tip) => {
    expect(unverifiedReason(walked(steps), tip)).toBeNull();
  });
});

test("an unbroken walk is verified at its own end and nowhere else", () => {
  const kinds = fc.constantFrom(build, lint, verify, review, sync);
  fc.assert(
    fc.property(fc.array(fc.record({ kind: kinds, moves: fc.boolean() }), { minLength: 1, maxLength: 12 }), (moves) => {
      const attempts = new Map<Stage, number>();
      let tip = 0;
      const steps = moves.map(({ kind, moves: moving }): Step => {
        attempts.set(kind, 1 + (attempts.get(kind) ?? 0));
        const from = `${tip}`;
        // What judges must stand still.
        if (moving && gatePhase(kind) !== "action" && kind !== review) tip += 1;
        return { stage: kind, attempt: attempts.get(kind)!, from, to: `${tip}` };
      });
      const walk = walked(steps);
      expect(unverifiedReason(walk, `${tip}`)).toBeNull();
      if (moves.some(({ kind }) => gatePhase(kind) !== null))
        expect(unverifiedReason(walk, "elsewhere")).not.toBeNull();
    }),
  );
});

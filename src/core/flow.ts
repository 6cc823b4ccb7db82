// What a flow is: stages in order, each an action, the check that judges it, and what happens when it fails.

export type Action =
  | { kind: "agent" }
  | { kind: "exec"; cmd: string[] }
  | { kind: "sync" }
  | { kind: "merge"; ffOnly: boolean };

export type Reviewer = { target: string; model: string | null; effort: string | null };

export type ResultCheck =
  | { kind: "none" }
  | { kind: "reported" }
  | { kind: "commits" }
  | { kind: "exec"; cmd: string[] }
  | { kind: "panel"; prompt: string; reviewers: Reviewer[]; quorum: number };

export type FailAction =
  | { kind: "fail" }
  | { kind: "continue" }
  | { kind: "return_to"; stage: string; attempts: number };

export type Stage = { name: string; action: Action; resultCheck: ResultCheck; failAction: FailAction };

export type Flow = { name: string; stages: Stage[] };

/** The flow under the name `default` when no `flows/default.yaml` exists: build, then merge. */
export const builtInFlow: Flow = {
  name: "default",
  stages: [
    { name: "build", action: { kind: "agent" }, resultCheck: { kind: "commits" }, failAction: { kind: "fail" } },
    {
      name: "merge",
      action: { kind: "merge", ffOnly: false },
      resultCheck: { kind: "none" },
      failAction: { kind: "fail" },
    },
  ],
};

/** Adds the implicit `test` stage of `flow.test_cmd` to a run's own copy (engine.md 9.1); done once, at the claim. */
export function spliceTest(flow: Flow, testCmd: string[] | null): Flow {
  if (testCmd === null) return flow;
  const stage: Stage = {
    name: "test",
    action: { kind: "exec", cmd: testCmd },
    resultCheck: { kind: "none" },
    failAction: { kind: "fail" },
  };
  const at = flow.stages[0]?.action.kind === "merge" ? 0 : 1;
  return { name: flow.name, stages: [...flow.stages.slice(0, at), stage, ...flow.stages.slice(at)] };
}

/** Index of the flow's first agent stage, the one whose exit is the run's; -1 when it has none. */
export function primaryIndex(flow: Flow): number {
  return flow.stages.findIndex((stage) => stage.action.kind === "agent");
}

// Flow files: shape, each stage's rules, then the rules of the whole.

import type { Flow, Stage } from "../core/flow.ts";
import { checkStage } from "./flow-rules.ts";
import { type RawStage, readStages } from "./flow-shape.ts";
import { openSource, parseSource, refuse, type Source } from "./shape.ts";

const worstCaseLimit = 48;

/** Stage processes a flow can start at most: its own cost plus each return edge's, added and not multiplied (files.md 9.4). */
export function worstCase(stages: Stage[]): number {
  const costs = stages.map(
    (stage) => 1 + (stage.resultCheck.kind === "panel" ? stage.resultCheck.reviewers.length : 0),
  );
  const sum = (from: number, through: number) =>
    costs.slice(from, through + 1).reduce((total, cost) => total + cost, 0);
  let total = sum(0, stages.length - 1);
  for (const [index, { failAction }] of stages.entries()) {
    if (failAction.kind !== "return_to") continue;
    const target = stages.findIndex((stage) => stage.name === failAction.stage);
    total += failAction.attempts * sum(target, index);
  }
  return total;
}

type Whole = { source: Source; stages: Stage[]; raw: RawStage[]; at: number };

function checkMerge({ source, stages, raw, at }: Whole): void {
  const merges = stages.flatMap((stage, index) => (stage.action.kind === "merge" ? [index] : []));
  const [first] = merges;
  if (first === undefined) return;
  if (merges.length > 1) {
    refuse(source, raw[merges[1] ?? 0]?.at ?? at, `a flow may have at most one merge stage, found ${merges.length}`);
  }
  const late = stages.findIndex((stage, index) => index > first && stage.action.kind === "sync");
  if (late >= 0) {
    refuse(source, raw[late]?.at ?? at, `sync stage \`${stages[late]?.name}\` must come before the merge stage`);
  }
  if (first !== stages.length - 1) {
    refuse(source, raw[first]?.at ?? at, `the merge stage must be last, but \`${stages[first]?.name}\` is not`);
  }
}

function checkReturns({ source, stages, raw, at }: Whole): void {
  const earlier = new Set<string>();
  for (const [index, stage] of stages.entries()) {
    const { failAction } = stage;
    if (failAction.kind === "return_to" && !earlier.has(failAction.stage)) {
      const known = [...earlier].map((name) => `\`${name}\``).join(", ") || "none";
      const problem = `stage \`${stage.name}\`: return_to must name an earlier stage, and \`${failAction.stage}\` is none (${known})`;
      refuse(source, raw[index]?.failAction?.at ?? at, problem);
    }
    earlier.add(stage.name);
  }
}

function checkWhole(whole: Whole): void {
  const { source, stages, at } = whole;
  if (stages.length === 0) refuse(source, at, "a flow must define at least one stage");
  checkMerge(whole);
  checkReturns(whole);
  const total = worstCase(stages);
  if (total > worstCaseLimit) {
    const problem = `a flow may run at most ${worstCaseLimit} stages in the worst case, and this one's stages, panel seats and return_to attempts imply ${total}`;
    refuse(source, at, problem);
  }
}

/** Reads a flow file; `name` is its file's stem. Throws `invalid_arguments` naming `path` at the first problem. */
export function parseFlow(name: string, path: string, text: string): Flow {
  const source = openSource(path, text);
  const { stages: raw, at } = readStages(source, parseSource(source));
  const earlier = new Set<string>();
  const stages: Stage[] = [];
  for (const stage of raw) {
    stages.push(checkStage(source, stage, earlier));
    earlier.add(stage.name);
  }
  checkWhole({ source, stages, raw, at });
  return { name, stages };
}

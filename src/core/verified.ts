// Whether what a merge would land is what the run's gates passed on: decided from what was observed around them.

import type { GateTree, StageRecord, StageTree } from "./evidence.ts";
import type { Flow, Stage } from "./flow.ts";

/** A walk as far as it went, and what was observed beside it. */
export type Walked = {
  flow: Flow;
  branch: string;
  log: readonly StageRecord[];
  gateTrees: readonly GateTree[];
  stageTrees: readonly StageTree[];
};

type Execution = { stage: Stage; index: number; attempt: number; passed: boolean };

/** Whether a stage judges what lies in the worktree by a process of its own, rather than making it. */
export function isGate({ action, resultCheck }: Stage): boolean {
  return action.kind === "exec" || resultCheck.kind === "exec" || resultCheck.kind === "panel";
}

function executionsOf({ flow, log }: Walked): Execution[] {
  return log.flatMap(({ stageIndex: index, attempt, state }) => {
    const stage = flow.stages[index];
    return stage === undefined || state === null ? [] : [{ stage, index, attempt, passed: state === "passed" }];
  });
}

const mostPaths = 5;

function listed(paths: readonly string[]): string {
  const more = paths.length - mostPaths;
  return paths.slice(0, mostPaths).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

const short = (oid: string) => oid.slice(0, 10);

function startsOf({ gateTrees }: Walked, { index, attempt }: Execution): GateTree[] {
  return gateTrees.filter((tree) => tree.stageIndex === index && tree.attempt === attempt);
}

function endOf({ stageTrees }: Walked, { index, attempt }: Execution): StageTree | undefined {
  return stageTrees.find((tree) => tree.stageIndex === index && tree.attempt === attempt);
}

/** What gates before this one left uncommitted themselves, such as reports and build output. */
function leavings(walked: Walked, before: readonly Execution[]): Set<string> {
  const found = new Set<string>();
  for (const execution of before) {
    const first = startsOf(walked, execution)[0]?.uncommitted;
    if (first == null) continue;
    for (const path of endOf(walked, execution)?.uncommitted ?? []) if (!first.includes(path)) found.add(path);
  }
  return found;
}

type Placed = { gate: Execution; before: readonly Execution[]; after: readonly Execution[] };

/** Whether everything the gate saw was committed later, exactly as it saw it. */
function committedLater(walked: Walked, { gate, after }: Placed): boolean {
  const content = startsOf(walked, gate)[0]?.content ?? null;
  return content !== null && [gate, ...after].some((execution) => endOf(walked, execution)?.tree === content);
}

/** What the gate passed on that is not on the branch; null: nothing. */
function uncommittedReason(walked: Walked, placed: Placed): string | null {
  const { gate, before } = placed;
  const first = startsOf(walked, gate)[0]?.uncommitted ?? [];
  const end = endOf(walked, gate)?.uncommitted ?? first;
  const known = leavings(walked, before);
  // What the gate itself committed or removed made no difference in the end.
  const left = first.filter((path) => end.includes(path) && !known.has(path));
  if (left.length === 0 || committedLater(walked, placed)) return null;
  return `\`${gate.stage.name}\` passed with uncommitted files (${listed(left)})`;
}

function judgeGate(walked: Walked, placed: Placed): string | null {
  const { gate } = placed;
  const { name } = gate.stage;
  const starts = startsOf(walked, gate);
  for (const { head, tip, uncommitted } of starts) {
    if (head === null || tip === null || uncommitted === null) return `git could not tell what \`${name}\` passed on`;
    if (head !== tip) return `\`${name}\` passed on ${short(head)}, but ${walked.branch} stood at ${short(tip)}`;
  }
  const judged = starts.filter((start) => start.phase === "check").map((start) => start.tip);
  const end = endOf(walked, gate)?.tip ?? null;
  if (judged.length > 0 && end !== null && judged.some((tip) => tip !== end)) {
    return `${walked.branch} moved to ${short(end)} while \`${name}\` judged it`;
  }
  return uncommittedReason(walked, placed);
}

/** Where the branch stood when an execution began; null: not observed, as when an earlier daemon began it. */
function begun(walked: Walked, execution: Execution): string | null {
  const observed = execution.stage.action.kind === "exec" ? startsOf(walked, execution)[0]?.tip : undefined;
  return observed ?? endOf(walked, execution)?.from ?? null;
}

/** The branch may move only inside executions: from the first gate's on, each begins where the one before ended. */
function movedReason(walked: Walked, chain: readonly Execution[], tip: string): string | null {
  for (const [at, execution] of chain.entries()) {
    const left = endOf(walked, execution)?.tip ?? null;
    const next = chain[at + 1];
    const found = next === undefined ? tip : begun(walked, next);
    if (left === null || found === null || left === found) continue;
    return `${walked.branch} moved from ${short(left)} to ${short(found)} after \`${execution.stage.name}\`, outside any stage`;
  }
  return null;
}

/** Positions of the executions that count: each gate's latest, where it passed. */
function passedGates(executions: readonly Execution[]): number[] {
  const latest = new Map<number, number>();
  for (const [at, { stage, index }] of executions.entries()) if (isGate(stage)) latest.set(index, at);
  return [...latest.values()].filter((at) => executions[at]?.passed === true).sort((a, b) => a - b);
}

/**
 * Why the branch's `tip` is not what the run's gates passed on; null when it is, as far as it was observed. A gate sees the
 * worktree, a merge takes the branch: files nobody committed, a HEAD elsewhere and late commits make the two differ.
 */
export function unverifiedReason(walked: Walked, tip: string): string | null {
  const executions = executionsOf(walked);
  const gates = passedGates(executions);
  for (const at of gates) {
    const gate = executions[at];
    if (gate === undefined) continue;
    const reason = judgeGate(walked, { gate, before: executions.slice(0, at), after: executions.slice(at + 1) });
    if (reason !== null) return reason;
  }
  return gates[0] === undefined ? null : movedReason(walked, executions.slice(gates[0]), tip);
}

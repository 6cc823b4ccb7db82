// Whether what a merge would land is what the run's gates passed on: decided from what was observed around them.

import type { GateTree, StageRecord, StageTree, StageVerdict, Uncommitted } from "./evidence.ts";
import type { Flow, Stage } from "./flow.ts";

/** A walk as far as it went, and what was observed beside it. */
export type Walked = {
  flow: Flow;
  branch: string;
  log: readonly StageRecord[];
  verdicts: readonly StageVerdict[];
  gateTrees: readonly GateTree[];
  stageTrees: readonly StageTree[];
};

type Execution = { stage: Stage; index: number; attempt: number; passed: boolean };
type Placed = { gate: Execution; before: readonly Execution[]; after: readonly Execution[] };

/**
 * The phase in which a stage judges what lies in the worktree by a process of its own; null for one that makes it. Where a
 * command or reviewers check what an action did, the action is a maker.
 */
export function gatePhase({ action, resultCheck }: Stage): "action" | "check" | null {
  if (resultCheck.kind === "exec" || resultCheck.kind === "panel") return "check";
  return action.kind === "exec" && resultCheck.kind !== "commits" ? "action" : null;
}

function executionsOf({ flow, log }: Walked): Execution[] {
  return log.flatMap(({ stageIndex: index, attempt, state }) => {
    const stage = flow.stages[index];
    return stage === undefined || state === null ? [] : [{ stage, index, attempt, passed: state === "passed" }];
  });
}

const mostPaths = 5;

function listed(paths: readonly string[], more: boolean): string {
  const left = paths.length - mostPaths;
  const rest = more ? " and many more" : left > 0 ? ` and ${left} more` : "";
  return paths.slice(0, mostPaths).join(", ") + rest;
}

const short = (oid: string) => oid.slice(0, 10);

function startsOf({ gateTrees }: Walked, { index, attempt }: Execution): GateTree[] {
  return gateTrees.filter((tree) => tree.stageIndex === index && tree.attempt === attempt);
}

function endOf({ stageTrees }: Walked, { index, attempt }: Execution): StageTree | undefined {
  return stageTrees.find((tree) => tree.stageIndex === index && tree.attempt === attempt);
}

/** Whether one path is the other, or a folder that holds it. */
function overlap(one: string, other: string): boolean {
  const within = (inner: string, outer: string) => inner === outer || (outer.endsWith("/") && inner.startsWith(outer));
  return within(one, other) || within(other, one);
}

const key = ({ path, oid }: Uncommitted) => `${oid} ${path}`;

/** What gates before this one left uncommitted themselves, such as reports and build output, each as it was left. */
function leavings(walked: Walked, before: readonly Execution[]): Set<string> {
  const found = new Set<string>();
  for (const execution of before) {
    const start = startsOf(walked, execution)[0];
    if (start?.uncommitted == null || start.more) continue;
    for (const left of endOf(walked, execution)?.uncommitted ?? []) {
      const there = start.uncommitted.some(({ path }) => overlap(path, left.path));
      if (!there && left.oid !== null) found.add(key(left));
    }
  }
  return found;
}

/** Whether everything the gate saw was committed later, exactly as it saw it. */
function committedLater(walked: Walked, { gate, after }: Placed): boolean {
  const content = startsOf(walked, gate)[0]?.content ?? null;
  return content !== null && [gate, ...after].some((execution) => endOf(walked, execution)?.tree === content);
}

/** What the gate passed on that is not on the branch; null: nothing. */
function uncommittedReason(walked: Walked, placed: Placed): string | null {
  const { gate, before } = placed;
  const start = startsOf(walked, gate)[0];
  if (start?.uncommitted == null) return null;
  const end = endOf(walked, gate)?.uncommitted ?? null;
  const known = leavings(walked, before);
  // What the gate itself committed or removed made no difference in the end.
  const stayed = ({ path }: Uncommitted) => end === null || end.some((other) => overlap(path, other.path));
  const left = start.uncommitted.filter((one) => !known.has(key(one)) && stayed(one));
  if (left.length === 0 && !start.more) return null;
  if (!start.more && left.every(({ oid }) => oid !== null) && committedLater(walked, placed)) return null;
  const paths = (left.length > 0 ? left : start.uncommitted).map(({ path }) => path);
  return `\`${gate.stage.name}\` passed with uncommitted files (${listed(paths, start.more)}); commit or ignore them`;
}

/** Whether a later gate looked at the branch as well, and passed. */
function judgedLater({ after }: Placed): boolean {
  return after.some(({ stage, passed }) => passed && gatePhase(stage) !== null);
}

/** A branch that moved while it was judged is not what was judged. */
function movedUnderJudge(walked: Walked, placed: Placed): string | null {
  const { gate } = placed;
  const end = endOf(walked, gate);
  if (end?.tip == null) return null;
  const moved = `${walked.branch} moved to ${short(end.tip)} while \`${gate.stage.name}\` judged it`;
  const starts = startsOf(walked, gate);
  if (gatePhase(gate.stage) === "check") return starts.some(({ tip }) => tip !== end.tip) ? moved : null;
  if (gate.stage.resultCheck.kind === "reported") {
    const { name } = gate.stage;
    const report = walked.verdicts.find((filed) => filed.stage === name && filed.attempt === gate.attempt);
    return report?.tip != null && report.tip !== end.tip ? moved : null;
  }
  // A command may commit what it found as it found it, or something that a later gate looks at; and where nobody had
  // committed before, it was the one that makes the work.
  const first = placed.before[0];
  const base = first === undefined ? starts[0]?.tip : begun(walked, first);
  const maker = base == null || starts[0]?.tip === base;
  const same = starts.every(({ tip, content }) => tip === end.tip || (content !== null && content === end.tree));
  if (same || maker || judgedLater(placed)) return null;
  return `${moved}; a stage that is to commit says so by \`result_check: { builtin: commits }\``;
}

function judgeGate(walked: Walked, placed: Placed): string | null {
  const { name } = placed.gate.stage;
  for (const { head, tip, uncommitted } of startsOf(walked, placed.gate)) {
    if (head === null || tip === null || uncommitted === null) return `git could not tell what \`${name}\` passed on`;
    if (head !== tip) return `\`${name}\` passed on ${short(head)}, but ${walked.branch} stood at ${short(tip)}`;
  }
  return movedUnderJudge(walked, placed) ?? uncommittedReason(walked, placed);
}

/** Where the branch stood when an execution began; null: not observed, as when an earlier daemon began it. */
function begun(walked: Walked, execution: Execution): string | null {
  const observed = gatePhase(execution.stage) === "action" ? startsOf(walked, execution)[0]?.tip : undefined;
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
  for (const [at, { stage, index }] of executions.entries()) if (gatePhase(stage) !== null) latest.set(index, at);
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

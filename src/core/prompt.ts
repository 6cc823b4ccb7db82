// What an agent is told: the two bootstraps, the report of a failed attempt, and the one line that says what done means.

import { isBlank, trimBlank } from "./blank.ts";
import type { ResultCheck } from "./flow.ts";

/** First part of every agent stage's prompt. The assignment itself is not in it: it travels by `sloop brief`. */
export const workerBootstrap = `You are a coding agent started by sloop to carry out one ticket.

1. Run \`sloop brief\`. It prints your assignment, the stage you are in and what counts as done. Carry that assignment out.
2. Stay in the current directory. It is a Git worktree made for this run alone; do not change anything outside it.
3. Commit your work before you finish. Uncommitted work does not count.
4. You may run \`sloop brief\` again at any time, for instance when you have lost track of the assignment.
5. If \`sloop brief\` says that this stage needs a reported verdict, run
   \`sloop verdict pass|fail --reason <text>\` exactly once before you finish, if you like with
   \`--confidence low|medium|high\`.`;

/** First part of every panel reviewer's prompt. */
export const reviewerBootstrap = `You are one reviewer on a panel that judges the work in this worktree.

1. Run \`sloop brief\` to read the assignment under review.
2. Read and run whatever helps you to judge: the diff, the code around it, the tests. Change nothing; the work is not yours.
3. Report exactly once, with \`sloop verdict pass|fail --reason <text> [--confidence low|medium|high]\`.
   Finishing without that report counts as a fail.`;

/** An agent stage's prompt: bootstrap, then `instructions.md` verbatim (null: no such file), then the previous-attempt block. */
export function workerPrompt(parts: { instructions: string | null; previousAttempt: string | null }): string {
  const { instructions, previousAttempt } = parts;
  const tail = [instructions, previousAttempt].filter((part) => part !== null);
  return [trimBlank(workerBootstrap), ...tail].join("\n\n");
}

/** A panel seat's prompt: reviewer bootstrap and the panel's prompt file verbatim. The same for every seat. */
export function reviewerPrompt(promptFile: string): string {
  return `${trimBlank(reviewerBootstrap)}\n\n${promptFile}`;
}

const opening = "--- previous attempt failed ---";
const closing = "--- end previous attempt ---";
/** How many lines of a failed execution's output its successor is shown. */
export const previousLines = 100;

/** Why a recorded stage failed, for the block below: its reason, else its exit code, else that it never exited. */
export function attemptReason(row: { reason: string | null; exitCode: number | null }): string {
  if (row.reason !== null && !isBlank(row.reason)) return row.reason;
  return row.exitCode === null ? "the process was killed before it exited" : `exit ${row.exitCode}`;
}

function outputTail(output: string): string[] {
  const text = output.endsWith("\n") ? output.slice(0, -1) : output;
  if (text === "") return [];
  // A tail line must not close or reopen the fence, hence the space.
  const safe = text
    .split("\n")
    .slice(-previousLines)
    .map((line) => (line === opening || line === closing ? ` ${line}` : line));
  return ["", `The last ${previousLines} lines of that stage's output:`, ...safe];
}

/** The report a re-entered agent stage gets (files.md 11, byte exact). `output`: all that the failed execution printed. */
export function previousAttemptBlock(failure: {
  stage: string;
  attempt: number;
  reason: string;
  output: string;
}): string {
  const { stage, attempt, reason, output } = failure;
  return [
    opening,
    `Stage \`${stage}\` (attempt ${attempt}) failed: ${reason}`,
    "You are running again to address that failure.",
    ...outputTail(output),
    closing,
  ].join("\n");
}

/** The brief's one line on what done means. Only the answer for the check of new commits may contain that word. */
export function definitionOfDone(reader: { seat: boolean; check: ResultCheck["kind"] }): string {
  if (reader.seat) {
    return "Your seat passes only on its reported verdict; the work is not yours to change";
  }
  switch (reader.check) {
    case "commits":
      return "Commit your work to the run branch";
    case "reported":
      return "The stage passes only on its reported verdict";
    case "none":
      return "Your own exit status decides";
    case "exec":
    case "panel":
      return "An independent check judges the work after you exit";
  }
}

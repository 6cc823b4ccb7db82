// `verdict`: the one worker claim that counts, once per execution or seat, and only where the flow asked for it.

import { trimBlank } from "../core/blank.ts";
import { SloopError } from "../core/errors.ts";
import type { Confidence } from "../core/evidence.ts";
import type { Daemon, TokenScope } from "../daemon/context.ts";
import { readBranchTip } from "../git/inspect.ts";
import type { VerdictReply } from "../protocol/replies.ts";
import type { Params } from "../protocol/verbs.ts";
import { fileReport, fileVerdict } from "../store/evidence.ts";
import { readRun } from "../store/runs.ts";
import { executingRun, scopedStage } from "./brief.ts";
import type { Handler } from "./handler.ts";

type Report = { verdict: "pass" | "fail"; confidence: Confidence; reason: string | null };

function alreadyReported(stage: string): SloopError {
  return new SloopError("conflict", `a verdict for stage \`${stage}\` was already reported; the first one is final`);
}

function reportSeat(daemon: Daemon, scope: TokenScope & { seat: number }, report: Report): VerdictReply {
  const reason = trimBlank(report.reason ?? "");
  if (reason === "")
    throw new SloopError("invalid_arguments", "a reviewer's verdict needs a reason: pass `--reason TEXT`");
  const { runId, stage, stageIndex, attempt, seat } = scope;
  const filed = { stage, stageIndex, attempt, reviewer: seat, ...report, reason };
  const first = daemon.store.write((tx) => fileReport(tx, runId, filed, daemon.clock.now()));
  if (!first) throw alreadyReported(stage);
  return { verdict: { run: runId, stage, reviewer: seat, ...report, reason } };
}

function reportStage(daemon: Daemon, scope: TokenScope, report: Report): VerdictReply {
  const { runId, stage, attempt } = scope;
  const branch = readRun(daemon.store.db, runId)?.branch ?? null;
  // What comes after a verdict was not judged by it.
  const tip = branch === null ? null : readBranchTip(daemon.paths.root, branch);
  const filed = { stage, attempt, ...report, tip };
  const first = daemon.store.write((tx) => fileVerdict(tx, runId, filed, daemon.clock.now()));
  if (!first) throw alreadyReported(stage);
  return { verdict: { run: runId, stage, attempt, ...report } };
}

function reportOf(args: Params<"verdict">): Report {
  return { verdict: args.verdict, confidence: args.confidence ?? "medium", reason: args.reason ?? null };
}

export const verdict: Handler<"verdict"> = (daemon, args, caller) => {
  const { scope } = caller;
  const run = executingRun(daemon, scope);
  const { seat } = scope;
  if (seat !== null) return reportSeat(daemon, { ...scope, seat }, reportOf(args));
  if (scopedStage(run, scope).resultCheck.kind !== "reported") {
    throw new SloopError(
      "unauthorized",
      `stage \`${scope.stage}\` takes no verdict: its check is not \`result_check: reported\``,
    );
  }
  return reportStage(daemon, scope, reportOf(args));
};

// A panel's reviewers, strictly one after another, each with a credential of its own (engine.md 11.5).

import type { ResultCheck } from "../core/flow.ts";
import { readFacts } from "../store/evidence.ts";
import { reviewerCommand, stageEnvironment } from "./agent.ts";
import type { Daemon } from "./context.ts";
import { mintCredential } from "./credential.ts";
import { execute, requireNotCancelled } from "./execute.ts";
import type { Execution } from "./stage.ts";
import { recordGateTree } from "./trees.ts";

type Panel = Extract<ResultCheck, { kind: "panel" }>;

function reported(daemon: Daemon, { run, index, attempt }: Execution, seat: number): boolean {
  return readFacts(daemon.store.db, run.runId).reports.some(
    (report) => report.stageIndex === index && report.attempt === attempt && report.reviewer === seat,
  );
}

async function seatReviewer(daemon: Daemon, execution: Execution, panel: Panel, seat: number): Promise<void> {
  const { run, stage, index, attempt } = execution;
  const reviewer = panel.reviewers[seat];
  if (reviewer === undefined) return;
  const fields = { run_id: run.runId, stage: stage.name, reviewer: seat, target: reviewer.target };
  const scope = { runId: run.runId, stage: stage.name, stageIndex: index, attempt, seat };
  const result = await execute(daemon, execution, {
    phase: "check",
    seat,
    source: "stage",
    gated: true,
    // Only when the reviewer has to be started: one that is at work already needs no prompt any more.
    launch: async () => {
      await recordGateTree(daemon, execution, { phase: "check", seat });
      const argv = reviewerCommand(daemon, panel.prompt, reviewer);
      const credential = mintCredential(daemon, run.live, scope);
      daemon.log.info("sloop::driver", "panel_reviewer_spawned", fields);
      return { argv, environment: stageEnvironment(daemon, { ...run, stage, attempt }, credential) };
    },
  });
  if (result.kind === "not_started") {
    daemon.log.warn("sloop::driver", "panel_reviewer_failed", { ...fields, error: result.problem });
  }
}

/** Runs every seat that has not reported yet. Exit codes are ignored: only reports count. Throws WalkError without the prompt file. */
export async function seatReviewers(daemon: Daemon, execution: Execution, panel: Panel): Promise<void> {
  for (let seat = 0; seat < panel.reviewers.length; seat += 1) {
    requireNotCancelled(daemon, execution.run.runId);
    if (reported(daemon, execution, seat)) {
      const fields = { run_id: execution.run.runId, stage: execution.stage.name, reviewer: seat };
      daemon.log.info("sloop::driver", "panel_reviewer_already_reported", fields);
      continue;
    }
    await seatReviewer(daemon, execution, panel, seat);
  }
}

// The stage strip: `build:ok -> test:.. -> merge:-` (cli.md 13.3).

import { formatSpan } from "../core/duration.ts";
import type { StageStrip } from "../protocol/rows.ts";
import type { Style } from "./style.ts";

/** The stage's name, with `#N` from its second execution on. */
export function stageLabel(stage: Pick<StageStrip, "stage" | "attempt">): string {
  return stage.attempt > 1 ? `${stage.stage}#${stage.attempt}` : stage.stage;
}

function marker(stage: StageStrip, style: Style): string {
  switch (stage.state) {
    case "passed":
      return style.paint("green", "ok");
    case "failed":
      return stage.advisory ? style.paint("yellow", "warn") : style.paint("red", "FAIL");
    case "running":
      return stage.silent_for_ms === null ? ".." : `running (no output ${formatSpan(stage.silent_for_ms)})`;
    case "pending":
      return "-";
  }
}

/** All stage executions in the order given, joined by the arrow. */
export function renderStrip(stages: readonly StageStrip[], style: Style): string {
  return stages.map((stage) => `${stageLabel(stage)}:${marker(stage, style)}`).join(style.arrow);
}

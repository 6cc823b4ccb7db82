// Whether the agent that just exited was turned away by its vendor: the rules held against what it printed.

import { setImmediate as yieldToOthers } from "node:timers/promises";
import { coolsDown, type VendorEvidence } from "../core/evidence.ts";
import { RejectionScanner } from "../core/rejection.ts";
import { type OutputLabels, recordContent } from "../system/output.ts";
import { readForward } from "../system/output-read.ts";
import { outputLog } from "../system/paths.ts";
import type { Daemon } from "./context.ts";
import type { Execution } from "./stage.ts";

const cooldownMs = 300_000;
const pageRecords = 256;
const pageBytes = 4 * 1024 * 1024;

/** Reads this execution's agent records only: what a test prints, or an agent merely quotes elsewhere, is not looked at. */
async function scan(daemon: Daemon, { run, stage, attempt }: Execution, scanner: RejectionScanner): Promise<void> {
  const own = (labels: OutputLabels) =>
    labels.source === "agent" && labels.stage === stage.name && (labels.attempt ?? 1) === attempt;
  for (let after = 0; ; ) {
    const page = await readForward(outputLog(daemon.paths, run.runId), {
      after,
      filter: own,
      limit: pageRecords,
      maxBytes: pageBytes,
    });
    for (const record of page.records) {
      scanner.feed(record.stream, Buffer.from(recordContent(record)).toString("latin1"));
    }
    if (page.complete) return;
    after = page.nextCursor;
    await yieldToOthers();
  }
}

/** The rejection an agent's output shows, with the instant its cooldown ends; null when there is none. Never throws. */
export async function classifyAgent(
  daemon: Daemon,
  execution: Execution,
  exitCode: number | null,
): Promise<VendorEvidence | null> {
  const scanner = new RejectionScanner(daemon.vendorRules);
  try {
    await scan(daemon, execution, scanner);
  } catch (error) {
    const fields = { run_id: execution.run.runId, error: String(error) };
    daemon.log.error("sloop::driver", "vendor_error_classification_failed", fields);
  }
  const rule = scanner.finish(exitCode);
  if (rule === null) return null;
  const { vendor, id, diagnostic } = rule;
  const until = coolsDown(rule.class) ? daemon.clock.now() + cooldownMs : null;
  return { class: rule.class, vendor, rule_id: id, diagnostic, cooldown_until_ms: until };
}

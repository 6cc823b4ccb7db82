// Silence of a running agent: reported once, then ended (engine.md 14.2).

import { readFacts, storeStall } from "../store/evidence.ts";
import { readRun } from "../store/runs.ts";
import type { OutputLabels } from "../system/output.ts";
import { latestRecord } from "../system/output-read.ts";
import { outputLog } from "../system/paths.ts";
import type { Daemon, LiveRun, Silence } from "./context.ts";
import type { Launcher } from "./launch.ts";
import { stopRecordedProcess } from "./stop-process.ts";

type Watched = LiveRun & { silence: Silence };

function watched(daemon: Daemon): Watched[] {
  return [...daemon.live.values()].filter(
    (live): live is Watched =>
      live.silence !== null && live.supervised && !live.cancelling && !live.stalling && !live.recovering,
  );
}

/** The instants (epoch ms) at which a silence becomes worth a report or an end. */
export function silenceDeadlines(daemon: Daemon): number[] {
  const { stallReportAfterMs, stallAfterMs } = daemon.config;
  return watched(daemon).flatMap(({ silence, reportedStall }) => {
    const kill = silence.lastOutputAtMs + stallAfterMs;
    return reportedStall === silence.lastOutputSequence ? [kill] : [silence.lastOutputAtMs + stallReportAfterMs, kill];
  });
}

/** The supervisor's notices may lag behind the log, so the log is asked before anybody is warned or killed. */
async function refreshSilence(daemon: Daemon, live: Watched): Promise<void> {
  const { stage, attempt } = live.silence;
  const own = (labels: OutputLabels) =>
    labels.source === "agent" && labels.stage === stage && (labels.attempt ?? 1) === attempt;
  const record = await latestRecord(outputLog(daemon.paths, live.runId), own);
  if (record === null || record.sequence === live.silence.lastOutputSequence) return;
  live.silence.lastOutputSequence = record.sequence;
  live.silence.lastOutputAtMs = Math.max(live.silence.lastOutputAtMs, Date.parse(record.timestamp));
}

function report(daemon: Daemon, live: Watched, silentForMs: number): void {
  const { stage, lastOutputSequence } = live.silence;
  if (live.reportedStall === lastOutputSequence) return;
  live.reportedStall = lastOutputSequence;
  daemon.log.warn("sloop::dispatcher", "run_output_stalled", {
    run_id: live.runId,
    ticket_id: live.ticketId,
    stage,
    silent_for_ms: silentForMs,
    last_output_sequence: lastOutputSequence,
  });
}

async function endStalled(daemon: Daemon, live: Watched, silentForMs: number): Promise<void> {
  const { stage, lastOutputAtMs, lastOutputSequence } = live.silence;
  const stall = {
    stage,
    last_output_at_ms: lastOutputAtMs,
    threshold_ms: daemon.config.stallAfterMs,
    last_output_sequence: lastOutputSequence,
  };
  const stored = daemon.store.write((tx) => storeStall(tx, live.runId, stall, daemon.clock.now()));
  if (!stored) return;
  live.stalling = true;
  daemon.log.warn("sloop::dispatcher", "run_output_stall_terminated", {
    run_id: live.runId,
    ticket_id: live.ticketId,
    silent_for_ms: silentForMs,
    ...stall,
  });
  await stopRecordedProcess(daemon, live.runId);
}

async function judge(daemon: Daemon, live: Watched): Promise<void> {
  await refreshSilence(daemon, live);
  if (live.silence === null || readRun(daemon.store.db, live.runId)?.state !== "running") return;
  if (readFacts(daemon.store.db, live.runId).cancelRequested) return;
  const silentForMs = daemon.clock.now() - live.silence.lastOutputAtMs;
  if (silentForMs >= daemon.config.stallReportAfterMs) report(daemon, live, silentForMs);
  if (silentForMs >= daemon.config.stallAfterMs) await endStalled(daemon, live, silentForMs);
}

/** Looks at every running agent whose silence has reached a threshold. */
export function watchSilence({ daemon, looking }: Launcher): void {
  const now = daemon.clock.now();
  for (const live of watched(daemon)) {
    const { lastOutputAtMs, lastOutputSequence } = live.silence;
    const { stallReportAfterMs, stallAfterMs } = daemon.config;
    const threshold = live.reportedStall === lastOutputSequence ? stallAfterMs : stallReportAfterMs;
    if (now < lastOutputAtMs + threshold || looking.has(live.runId)) continue;
    looking.add(live.runId);
    void judge(daemon, live)
      .catch((error) => {
        const fields = { run_id: live.runId, error: String(error) };
        daemon.log.error("sloop::dispatcher", "output_stall_persist_failed", fields);
      })
      .finally(() => {
        looking.delete(live.runId);
        daemon.poke();
      });
  }
}

// Rows put straight into a test's store: what a daemon would have written, with as little said as possible.

import type { Flow } from "../../src/core/flow.ts";
import { builtInFlow } from "../../src/core/flow.ts";
import { renderFlowSnapshot } from "../../src/core/snapshot.ts";
import { terminal } from "../../src/core/ticket.ts";
import {
  events,
  notes,
  projects,
  runEvidence,
  runs,
  stageRuns,
  ticketBlockers,
  tickets,
  triggerFilters,
  triggers,
} from "../../src/store/tables.ts";
import { startMs, type TestDaemon } from "./context.ts";

type Insert<T> = Partial<T>;

export function addProject(daemon: TestDaemon, id: string, more: Insert<typeof projects.$inferInsert> = {}): void {
  const filePath = `.agents/sloop/projects/${id}.md`;
  daemon.store.db
    .insert(projects)
    .values({ id, filePath, sourceRef: filePath, title: id, createdAtMs: startMs, updatedAtMs: startMs, ...more })
    .onConflictDoNothing()
    .run();
}

export function addTicket(
  daemon: TestDaemon,
  id: string,
  more: Insert<typeof tickets.$inferInsert> & { blockedBy?: string[] } = {},
): void {
  const { blockedBy = [], ...columns } = more;
  const projectId = columns.projectId ?? "default";
  addProject(daemon, projectId);
  const filePath = `.agents/sloop/tickets/${id}.md`;
  daemon.store.db
    .insert(tickets)
    .values({
      id,
      projectId,
      filePath,
      sourceRef: filePath,
      state: "ready",
      name: `Name of ${id}`,
      createdAtMs: startMs,
      updatedAtMs: startMs,
      ...columns,
    })
    .run();
  blockedBy.forEach((blockerId, position) => {
    daemon.store.db.insert(ticketBlockers).values({ ticketId: id, blockerId, position }).run();
  });
}

export function addTrigger(
  daemon: TestDaemon,
  id: string,
  more: Insert<typeof triggers.$inferInsert> & { only?: string[] } = {},
): void {
  const { only = [], ...columns } = more;
  daemon.store.db
    .insert(triggers)
    .values({ id, kind: "immediate", state: "queued", createdAtMs: startMs, updatedAtMs: startMs, ...columns })
    .run();
  for (const ticketId of only) daemon.store.db.insert(triggerFilters).values({ triggerId: id, ticketId }).run();
}

/** A 32-digit run id that starts with `head`. */
export function runId(head: string): string {
  return head.padEnd(32, "0");
}

export function addRun(
  daemon: TestDaemon,
  id: string,
  more: Insert<typeof runs.$inferInsert> & { ticketId: string; flow?: Flow | null },
): void {
  const { flow = builtInFlow, ...columns } = more;
  const state = columns.state ?? "driving";
  daemon.store.db
    .insert(triggers)
    .values({ id: "TR1", kind: "immediate", state: "completed", createdAtMs: startMs, updatedAtMs: startMs })
    .onConflictDoNothing()
    .run();
  const createdAtMs = columns.createdAtMs ?? startMs;
  daemon.store.db
    .insert(runs)
    .values({
      id,
      triggerId: "TR1",
      state,
      attempt: 1,
      createdAtMs,
      updatedAtMs: createdAtMs,
      startedAtMs: state === "claimed" ? null : createdAtMs + 100,
      exitedAtMs: terminal(state) ? createdAtMs + 1000 : null,
      flowJson: flow === null ? null : renderFlowSnapshot(flow),
      ...columns,
    })
    .run();
}

type StageInsert = Insert<typeof stageRuns.$inferInsert> & {
  stage: string;
  stageIndex: number;
  source?: string | null;
  reason?: string | null;
};

/** Appends one row of a run's walk; `seq` follows from the rows there. */
export function addStage(daemon: TestDaemon, id: string, seq: number, more: StageInsert): void {
  const { source, reason = null, ...columns } = more;
  const verdictSource = source === undefined ? "exit_code" : source;
  daemon.store.db
    .insert(stageRuns)
    .values({
      runId: id,
      seq,
      state: "passed",
      startedAtMs: startMs + seq * 100,
      finishedAtMs: startMs + seq * 100 + 50,
      exitCode: 0,
      evidenceJson: JSON.stringify({ output: "x", verdict_source: verdictSource, reason }),
      ...columns,
    })
    .run();
}

/** Evidence under the key that settlement uses; `key` overrides it. */
export function addEvidence(
  daemon: TestDaemon,
  run: string,
  kind: string,
  more: { data?: unknown; key?: string; observedAtMs?: number } = {},
): void {
  daemon.store.db
    .insert(runEvidence)
    .values({
      runId: run,
      kind,
      observedAtMs: more.observedAtMs ?? startMs,
      dedupeKey: more.key ?? `settlement:${run}:${kind}`,
      dataJson: JSON.stringify(more.data ?? {}),
    })
    .run();
}

export function addEvent(daemon: TestDaemon, kind: string, more: Insert<typeof events.$inferInsert> = {}): void {
  daemon.store.db
    .insert(events)
    .values({ occurredAtMs: startMs, kind, ...more })
    .run();
}

export function addNote(daemon: TestDaemon, id: string, note: { run: string; text: string; atMs?: number }): void {
  daemon.store.db
    .insert(notes)
    .values({ id, runId: note.run, text: note.text, recordedAtMs: note.atMs ?? startMs })
    .run();
}

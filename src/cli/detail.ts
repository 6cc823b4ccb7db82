// Detail pages: one ticket, one run, one project (cli.md 13.6 to 13.8).

import { formatSpan } from "../core/duration.ts";
import type { ProjectDetail, TicketDetail } from "../protocol/replies.ts";
import type { ReviewerRow, RunDetail, StageRow } from "../protocol/rows.ts";
import { counted, span, timeOn } from "./span.ts";
import { renderStrip, stageLabel } from "./strip.ts";
import { paintState, type Style } from "./style.ts";
import { cell, columns, paintedCell } from "./table.ts";

type Field = readonly [label: string, value: string | null];

function fieldLines(fields: readonly Field[]): string[] {
  return fields.flatMap(([label, value]) => (value === null || value === "" ? [] : [`${label}: ${value}`]));
}

function ticketRuns(value: TicketDetail, style: Style, now: number): string[] {
  const { runs } = value;
  if (runs === undefined) return [];
  if (runs.length === 0) return ["runs: none"];
  const newestFirst = [...runs].sort((a, b) => b.attempt - a.attempt);
  const lines = columns(
    newestFirst.map((run) => {
      const rest = [span(run.started_at_ms, run.finished_at_ms, now), renderStrip(run.stages, style)];
      const text = rest.filter((part) => part !== "").join("  ");
      return [cell(run.alias), paintedCell(run.state, paintState(style, run.state)), cell(text)];
    }),
  );
  return ["runs:", ...lines.map((line) => `  ${line}`)];
}

/** `show` of a ticket; `now` in epoch ms. */
export function renderTicket(value: TicketDetail, style: Style, now: number): string {
  const body = (value.body ?? "").trim();
  return [
    `${value.id}  ${value.name}  (${paintState(style, value.state)})`,
    ...fieldLines([
      ["project", value.project],
      ["worktree", value.worktree],
      ["blocked_by", value.blocked_by.join(", ")],
      ["target", value.target],
      ["model", value.model],
      ["effort", value.effort],
      ["reason", value.reason],
    ]),
    ...ticketRuns(value, style, now),
    ...(body === "" ? [] : ["", body]),
  ].join("\n");
}

function runState(value: RunDetail, style: Style): string {
  const state = paintState(style, value.state);
  if (value.state !== "failed" || value.stall === null) return `(${state})`;
  const note = `(stalled: no output for ${formatSpan(value.stall.threshold_ms)})`;
  return `(${state} ${style.paint("yellow", note)})`;
}

function timeline(value: RunDetail, now: number): string | null {
  const known: readonly Field[] = (
    [
      ["claimed", value.claimed_at_ms],
      ["started", value.started_at_ms],
      ["finished", value.finished_at_ms],
    ] as const
  ).map(([label, at]) => [label, at === null ? null : timeOn(at, now)]);
  const parts = known.flatMap(([label, at]) => (at === null ? [] : [`${label} ${at}`]));
  return parts.length === 0 ? null : parts.join("  ");
}

function wipLine(value: RunDetail): string[] {
  const { wip } = value;
  return wip ? [`${counted(wip.files, "uncommitted file")} saved as ${wip.ref}`] : [];
}

function seatLines(seats: readonly ReviewerRow[]): string[] {
  const width = Math.max(0, ...seats.map((seat) => Bun.stringWidth(seat.target)));
  return seats.map((seat) => {
    const target = seat.target + " ".repeat(width - Bun.stringWidth(seat.target));
    const confidence = seat.confidence === null ? [] : [`confidence ${seat.confidence}`];
    const reason = seat.reason ? [seat.reason] : [];
    return `    ${[target, seat.verdict.padEnd(4), ...confidence, ...reason].join("  ")}`.trimEnd();
  });
}

function stageFacts(stage: StageRow): string[] {
  const facts: string[] = [];
  if (stage.duration_ms !== null) facts.push(formatSpan(stage.duration_ms));
  if (stage.exit_code !== null) facts.push(`exit ${stage.exit_code}`);
  if (stage.state === "failed" && stage.advisory) facts.push("advisory");
  if (stage.verdict_source !== null) facts.push(`verdict from ${stage.verdict_source}`);
  if (stage.confidence !== null) facts.push(`confidence ${stage.confidence}`);
  if (stage.silent_for_ms !== null) facts.push(`(no output ${formatSpan(stage.silent_for_ms)})`);
  return facts;
}

const leastLabelWidth = 5;
const stateWidth = 7;

function stageLines(stages: readonly StageRow[], style: Style, now: number): string[] {
  const width = Math.max(leastLabelWidth, ...stages.map((stage) => Bun.stringWidth(stageLabel(stage))));
  return stages.flatMap((stage) => {
    const label = stageLabel(stage);
    const name = label + " ".repeat(width - Bun.stringWidth(label));
    const state = paintState(style, stage.state) + " ".repeat(Math.max(0, stateWidth - stage.state.length));
    const parts = [name, state, span(stage.started_at_ms, stage.finished_at_ms, now), ...stageFacts(stage)];
    return [`  ${parts.join("  ")}`, ...seatLines(stage.reviewers ?? [])];
  });
}

/** The wire says 0 also for a run that ended before any process was started (protocol.md 7); people are not told that. */
function agentExit({ exit_code: code, stages }: RunDetail): string | null {
  const nothingRan = stages.length > 0 && stages.every((stage) => stage.state === "pending");
  return code === null || nothingRan ? null : String(code);
}

/** `show` of a run; `now` in epoch ms. */
export function renderRun(value: RunDetail, style: Style, now: number): string {
  const ticket = value.ticket_name === null ? value.ticket : `${value.ticket}  ${value.ticket_name}`;
  return [
    ...(value.note === null ? [] : [value.note]),
    `${value.alias}  ${runState(value, style)}`,
    ...fieldLines([
      ["ticket", ticket],
      ["branch", value.branch],
      ["worktree", value.worktree],
      ["timeline", timeline(value, now)],
      ["agent exit", agentExit(value)],
      ["reason", value.reason],
    ]),
    ...wipLine(value),
    ...(value.stages.length === 0 ? [] : ["stages:", ...stageLines(value.stages, style, now)]),
  ].join("\n");
}

/** `show` of a project. */
export function renderProject(value: ProjectDetail, style: Style): string {
  const tickets = value.tickets.flatMap((ticket) => [
    "",
    `${ticket.id}  ${ticket.name}  (${paintState(style, ticket.state)})`,
    ...ticket.notes.map((note) => `  note ${note.id} [${note.run}]: ${note.text}`),
    ...ticket.commits.map((commit) => `  commit ${commit.hash} [${commit.run}]: ${commit.message}`),
  ]);
  return [`project ${value.title} (${value.id})`, ...(tickets.length === 0 ? ["no tickets"] : tickets)].join("\n");
}

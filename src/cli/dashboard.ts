// The dashboard: what runs, what needs a person, what is new, and when the daemon will act next (cli.md 13.5).

import { displayStates } from "../core/ticket.ts";
import type { Dashboard } from "../protocol/replies.ts";
import type { ActiveRun, DispatchWire } from "../protocol/rows.ts";
import { renderRows } from "./rows.ts";
import { countdown, counted, span } from "./span.ts";
import { renderStrip } from "./strip.ts";
import { paintState, type Style } from "./style.ts";

function causeText(dispatch: DispatchWire): string | null {
  switch (dispatch.cause) {
    case "cooldown":
      return "cooldown ends";
    case "running_hours":
      return dispatch.waiting > 0 ? `hours open, ${counted(dispatch.waiting, "post")} waiting` : "hours open";
    case "scheduled_trigger":
      return dispatch.trigger ? `scheduled post ${dispatch.trigger}` : "scheduled post";
    default:
      // A cause that a newer daemon knows: the countdown alone.
      return null;
  }
}

function dispatchText(dispatch: DispatchWire | undefined, now: number): string {
  if (dispatch === undefined) return "idle — new posts dispatch immediately";
  const cause = causeText(dispatch);
  const when = countdown(dispatch.at, now);
  return cause === null ? when : `${when} (${cause})`;
}

function daemonLine(data: Dashboard, now: number): string {
  const { daemon, gate } = data;
  const agents = `${gate.active_agents}/${gate.max_agents} agents active`;
  const busy = daemon.draining ? "draining" : "paused";
  if (daemon.draining || daemon.paused) return `daemon: pid ${daemon.pid} ${busy} - ${agents}`;
  return `daemon: pid ${daemon.pid} running - ${agents} - dispatch ${dispatchText(data.dispatch, now)}`;
}

const countOrder = ["ready", "held", "blocked", "claimed", "failed", "needs_review", "merged"] as const;

function countsLine(data: Dashboard): string {
  const known = countOrder.filter((state) => displayStates.includes(state));
  const parts = known.flatMap((state) => {
    const count = data.tickets[state] ?? 0;
    return count > 0 || state === "ready" ? [`${count} ${state}`] : [];
  });
  return `tickets: ${parts.join(", ")}`;
}

function gateLines(data: Dashboard): string[] {
  const { storage, running_hours: hours } = data.gate;
  const lines: string[] = [];
  if (!storage.writable) lines.push("storage: database full (dispatch is blocked until space is free)");
  if (hours !== undefined && !hours.open) lines.push(`running hours: ${hours.start}-${hours.end} (closed)`);
  return lines;
}

function runLine(run: ActiveRun, style: Style, now: number): string {
  const parts = [run.alias, paintState(style, run.state), span(run.started_at_ms, run.finished_at_ms, now)];
  const strip = renderStrip(run.stages, style);
  return `  ${[...parts, ...(strip === "" ? [] : [strip]), run.ticket_name].join("  ")}`.trimEnd();
}

function section(title: string, lines: string[]): string[] {
  return lines.length === 0 ? [] : ["", `${title}:`, ...lines];
}

function lastLine(data: Dashboard): string {
  const more = data.recent_total - data.recent.length;
  const detail = "`sloop show <ref>` for detail";
  return more > 0 ? `${more} more - \`sloop show -${data.recent_total}\` for all - ${detail}` : detail;
}

/** The whole dashboard; `now` in epoch ms. */
export function renderDashboard(data: Dashboard, style: Style, now: number): string {
  const recent = renderRows(data.recent, style, { indent: "  " });
  return [
    daemonLine(data, now),
    countsLine(data),
    ...gateLines(data),
    ...section(
      "runs",
      data.runs.map((run) => runLine(run, style, now)),
    ),
    ...section("attention", renderRows(data.attention, style, { indent: "  " })),
    ...section("recent", recent.length === 0 ? ["  no tickets"] : recent),
    "",
    lastLine(data),
  ].join("\n");
}

// How the demo shows its two tickets while they run: redrawn in place on a terminal, one line per change elsewhere.

import type { TicketDetail } from "../protocol/replies.ts";
import { writeOut } from "./output.ts";
import { say } from "./say.ts";
import { renderStrip } from "./strip.ts";
import { paintState, type Style, visibleDeep } from "./style.ts";
import { cell, columns, paintedCell } from "./table.ts";
import { terminalColumns } from "./terminal.ts";

export type DemoView = { show(tickets: readonly TicketDetail[]): Promise<void>; close(): Promise<void> };

function stripOf(ticket: TicketDetail, style: Style): string {
  const run = ticket.runs[0];
  if (run !== undefined) return renderStrip(run.stages, style);
  return ticket.blocked_by.length > 0 ? `waits for ${ticket.blocked_by.join(", ")}` : "queued";
}

/** As wide as the states of a demo that goes well, so that its lines stay aligned. */
const stateWidth = "claimed".length;
const stateGap = (state: string) => " ".repeat(Math.max(0, stateWidth - state.length));

/** One line per ticket: id, name, state, stages. */
export function ticketLines(tickets: readonly TicketDetail[], style: Style): string[] {
  return columns(
    tickets.map((ticket) => [
      cell(ticket.id),
      cell(ticket.name),
      paintedCell(ticket.state.padEnd(stateWidth), paintState(style, ticket.state) + stateGap(ticket.state)),
      cell(stripOf(ticket, style)),
    ]),
  );
}

function onTerminal(style: Style): DemoView {
  let drawn = 0;
  return {
    async show(tickets) {
      // A line that wraps would be redrawn in the wrong place.
      const width = terminalColumns(1) - 1;
      const lines = ticketLines(visibleDeep(tickets), style).map((line) => Bun.sliceAnsi(line, 0, width, "…"));
      const up = drawn === 0 ? "" : `\x1b[${drawn}A`;
      await writeOut(`${up}${lines.map((line) => `\x1b[2K${line}\n`).join("")}`);
      drawn = lines.length;
    },
    async close() {},
  };
}

function inPipe(style: Style): DemoView {
  const shown = new Map<string, string>();
  return {
    async show(tickets) {
      for (const [index, line] of ticketLines(tickets, style).entries()) {
        const id = tickets[index]?.id ?? "";
        if (shown.get(id) === line) continue;
        shown.set(id, line);
        await say(line);
      }
    },
    async close() {},
  };
}

const nowhere: DemoView = { async show() {}, async close() {} };

/** `quiet`: under --json nothing is shown but the result. */
export function openDemoView(options: { style: Style; terminal: boolean; quiet: boolean }): DemoView {
  if (options.quiet) return nowhere;
  return options.terminal ? onTerminal(options.style) : inPipe(options.style);
}

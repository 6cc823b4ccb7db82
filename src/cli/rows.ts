// Ticket rows: one line per ticket, with why it is not running (cli.md 13.4).

import type { TicketDisplayRow } from "../protocol/rows.ts";
import { paintState, type Style } from "./style.ts";
import { cell, columns, paintedCell } from "./table.ts";

export type RowOptions = {
  indent?: string;
  /** What to say of a row with an active run; by default nothing. */
  running?: (alias: string) => string;
};

function suffix(row: TicketDisplayRow, options: RowOptions): string {
  const said = row.run === null ? row.reason : (options.running?.(row.run) ?? null);
  return said === null || row.state === "merged" ? "" : `  — ${said}`;
}

/** One line per row; the project stands in it only when these rows are of more than one. */
export function renderRows(rows: readonly TicketDisplayRow[], style: Style, options: RowOptions = {}): string[] {
  const projects = new Set(rows.map((row) => row.project));
  const lines = columns(
    rows.map((row) => {
      const project = projects.size > 1 ? `(${row.project})  ` : "";
      const rest = `${project}${row.name}${suffix(row, options)}`;
      return [cell(row.id), paintedCell(row.state, paintState(style, row.state)), cell(rest)];
    }),
  );
  return lines.map((line) => `${options.indent ?? ""}${line}`.trimEnd());
}

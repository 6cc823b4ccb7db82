// Rows as a table for people.

import type { Summary } from "./measure.ts";
import type { Row, Target } from "./row.ts";

function show(value: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return "-";
  if (size >= 1000) return Math.round(value).toLocaleString("en-US").replaceAll(",", " ");
  if (size >= 100) return value.toFixed(0);
  return size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function showRange({ min, max, samples }: Summary): string {
  return samples === 1 ? "" : `${show(min)}-${show(max)}`;
}

function showTarget(target: Target | null, unit: string): string {
  if (target === null) return "";
  const sign = target.sense === "at most" ? "<=" : ">=";
  switch (target.of) {
    case "value":
      return `${sign} ${show(target.bound)} ${unit}`;
    case "ratio":
      return `${sign} ${show(target.bound)} x`;
    case "beyond":
      return `${sign} rival + ${show(target.bound)} ${unit}`;
  }
}

function cells(row: Row): string[] {
  const { rival, unit } = row;
  return [
    row.bench,
    row.what,
    `${show(row.measured.median)} ${unit}`,
    showRange(row.measured),
    rival === null ? "" : `${rival.what}: ${show(rival.measured.median)}`,
    row.ratio === null ? "" : show(row.ratio),
    showTarget(row.target, unit),
    row.met === null ? "" : row.met ? "met" : "NOT MET",
  ];
}

const headings = ["bench", "what", "median", "min-max", "limit or rival", "ratio", "target", ""];

/** One line per row under headings, and the rows' notes below. */
export function renderTable(rows: readonly Row[]): string {
  const table = [headings, ...rows.map(cells)];
  const widths = headings.map((_, column) => Math.max(...table.map((line) => (line[column] ?? "").length)));
  const lines = table.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
  const notes = rows.filter((row) => row.note !== null).map((row) => `${row.bench}, ${row.what}: ${row.note}`);
  return [...lines.map((line) => line.trimEnd()), ...(notes.length === 0 ? [] : ["", ...notes])].join("\n");
}

// What an external ticket source answers to a pull: one JSON array of tickets, every field checked by name and type.

import { isBlank } from "../core/blank.ts";
import { closeTo } from "./nearest.ts";

/** One ticket of the answer. Blank `name` and `body` are for the caller to judge; `id` need not be a legal one. */
export type PulledTicket = {
  id: string | null;
  name: string;
  body: string;
  blockedBy: string[];
  project: string | null;
  target: string | null;
  model: string | null;
  effort: string | null;
  flow: string | null;
};

export type Pulled = { ok: true; tickets: PulledTicket[] } | { ok: false; problem: string };

const required = ["name", "body"] as const;
const optional = ["id", "project", "target", "model", "effort", "flow"] as const;
const fields: readonly string[] = [...required, ...optional, "blocked_by"];

type Row = Record<string, unknown>;

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unknownField(row: Row): string | null {
  const key = Object.keys(row).find((name) => !fields.includes(name));
  if (key === undefined) return null;
  const near = closeTo(key, fields);
  return `unknown field \`${key}\`; ${near === null ? `the fields are ${fields.join(", ")}` : `did you mean \`${near}\`?`}`;
}

function blockersProblem(row: Row): string | null {
  const value = row["blocked_by"];
  if (value === undefined) return null;
  const fits = Array.isArray(value) && value.every((item) => typeof item === "string");
  return fits ? null : `\`blocked_by\` must be an array of strings, found ${kindOf(value)}`;
}

function rowProblem(value: unknown): string | null {
  if (!isRow(value)) return `a ticket must be an object, found ${kindOf(value)}`;
  const unknown = unknownField(value);
  if (unknown !== null) return unknown;
  for (const key of required) {
    if (!Object.hasOwn(value, key)) return `missing field \`${key}\``;
    if (typeof value[key] !== "string") return `\`${key}\` must be a string, found ${kindOf(value[key])}`;
  }
  for (const key of optional) {
    const found = value[key];
    if (found !== undefined && found !== null && typeof found !== "string") {
      return `\`${key}\` must be a string or null, found ${kindOf(found)}`;
    }
  }
  return blockersProblem(value);
}

function text(row: Row, key: string): string | null {
  const value = row[key];
  return typeof value === "string" ? value : null;
}

function nonBlank(value: string | null): string | null {
  return value === null || isBlank(value) ? null : value;
}

function ticketOf(row: Row): PulledTicket {
  const blockers = row["blocked_by"];
  return {
    id: text(row, "id"),
    name: text(row, "name") ?? "",
    body: text(row, "body") ?? "",
    blockedBy: Array.isArray(blockers) ? [...new Set<string>(blockers)] : [],
    project: text(row, "project"),
    target: text(row, "target"),
    model: nonBlank(text(row, "model")),
    effort: nonBlank(text(row, "effort")),
    flow: text(row, "flow"),
  };
}

function parseJson(text: string): { value: unknown } | { problem: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Reads the answer of a pull. A problem names the row by its position, counted from 0, and the field. */
export function parsePulled(answer: string): Pulled {
  const parsed = parseJson(answer);
  if ("problem" in parsed) return { ok: false, problem: `it is not JSON: ${parsed.problem}` };
  const { value } = parsed;
  if (!Array.isArray(value)) return { ok: false, problem: `an array of tickets is expected, found ${kindOf(value)}` };
  for (const [position, row] of value.entries()) {
    const problem = rowProblem(row);
    if (problem !== null) return { ok: false, problem: `row ${position}: ${problem}` };
  }
  return { ok: true, tickets: value.map(ticketOf) };
}

// Ticket files: every problem of a file at once, else its fields.

import { isBlank } from "../core/blank.ts";
import { SloopError } from "../core/errors.ts";
import { validBranch, validTicketId } from "../core/worktree-name.ts";
import {
  badBlockers,
  blockerList,
  fieldPlace,
  fieldText,
  notScalar,
  parseFrontmatter,
  type ScalarField,
  scalarFields,
  splitFrontmatter,
  yamlStart,
} from "./frontmatter.ts";
import { type MapNode, member } from "./node.ts";
import { parseYaml } from "./source.ts";

export { splitFrontmatter } from "./frontmatter.ts";
export { decodeUtf8 } from "./source.ts";

/** What a ticket file says. `flow` is a flow's name; a blank `model` or `effort` counts as absent. */
export type TicketFile = {
  id: string | null;
  name: string;
  project: string | null;
  title: string | null;
  worktree: string | null;
  target: string | null;
  model: string | null;
  effort: string | null;
  flow: string | null;
  /** Ticket ids in the order written, each once. */
  blockedBy: string[];
  /** Everything after the block, byte for byte. */
  body: string;
};

type Scalars = Record<ScalarField, string | null>;

const noScalars: Scalars = {
  id: null,
  project: null,
  title: null,
  name: null,
  worktree: null,
  target: null,
  model: null,
  effort: null,
  flow: null,
};

/** The message of a ticket file's problems: one on the path's line, several below it (files.md 5.4). */
function problemMessage(path: string, problems: string[]): string {
  if (problems.length === 1) return `${path}: ${problems[0]}`;
  return `${path}:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`;
}

function ruleProblem(key: ScalarField, value: string): string | null {
  if (key === "id" && !validTicketId(value)) {
    return `frontmatter field \`id\` is ${JSON.stringify(value)}, which cannot be an id: no blanks, and \`sloop/<id>-a1-…\` must be a legal branch name`;
  }
  if (key === "worktree" && !validBranch(value)) {
    return `frontmatter field \`worktree\` is ${JSON.stringify(value)}, which is not a legal Git branch name`;
  }
  return null;
}

/** `text` is the whole file: problems say where in it they are. */
function readScalars(text: string, fields: MapNode): { scalars: Scalars; problems: string[]; wrong: string[] } {
  const scalars = { ...noScalars };
  const problems: string[] = [];
  const wrong: string[] = [];
  for (const key of scalarFields) {
    const field = fieldText(fields, key);
    if (!field.ok) {
      problems.push(notScalar(text, key, field.found));
      wrong.push(key);
      continue;
    }
    scalars[key] = field.text;
    const problem = field.text === null ? null : ruleProblem(key, field.text);
    const value = problem === null ? null : member(fields, key);
    if (value !== null) problems.push(problem + fieldPlace(text, value));
  }
  return { scalars, problems, wrong };
}

function nonBlank(text: string | null): string | null {
  return text === null || isBlank(text) ? null : text;
}

function missing(facts: { name: boolean; blockers: boolean; body: boolean }): string[] {
  return [
    ...(facts.name ? ["missing or empty `name`; add `name: Your ticket title`"] : []),
    ...(facts.blockers ? ["missing `blocked_by`; add `blocked_by: []`"] : []),
    ...(facts.body ? ["empty `body`; add a ticket description"] : []),
  ];
}

/** Reads one ticket file. `path` (repository-relative) begins every message. Throws `invalid_arguments` with all problems. */
export function parseTicket(text: string, path: string): TicketFile {
  const front = parseFrontmatter(text);
  if (!front.ok) throw new SloopError("invalid_arguments", `${path}: ${front.problem}`);
  const { scalars, problems, wrong } = readScalars(text, front.fields);
  const blockers = blockerList(front.fields);
  const name = nonBlank(scalars.name);
  const lacking = missing({
    name: name === null && !wrong.includes("name"),
    blockers: blockers === null,
    body: isBlank(front.body),
  });
  if (front.cause !== null && lacking[0] !== undefined) lacking[0] += ` (${front.cause})`;
  const all = [...lacking, ...(blockers?.ok === false ? [badBlockers(text, blockers.found)] : []), ...problems];
  if (all.length > 0 || name === null || blockers?.ok !== true) {
    throw new SloopError("invalid_arguments", problemMessage(path, all));
  }
  return {
    ...scalars,
    name,
    model: nonBlank(scalars.model),
    effort: nonBlank(scalars.effort),
    blockedBy: blockers.items,
    body: front.body,
  };
}

/** What is left of an invalid ticket file, for reindex: fields that can be read, the rest null or empty. */
export type SalvagedTicket = Omit<TicketFile, "name"> & { name: string | null };

function salvageParts(text: string): { yaml: string; body: string } {
  const split = splitFrontmatter(text);
  if (split.kind === "block") return { yaml: split.yaml, body: text.slice(split.bodyStart) };
  if (split.kind === "none") return { yaml: "", body: text };
  // Unterminated, or closed but with a foreign line break: in the latter case the closing line still ends the block.
  const close = text.indexOf("\n---\n", yamlStart - 1);
  if (close >= 0) return { yaml: text.slice(yamlStart, close + 1), body: text.slice(close + 5) };
  return { yaml: text.slice(yamlStart), body: "" };
}

/** Reads what an invalid file still says about its identity (files.md 13.3). Never throws. */
export function salvageTicket(text: string): SalvagedTicket {
  const { yaml, body } = salvageParts(text);
  const parsed = parseYaml(yaml);
  if (!parsed.ok || parsed.root?.kind !== "map") return { ...noScalars, blockedBy: [], body };
  const fields = parsed.root;
  const { scalars } = readScalars(text, fields);
  const list = fields.entries.find((entry) => entry.key === "blocked_by")?.value;
  const items = list?.kind === "list" ? list.items : [];
  const blockedBy = items.flatMap((item) => (item.kind === "string" ? [item.text] : []));
  return { ...scalars, blockedBy: [...new Set(blockedBy)], body };
}

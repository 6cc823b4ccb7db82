// Project files: an id and a title in frontmatter, prose below.

import { isBlank } from "../core/blank.ts";
import { badBlockers, blockerList, fieldText, notScalar, parseFrontmatter, scalarFields } from "./frontmatter.ts";

export type ProjectFile = { id: string | null; title: string | null };

function present(text: string | null): string | null {
  return text === null || isBlank(text) ? null : text;
}

/** Reads a project file. The problem (`<path>: …`) is a reason to skip the file with a warning. */
export function parseProject(text: string, path: string): ProjectFile | { problem: string } {
  const front = parseFrontmatter(text);
  if (!front.ok) return { problem: `${path}: ${front.problem}` };
  const blockers = blockerList(front.fields);
  if (blockers?.ok === false) return { problem: `${path}: ${badBlockers(text, blockers.found)}` };
  for (const key of scalarFields) {
    const field = fieldText(front.fields, key);
    if (!field.ok) return { problem: `${path}: ${notScalar(text, key, field.found)}` };
  }
  const id = fieldText(front.fields, "id");
  const title = fieldText(front.fields, "title");
  if (!id.ok || !title.ok) return { problem: `${path}: invalid frontmatter` };
  if (id.text !== null && isBlank(id.text)) {
    return { problem: `${path}: frontmatter field \`id\` is blank; give it a value or remove the line` };
  }
  return { id: id.text, title: present(title.text) };
}

// Project files: read and judged, ids given to those without, rows written. At every start and at every reindex.

import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../core/config.ts";
import { SloopError } from "../core/errors.ts";
import { contentHash } from "../core/hash.ts";
import { parseProject } from "../parse/project.ts";
import { decodeUtf8 } from "../parse/source.ts";
import { stampId } from "../parse/stamp.ts";
import type { Store } from "../store/open.ts";
import { indexProject, type ProjectFile } from "../store/projects.ts";
import { fileSource, systemCode } from "../system/files.ts";
import type { Log } from "../system/log.ts";
import { openIds } from "./new-ids.ts";
import { type Placed, placeStamps, prepareStamps, type Stamp } from "./stamping.ts";

type Found = { path: string; absolute: string; text: string; hash: string; id: string | null; title: string };

type Source = { root: string; config: Config };

export type ProjectPlan = {
  /** In path order; of two with one id the later counts. */
  projects: ProjectFile[];
  stamps: Stamp[];
  /** Files left out, and ids used twice. */
  warnings: string[];
};

/** Where a project file really is: a link stays one, and what it leads to is stamped. Null: it leads to nothing. */
function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ELOOP") return null;
    throw error;
  }
}

/** As for tickets: a link may lead about in the repository or its project directory, never out of them to be stamped there. */
function allowed({ root, config }: Source, absolute: string): boolean {
  return [root, realPath(join(root, config.projectDir))].some((directory) => absolute.startsWith(`${directory}/`));
}

function readProjectFile(source: Source, name: string): Found | { warning: string } | null {
  const path = `${source.config.projectDir}/${name}`;
  const absolute = realPath(join(source.root, path));
  if (absolute === null) return { warning: `${path}: is a link that leads nowhere` };
  if (!allowed(source, absolute)) return { warning: `${path}: is a link that leads out of the repository` };
  const bytes = fileSource.read(absolute);
  if (bytes === null) return { warning: `${path}: is not a regular file` };
  const text = decodeUtf8(bytes);
  if (text === null) return { warning: `${path}: is not valid UTF-8 text` };
  const project = parseProject(text, path);
  if ("problem" in project) return { warning: project.problem };
  return { path, absolute, text, hash: contentHash(bytes), id: project.id, title: project.title ?? name.slice(0, -3) };
}

/** Gives every file without an id the next free one, in path order. */
function allocate({ config }: Source, files: readonly Found[]): ProjectPlan {
  const present = files.flatMap((file) => (file.id === null ? [] : [file.id]));
  const nextId = openIds(config.projectPrefix, present);
  const plan: ProjectPlan = { projects: [], stamps: [], warnings: [] };
  const seen = new Set<string>();
  for (const file of files) {
    const id = file.id ?? nextId();
    if (file.id === null) {
      const text = stampId(file.text, file.path, id);
      if (text !== null) plan.stamps.push({ path: file.path, absolute: file.absolute, hash: file.hash, text });
    }
    if (seen.has(id)) plan.warnings.push(`${file.path}: project id \`${id}\` is used twice; this file wins`);
    seen.add(id);
    plan.projects.push({ id, filePath: file.path, title: file.title });
  }
  return plan;
}

/**
 * Reads and judges every project file; touches none. Throws SloopError `invalid_arguments` for a file that cannot be
 * stamped, and the system's error for one that cannot be read.
 */
export function planProjects(source: Source): ProjectPlan {
  const names = fileSource.list(join(source.root, source.config.projectDir)) ?? [];
  const read = names
    // A name that is nothing but `.md` has no extension.
    .filter((name) => name.endsWith(".md") && name !== ".md")
    .sort()
    .flatMap((name) => readProjectFile(source, name) ?? []);
  const warnings = read.flatMap((file) => ("warning" in file ? [file.warning] : []));
  const plan = allocate(
    source,
    read.flatMap((file) => ("warning" in file ? [] : [file])),
  );
  return { ...plan, warnings: [...warnings, ...plan.warnings] };
}

/** Says in the log which project files were left out or are at odds. */
export function warnOfProjects(log: Log, { warnings }: Pick<ProjectPlan, "warnings">): void {
  for (const problem of warnings) log.warn("sloop::daemon", "project_file_skipped", { problem });
}

/**
 * At start: stamps project files and writes their rows. Rows of files that are gone stay: only a reindex removes them.
 * Rejects with SloopError `daemon_unavailable` when a file cannot be stamped or read.
 */
export async function indexProjects(source: Source & { log: Log }, store: Store, now: number): Promise<void> {
  let plan: ProjectPlan;
  let placed: Placed;
  try {
    plan = planProjects(source);
    placed = await placeStamps(await prepareStamps(plan.stamps));
  } catch (error) {
    throw new SloopError("daemon_unavailable", error instanceof Error ? error.message : String(error));
  }
  const [failed] = placed.failed;
  if (failed !== undefined) throw new SloopError("daemon_unavailable", failed);
  warnOfProjects(source.log, { warnings: [...plan.warnings, ...placed.edited] });
  store.write((tx) => {
    for (const project of plan.projects) indexProject(tx, project, now);
  });
}

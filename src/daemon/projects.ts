// Indexes the project files when the daemon starts: ids stamped where they are missing, unreadable files skipped.

import { statSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../core/config.ts";
import { SloopError } from "../core/errors.ts";
import { nextOrdinal } from "../core/ids.ts";
import { parseProject } from "../parse/project.ts";
import { decodeUtf8 } from "../parse/source.ts";
import { stampId } from "../parse/stamp.ts";
import type { Store } from "../store/open.ts";
import { indexProject, type ProjectFile } from "../store/projects.ts";
import { fileSource, writeAtomic } from "../system/files.ts";
import type { Log } from "../system/log.ts";

type Found = { path: string; absolute: string; text: string; mode: number; id: string | null; title: string };

type Source = { root: string; config: Config; log: Log };

function skip(log: Log, problem: string): null {
  log.warn("sloop::daemon", "project_file_skipped", { problem });
  return null;
}

function readProjectFile({ root, config, log }: Source, name: string): Found | null {
  const path = `${config.projectDir}/${name}`;
  const absolute = join(root, path);
  const found = statSync(absolute, { throwIfNoEntry: false });
  if (found === undefined || !found.isFile()) return null;
  const bytes = fileSource.read(absolute);
  const text = bytes === null ? null : decodeUtf8(bytes);
  if (text === null) return skip(log, `${path}: is not valid UTF-8 text`);
  const project = parseProject(text, path);
  if ("problem" in project) return skip(log, project.problem);
  return { path, absolute, text, mode: found.mode & 0o777, id: project.id, title: project.title ?? name.slice(0, -3) };
}

function stamp(file: Found, id: string): void {
  const stamped = stampId(file.text, file.path, id);
  if (stamped !== null) writeAtomic(file.absolute, stamped, { mode: file.mode, sync: true });
}

/** Gives every file without an id the next free one, in path order. Throws SloopError when a file cannot be stamped. */
function allocate({ config }: Source, files: Found[]): ProjectFile[] {
  const ids = files.flatMap((file) => (file.id === null ? [] : [file.id]));
  return files.map((file) => {
    if (file.id !== null) return { id: file.id, filePath: file.path, title: file.title };
    const ordinal = nextOrdinal(config.projectPrefix, ids);
    if (ordinal === null)
      throw new SloopError("internal", `the ID counter is exhausted for \`${config.projectPrefix}\``);
    const id = `${config.projectPrefix}-${ordinal}`;
    ids.push(id);
    stamp(file, id);
    return { id, filePath: file.path, title: file.title };
  });
}

/** Reads every project file and writes its row. Rows of files that are gone stay: only a reindex removes them. */
export function indexProjects(source: Source, store: Store, now: number): void {
  const names = fileSource.list(join(source.root, source.config.projectDir)) ?? [];
  const files = names
    .filter((name) => name.endsWith(".md"))
    .sort()
    .flatMap((name) => readProjectFile(source, name) ?? []);
  const projects = allocate(source, files);
  const ids = new Set<string>();
  for (const project of projects) {
    if (ids.has(project.id))
      skip(source.log, `${project.filePath}: project id \`${project.id}\` is used twice; this file wins`);
    ids.add(project.id);
  }
  store.write((tx) => {
    for (const project of projects) indexProject(tx, project, now);
  });
}

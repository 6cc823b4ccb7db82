// Project rows: what the project files said when they were last read.

import { and, eq, ne, or, sql } from "drizzle-orm";
import type { Queries } from "./open.ts";
import { projects } from "./tables.ts";

/** Whether a project with exactly that id is indexed. */
export function projectIndexed(q: Queries, id: string): boolean {
  return q.select({ id: projects.id }).from(projects).where(eq(projects.id, id)).get() !== undefined;
}

export type ProjectFile = { id: string; filePath: string; title: string };

/**
 * Writes a project as its file says. A row of another id that stood for this file keeps everything but the file: its
 * reference becomes one that no file has.
 */
export function indexProject(tx: Queries, project: ProjectFile, now: number): void {
  const { id, filePath, title } = project;
  const stands = or(
    eq(projects.filePath, filePath),
    and(eq(projects.source, "local"), eq(projects.sourceRef, filePath)),
  );
  tx.update(projects)
    .set({ filePath: null, sourceRef: sql`'id:' || ${projects.id}` })
    .where(and(stands, ne(projects.id, id)))
    .run();
  tx.insert(projects)
    .values({ id, filePath, sourceRef: filePath, title, createdAtMs: now, updatedAtMs: now })
    .onConflictDoUpdate({
      target: projects.id,
      set: { filePath, source: "local", sourceRef: filePath, title, updatedAtMs: now },
    })
    .run();
}

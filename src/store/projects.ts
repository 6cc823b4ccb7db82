// Project rows: what the project files said when the daemon started.

import { eq } from "drizzle-orm";
import type { Queries } from "./open.ts";
import { projects } from "./tables.ts";

/** Whether a project with exactly that id is indexed. */
export function projectIndexed(q: Queries, id: string): boolean {
  return q.select({ id: projects.id }).from(projects).where(eq(projects.id, id)).get() !== undefined;
}

export type ProjectFile = { id: string; filePath: string; title: string };

/** Writes a project as its file says, whatever row had its id or its path before. */
export function indexProject(tx: Queries, project: ProjectFile, now: number): void {
  const { id, filePath, title } = project;
  tx.update(projects).set({ filePath: null }).where(eq(projects.filePath, filePath)).run();
  tx.insert(projects)
    .values({ id, filePath, sourceRef: filePath, title, createdAtMs: now, updatedAtMs: now })
    .onConflictDoUpdate({ target: projects.id, set: { filePath, sourceRef: filePath, title, updatedAtMs: now } })
    .run();
}

// A store of its own for one test, with a project and a few helpers to fill it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore, type Store } from "../../src/store/open.ts";
import { indexProject } from "../../src/store/projects.ts";
import { insertTicket, type NewTicket } from "../../src/store/tickets.ts";

/** A file store in a directory of its own; `path` opens it a second time. */
export function tempStore(): Disposable & { store: Store; path: string } {
  const dir = mkdtempSync(join(tmpdir(), "sloop-store-"));
  const path = join(dir, "sloop.db");
  const store = openStore(path, 1);
  store.write((tx) => indexProject(tx, { id: "default", filePath: "projects/default.md", title: "Default" }, 1));
  return {
    store,
    path,
    [Symbol.dispose]() {
      store.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Registers a ticket with usual values. */
export function addTicket(store: Store, id: string, change: Partial<NewTicket> = {}, now = 1): void {
  const ticket: NewTicket = {
    id,
    projectId: "default",
    filePath: `tickets/${id}.md`,
    state: "ready",
    name: `Ticket ${id}`,
    worktree: `sloop/${id}`,
    target: "claude",
    model: null,
    effort: null,
    flow: "default",
    body: "Do it.",
    contentHash: "0",
    blockedBy: [],
    ...change,
  };
  store.write((tx) => insertTicket(tx, ticket, now));
}

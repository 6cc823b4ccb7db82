// `reindex`: rebuilds the index from project files, the ticket source and git.

import { reindexAll } from "../daemon/reindex.ts";
import type { Handler } from "./handler.ts";

export const reindex: Handler<"reindex"> = async (daemon) => {
  const done = await reindexAll(daemon);
  return {
    projects_indexed: done.projectsIndexed,
    tickets_indexed: done.ticketsIndexed,
    tickets_state_changed: done.stateChanges.length,
    state_changes: done.stateChanges,
    rows_dropped: done.rowsDropped,
  };
};

// `wait`: one snapshot of whether a run has settled and how; the waiting is the client's.

import { runAlias } from "../core/ids.ts";
import { terminal } from "../core/ticket.ts";
import { readFacts } from "../store/evidence.ts";
import type { Handler } from "./handler.ts";
import { resolveRun } from "./reference.ts";
import { classificationOf } from "./rows.ts";
import { agentExit } from "./run-report.ts";

export const wait: Handler<"wait"> = (daemon, args) => {
  const { run, note } = resolveRun(daemon.store.db, args.run);
  const facts = readFacts(daemon.store.db, run.id);
  return {
    id: run.id,
    alias: runAlias(run.ticketId, run.attempt),
    note,
    state: run.state,
    terminal: terminal(run.state),
    exit_code: agentExit(run, facts),
    reason: facts.vendor?.diagnostic ?? null,
    classification: classificationOf(facts.vendor),
  };
};

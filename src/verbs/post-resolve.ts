// Whether a valid ticket file fits the index: its project, flow, target, identity and blockers (files.md 6.1, 3-15).

import { join } from "node:path";
import { SloopError } from "../core/errors.ts";
import { findCycle } from "../core/graph.ts";
import { defaultWorktree, validSlug } from "../core/ids.ts";
import { chooseTarget } from "../core/target.ts";
import type { Daemon } from "../daemon/context.ts";
import { openIds } from "../daemon/new-ids.ts";
import { stampTicket } from "../parse/stamp.ts";
import type { TicketFile } from "../parse/ticket.ts";
import type { Queries } from "../store/open.ts";
import { projectIndexed } from "../store/projects.ts";
import type { TicketRow } from "../store/tables.ts";
import { blockerGraph, listTicketIds, readTicket, readTicketByFile, ticketNamed } from "../store/tickets.ts";
import { isRegularFile } from "../system/files.ts";
import type { PostedFile } from "./post-file.ts";

/** What a post will write, once every check has passed. */
export type PostPlan = {
  id: string;
  project: string;
  flow: string;
  target: string | null;
  worktree: string;
  /** The registered row of this file; null: a new ticket. */
  known: TicketRow | null;
  /** The file with its missing keys added; null: nothing to add. */
  stamped: string | null;
};

type Asked = { project: string | null; flow: string | null };

function chosen(key: "project" | "flow", path: string, inFile: string | null, asked: string | null): string {
  if (inFile !== null && asked !== null && inFile !== asked) {
    throw new SloopError("conflict", `${path}: its ${key} is \`${inFile}\`, not \`${asked}\` as asked for`);
  }
  return inFile ?? asked ?? "default";
}

function requireFlow(daemon: Daemon, name: string): void {
  if (daemon.flows.has(name)) return;
  const known = [...daemon.flows.keys()].sort().map((flow) => `\`${flow}\``);
  // A name with a slash is no file's stem.
  const onDisk = !name.includes("/") && isRegularFile(join(daemon.paths.root, ".agents/sloop/flows", `${name}.yaml`));
  const late = onDisk ? `; flows/${name}.yaml came after the daemon started: \`sloop daemon restart\` loads it` : "";
  throw new SloopError("not_found", `flow \`${name}\` is not defined; known flows: ${known.join(", ")}${late}`, {
    hint: "`sloop template flow` prints a file to start from",
  });
}

function resolveTarget(daemon: Daemon, file: TicketFile): string | null {
  const chosen = chooseTarget(daemon.config.agent, file);
  if (chosen.ok) return chosen.target;
  throw new SloopError("invalid_arguments", chosen.problem);
}

/** The row this file already is; null for a new ticket. Throws `conflict` where id, path and row disagree. */
function identify(q: Queries, file: TicketFile, posted: PostedFile, project: string): TicketRow | null {
  const byId = file.id === null ? null : readTicket(q, file.id);
  if (byId !== null && byId.filePath !== posted.path) {
    throw new SloopError("conflict", `\`${byId.id}\` is already registered by \`${byId.filePath ?? byId.source}\``);
  }
  const byPath = readTicketByFile(q, posted.path);
  const known = byId ?? byPath;
  if (known !== null && known.projectId !== project) {
    throw new SloopError(
      "conflict",
      `${posted.path}: ticket \`${known.id}\` is in project \`${known.projectId}\`, not in \`${project}\``,
    );
  }
  if (file.id !== null && byPath !== null && byPath.id !== file.id) {
    throw new SloopError("conflict", `${posted.path}: is registered as \`${byPath.id}\`, not as \`${file.id}\``);
  }
  return known;
}

function requireBlockers(q: Queries, id: string, blockedBy: readonly string[]): void {
  for (const blocker of blockedBy) {
    if (blocker === id || readTicket(q, blocker) !== null) continue;
    const unknown = `field \`blocked_by\` references unknown ticket \`${blocker}\``;
    const named = ticketNamed(q, blocker);
    const more =
      named === null
        ? "; post a ticket's blockers before the ticket"
        : `; a ticket named \`${blocker}\` has id \`${named}\`, and \`blocked_by\` takes ids`;
    throw new SloopError("not_found", unknown + more);
  }
}

function requireAcyclic(q: Queries, id: string, blockedBy: readonly string[]): void {
  if (blockedBy.length === 0) return;
  const graph = blockerGraph(q);
  graph.set(id, [...blockedBy]);
  const chain = findCycle(graph);
  if (chain !== null) throw new SloopError("conflict", `\`blocked_by\` makes a cycle: ${chain.join(" -> ")}`);
}

function resolveWorktree(file: TicketFile, posted: PostedFile, id: string): string {
  if (file.worktree !== null) return file.worktree;
  if (validSlug(posted.stem)) return defaultWorktree(posted.stem, id);
  throw new SloopError(
    "invalid_arguments",
    `${posted.path}: \`${posted.stem}\` is not a valid worktree slug; rename the file like \`abc-def.md\`, or set \`worktree\``,
  );
}

/** Every check against the index, in order. Throws SloopError at the first that fails; nothing was written. */
export function planPost(daemon: Daemon, posted: PostedFile, file: TicketFile, asked: Asked): PostPlan {
  const q = daemon.store.db;
  const project = chosen("project", posted.path, file.project, asked.project);
  if (!projectIndexed(q, project)) {
    const files = `a project is a file in ${daemon.config.projectDir}, read by \`sloop daemon restart\` and \`sloop reindex\``;
    throw new SloopError("not_found", `project \`${project}\` is not indexed; ${files}`);
  }
  const flow = chosen("flow", posted.path, file.flow, asked.flow);
  requireFlow(daemon, flow);
  const target = resolveTarget(daemon, file);
  const known = identify(q, file, posted, project);
  const id = file.id ?? known?.id ?? openIds(daemon.config.ticketPrefix, listTicketIds(q))();
  requireBlockers(q, id, file.blockedBy);
  requireAcyclic(q, id, file.blockedBy);
  const worktree = resolveWorktree(file, posted, id);
  const stamped = stampTicket(posted.text, posted.path, { id, project, worktree, flow });
  return { id, project, flow, target, worktree, known, stamped };
}

// What the index will hold after a reindex, decided from what was read: ids, reasons to hold, blockers, stamps (files.md 13.2, 13.3).

import type { Config } from "../core/config.ts";
import { SloopError } from "../core/errors.ts";
import type { Flow } from "../core/flow.ts";
import { findCycle } from "../core/graph.ts";
import { contentHash } from "../core/hash.ts";
import { defaultWorktree, validSlug } from "../core/ids.ts";
import { type ChosenTarget, chooseTarget } from "../core/target.ts";
import { fileStem, validBranch, validTicketId } from "../core/worktree-name.ts";
import { stampTicket } from "../parse/stamp.ts";
import type { IndexTicket, KnownTicket } from "../store/reindex.ts";
import { openIds } from "./new-ids.ts";
import { cannotReindex, type SourceTicket } from "./reindex-read.ts";
import type { Stamp } from "./stamping.ts";

export type ReindexWorld = {
  agent: Config["agent"];
  ticketPrefix: string;
  flows: ReadonlyMap<string, Flow>;
  /** Ids of the indexed projects in path order, at least one. */
  projects: readonly string[];
  known: readonly KnownTicket[];
};

/** `evidence` is null until git was asked. `stamp`: the file with its missing keys; null: nothing to add, or the ticket is held. */
export type PlannedTicket = IndexTicket & { stamp: Stamp | null };

function checkReferences(tickets: readonly SourceTicket[]): void {
  const seen = new Set<string>();
  for (const { ref, file } of tickets) {
    // No two files have one path.
    if (file !== null) continue;
    if (seen.has(ref)) throw cannotReindex(`duplicate source reference \`${ref}\``);
    seen.add(ref);
  }
}

type Claim = { id: string; explicit: boolean } | null;

/** Key of a reference that is no path; no path holds a NUL. */
function external({ source, sourceRef }: Pick<KnownTicket, "source" | "sourceRef">): string {
  return `${source}\0${sourceRef}`;
}

/** An id of the ticket's own, else that of the row it was before. */
function claims(tickets: readonly SourceTicket[], known: readonly KnownTicket[]): Claim[] {
  const byRef = new Map(known.map((row) => [row.source === "local" ? row.sourceRef : external(row), row.id]));
  const byPath = new Map(known.map((row) => [row.filePath, row.id]));
  return tickets.map(({ source, ref, file, fields }) => {
    // An id that no ticket can have names nobody.
    if (fields.id !== null && validTicketId(fields.id)) return { id: fields.id, explicit: true };
    const carried =
      byRef.get(source === "local" ? ref : external({ source, sourceRef: ref })) ??
      (file === null ? undefined : byPath.get(file.path));
    return carried === undefined ? null : { id: carried, explicit: false };
  });
}

function checkClaims(tickets: readonly SourceTicket[], claimed: readonly Claim[]): void {
  const owners = new Map<string, number>();
  for (const [index, claim] of claimed.entries()) {
    if (claim === null) continue;
    const other = owners.get(claim.id);
    owners.set(claim.id, index);
    if (other === undefined) continue;
    const names = [tickets[other]?.ref, tickets[index]?.ref].map((ref) => `\`${ref}\``).join(" and ");
    const carried = !claim.explicit || claimed[other]?.explicit === false;
    const why = carried ? `: ${names}; one of them had it before` : `: ${names}`;
    throw cannotReindex(`duplicate ticket ID \`${claim.id}\`${why}`);
  }
}

function identify(tickets: readonly SourceTicket[], { known, ticketPrefix }: ReindexWorld): string[] {
  checkReferences(tickets);
  const claimed = claims(tickets, known);
  checkClaims(tickets, claimed);
  const nextId = openIds(
    ticketPrefix,
    claimed.flatMap((claim) => (claim === null ? [] : [claim.id])),
  );
  return claimed.map((claim) => claim?.id ?? nextId());
}

type Subject = { ticket: SourceTicket; id: string };

/** What the subjects are held against; `choose` remembers what it was asked, since most tickets ask the same. */
type Ground = ReindexWorld & { ids: ReadonlySet<string>; choose: (fields: SourceTicket["fields"]) => ChosenTarget };

function openGround(world: ReindexWorld, ids: readonly string[]): Ground {
  const chosen = new Map<string, ChosenTarget>();
  const choose: Ground["choose"] = (fields) => {
    const key = JSON.stringify([fields.target, fields.model, fields.effort]);
    const target = chosen.get(key) ?? chooseTarget(world.agent, fields);
    chosen.set(key, target);
    return target;
  };
  return { ...world, ids: new Set(ids), choose };
}

function slugProblem({ ticket: { file, fields } }: Subject): string | null {
  if (file === null || fields.worktree !== null) return null;
  const stem = fileStem(file.path);
  if (validSlug(stem)) return null;
  return `\`${stem}\` is not a valid worktree slug; rename the file like \`abc-def.md\`, or set \`worktree\``;
}

function placeProblem({ ticket: { fields } }: Subject, world: ReindexWorld): string | null {
  const project = fields.project ?? "default";
  if (!world.projects.includes(project)) return `project \`${project}\` is not indexed`;
  const flow = fields.flow ?? "default";
  return world.flows.has(flow) ? null : `flow \`${flow}\` is not defined`;
}

/** The first reason to hold the ticket; null when nothing is wrong with it. */
function holdReason(subject: Subject, ground: Ground): string | null {
  const { ref, problem, fields } = subject.ticket;
  if (problem !== null) return problem;
  const target = ground.choose(fields);
  const unknown = fields.blockedBy.find((blocker) => !ground.ids.has(blocker));
  const reason =
    placeProblem(subject, ground) ??
    (target.ok ? null : target.problem) ??
    slugProblem(subject) ??
    (unknown === undefined ? null : `field \`blocked_by\` references unknown ticket \`${unknown}\``);
  return reason === null ? null : `${ref}: ${reason}`;
}

function worktreeOf(subject: Subject): string {
  const { id, ticket } = subject;
  const { file, fields } = ticket;
  if (file === null) return defaultWorktree(null, id);
  if (fields.worktree !== null && validBranch(fields.worktree)) return fields.worktree;
  const stem = fileStem(file.path);
  return defaultWorktree(validSlug(stem) ? stem : null, id);
}

function projectOf(asked: string | null, { projects }: ReindexWorld): string {
  const wanted = asked ?? "default";
  if (projects.includes(wanted)) return wanted;
  return projects.includes("default") ? "default" : (projects[0] ?? wanted);
}

function stampOf({ ticket }: Subject, planned: PlannedTicket): Stamp | null {
  const { file, fields } = ticket;
  if (file === null || planned.heldReason !== null) return null;
  const present = [fields.id, fields.project, fields.worktree, fields.flow];
  if (present.every((value) => value !== null)) return null;
  const { id, projectId: project, worktree, flow } = planned;
  try {
    const text = stampTicket(file.text, file.path, { id, project, worktree, flow });
    return text === null ? null : { path: file.path, absolute: file.absolute, hash: file.hash, text };
  } catch (error) {
    throw error instanceof SloopError ? cannotReindex(error.message) : error;
  }
}

function plan(subject: Subject, ground: Ground): PlannedTicket {
  const { id, ticket } = subject;
  const { file, fields } = ticket;
  const planned: PlannedTicket = {
    id,
    projectId: projectOf(fields.project, ground),
    filePath: file?.path ?? null,
    source: ticket.source,
    sourceRef: ticket.ref,
    name: fields.name ?? "",
    worktree: worktreeOf(subject),
    target: fields.target ?? ground.agent?.defaultTarget ?? null,
    model: fields.model,
    effort: fields.effort,
    flow: fields.flow ?? "default",
    body: fields.body,
    contentHash: file?.hash ?? null,
    blockedBy: fields.blockedBy.every((blocker) => ground.ids.has(blocker)) ? fields.blockedBy : [],
    heldReason: holdReason(subject, ground),
    evidence: null,
    stamp: null,
  };
  planned.stamp = stampOf(subject, planned);
  if (planned.stamp !== null) planned.contentHash = contentHash(Buffer.from(planned.stamp.text));
  return planned;
}

function checkCycles(planned: readonly PlannedTicket[]): void {
  const graph = new Map(planned.flatMap(({ id, blockedBy }) => (blockedBy.length === 0 ? [] : [[id, blockedBy]])));
  const chain = findCycle(graph);
  if (chain !== null) throw cannotReindex(`\`blocked_by\` makes a cycle: ${chain.join(" -> ")}`);
}

/** Every check of a reindex but git's. Throws SloopError `internal` for what fails the whole of it; nothing was touched. */
export function planTickets(tickets: readonly SourceTicket[], world: ReindexWorld): PlannedTicket[] {
  const ids = identify(tickets, world);
  const ground = openGround(world, ids);
  const planned = tickets.map((ticket, index) => plan({ ticket, id: ids[index] ?? "" }, ground));
  checkCycles(planned);
  return planned;
}

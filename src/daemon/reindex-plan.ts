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
import { openSlices } from "../system/slices.ts";
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

type Claim = { id: string; explicit: boolean };

/** Key of a row by its reference; no path holds a NUL. */
function reference(source: string, ref: string | null): string {
  return source === "local" ? (ref ?? "") : `${source}\0${ref}`;
}

/** Gives the id that a ticket claims: one of its own, else that of the row it was before; null when it has neither. */
function openClaims(known: readonly KnownTicket[]): (ticket: SourceTicket) => Claim | null {
  const byReference = new Map<string, string>();
  const byPath = new Map<string, string>();
  for (const row of known) {
    byReference.set(reference(row.source, row.sourceRef), row.id);
    if (row.filePath !== null) byPath.set(row.filePath, row.id);
  }
  return ({ source, ref, file, fields }) => {
    // An id that no ticket can have names nobody.
    if (fields.id !== null && validTicketId(fields.id)) return { id: fields.id, explicit: true };
    const carried = byReference.get(reference(source, ref)) ?? byPath.get(file?.path ?? "");
    return carried === undefined ? null : { id: carried, explicit: false };
  };
}

type Owner = { ref: string; explicit: boolean };

function duplicateId(id: string, first: Owner, second: Owner): SloopError {
  const carried = first.explicit && second.explicit ? "" : "; one of them had it before";
  return cannotReindex(`duplicate ticket ID \`${id}\`: \`${first.ref}\` and \`${second.ref}\`${carried}`);
}

/** The ids of all tickets, in their order. */
function identify(tickets: readonly SourceTicket[], { known, ticketPrefix }: ReindexWorld): string[] {
  checkReferences(tickets);
  const claim = openClaims(known);
  const owners = new Map<string, Owner>();
  const claimed = tickets.map((ticket) => {
    const found = claim(ticket);
    if (found === null) return null;
    const owner = { ref: ticket.ref, explicit: found.explicit };
    const other = owners.get(found.id);
    if (other !== undefined) throw duplicateId(found.id, other, owner);
    owners.set(found.id, owner);
    return found.id;
  });
  const nextId = openIds(ticketPrefix, owners.keys());
  return claimed.map((id) => id ?? nextId());
}

type Subject = { ticket: SourceTicket; id: string };

/** What the subjects are held against; `choose` answers at once for a ticket that names nothing itself, as most do. */
type Ground = ReindexWorld & { ids: ReadonlySet<string>; choose: (fields: SourceTicket["fields"]) => ChosenTarget };

function openGround(world: ReindexWorld, ids: readonly string[]): Ground {
  const usual = chooseTarget(world.agent, { target: null, model: null, effort: null });
  const choose: Ground["choose"] = (fields) => {
    const own = fields.target !== null || fields.model !== null || fields.effort !== null;
    return own ? chooseTarget(world.agent, fields) : usual;
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
  if (file === null || file.hash === null || planned.heldReason !== null) return null;
  const { id: own, project: named, worktree: label, flow: bound } = fields;
  if (own !== null && named !== null && label !== null && bound !== null) return null;
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
  const graph = new Map<string, readonly string[]>();
  for (const { id, blockedBy } of planned) if (blockedBy.length > 0) graph.set(id, blockedBy);
  const chain = findCycle(graph);
  if (chain !== null) throw cannotReindex(`\`blocked_by\` makes a cycle: ${chain.join(" -> ")}`);
}

const sliceMs = 10;

/** Every check of a reindex but git's. Rejects with SloopError `internal` for what fails the whole of it; nothing was touched. */
export async function planTickets(tickets: readonly SourceTicket[], world: ReindexWorld): Promise<PlannedTicket[]> {
  const breathe = openSlices(sliceMs);
  const ids = identify(tickets, world);
  const ground = openGround(world, ids);
  const planned: PlannedTicket[] = [];
  for (const [index, ticket] of tickets.entries()) {
    planned.push(plan({ ticket, id: ids[index] ?? "" }, ground));
    await breathe();
  }
  checkCycles(planned);
  return planned;
}

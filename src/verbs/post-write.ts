// Writes a planned post: file, row and trigger change together or not at all (files.md 6.4).

import { dirname } from "node:path";
import { SloopError } from "../core/errors.ts";
import { contentHash } from "../core/hash.ts";
import type { Trigger } from "../core/trigger.ts";
import type { Daemon } from "../daemon/context.ts";
import type { TicketFile } from "../parse/ticket.ts";
import type { Queries } from "../store/open.ts";
import type { TicketRow } from "../store/tables.ts";
import { insertTicket, readTicket, refreshTicket, type TicketContent } from "../store/tickets.ts";
import { insertTrigger, queuedPinned, retimeTrigger } from "../store/triggers.ts";
import { fileSource, syncDirectory } from "../system/files.ts";
import { dropReplacement, type Prepared, prepareReplacement, replaceUnchanged } from "../system/rewrite.ts";
import type { PostedFile } from "./post-file.ts";
import type { PostPlan } from "./post-resolve.ts";

/** The demand a post makes; null: none was asked for. */
export type PostDemand = { kind: "auto" } | { kind: "at"; eligibleAtMs: number } | null;
export type PostResult = { row: TicketRow; trigger: Trigger | null; suppressed: boolean };

function versionConflict({ path }: PostedFile, more = "; post it again"): SloopError {
  return new SloopError("conflict", `${path}: source version conflict: the file changed while it was posted${more}`);
}

function unchanged(posted: PostedFile): void {
  const bytes = fileSource.read(posted.absolute);
  if (bytes === null || contentHash(bytes) !== posted.hash) throw versionConflict(posted);
}

function queueDemand(tx: Queries, row: TicketRow, demand: PostDemand, now: number): Trigger | null {
  if (demand === null) return null;
  const eligibleAtMs = demand.kind === "at" ? demand.eligibleAtMs : null;
  const queued = queuedPinned(tx, row.id, demand.kind);
  if (queued === null) return insertTrigger(tx, { kind: demand.kind, ticketId: row.id, eligibleAtMs }, now);
  if (eligibleAtMs === null) return queued;
  retimeTrigger(tx, queued.id, eligibleAtMs, now);
  return { ...queued, eligibleAtMs };
}

function settledForGood(row: TicketRow): boolean {
  return row.state === "merged" || row.state === "failed" || row.state === "needs_review";
}

type Post = { posted: PostedFile; file: TicketFile; plan: PostPlan; demand: PostDemand; hold: boolean };

function content({ posted, file, plan }: Post): TicketContent {
  return {
    name: file.name,
    worktree: plan.worktree,
    target: plan.target,
    model: file.model,
    effort: file.effort,
    flow: plan.flow,
    body: file.body,
    contentHash: plan.stamped === null ? posted.hash : contentHash(Buffer.from(plan.stamped)),
    blockedBy: file.blockedBy,
  };
}

function writeIndex(daemon: Daemon, post: Post): PostResult {
  const now = daemon.clock.now();
  const { plan, posted } = post;
  return daemon.store.write((tx) => {
    if (plan.known === null) {
      const state = post.hold ? "held" : "ready";
      insertTicket(tx, { ...content(post), id: plan.id, projectId: plan.project, filePath: posted.path, state }, now);
    } else {
      refreshTicket(tx, plan.known, content(post), now);
    }
    const row = readTicket(tx, plan.id);
    if (row === null) throw new Error(`ticket ${plan.id} vanished while it was posted`);
    const suppressed = settledForGood(row);
    const trigger = suppressed ? null : queueDemand(tx, row, post.demand, now);
    unchanged(posted);
    return { row, trigger, suppressed };
  });
}

function prepare({ absolute, path }: PostedFile, stamped: string): Prepared {
  try {
    return prepareReplacement(absolute, stamped);
  } catch (error) {
    throw new SloopError("internal", `${path}: cannot be stamped: ${(error as Error).message}`);
  }
}

/** The row is committed by now. An edit made since stands, and so does the row: posting again matches the two by path. */
function place(posted: PostedFile, next: Prepared, id: string): void {
  const again = `ticket \`${id}\` is registered as the file was; post it again`;
  let result: ReturnType<typeof replaceUnchanged>;
  try {
    result = replaceUnchanged(next, (bytes) => contentHash(bytes) === posted.hash);
  } catch (error) {
    throw new SloopError("internal", `${posted.path}: cannot be stamped: ${(error as Error).message}; ${again}`);
  }
  if (result === "replaced") syncDirectory(dirname(posted.absolute));
  else throw versionConflict(posted, `; ${again}`);
}

/** Registers, queues and stamps. Throws SloopError `conflict` when the file changed meanwhile; its text is never touched then. */
export function writePost(daemon: Daemon, post: Post): PostResult {
  const { posted, plan } = post;
  const next = plan.stamped === null ? null : prepare(posted, plan.stamped);
  let result: PostResult;
  try {
    unchanged(posted);
    result = writeIndex(daemon, post);
  } catch (error) {
    if (next !== null) dropReplacement(next);
    throw error;
  }
  if (next !== null) place(posted, next, result.row.id);
  return result;
}

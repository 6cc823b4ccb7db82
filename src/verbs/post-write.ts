// Writes a planned post: file, row and trigger change together or not at all (files.md 6.4).

import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { SloopError } from "../core/errors.ts";
import { contentHash } from "../core/hash.ts";
import type { Trigger } from "../core/trigger.ts";
import type { Daemon } from "../daemon/context.ts";
import type { TicketFile } from "../parse/ticket.ts";
import type { Queries } from "../store/open.ts";
import type { TicketRow } from "../store/tables.ts";
import { insertTicket, readTicket, refreshTicket, type TicketContent } from "../store/tickets.ts";
import { insertTrigger, queuedPinned, retimeTrigger } from "../store/triggers.ts";
import { readIfPresent, syncDirectory } from "../system/files.ts";
import type { PostedFile } from "./post-file.ts";
import type { PostPlan } from "./post-resolve.ts";

/** The demand a post makes; null: none was asked for. */
export type PostDemand = { kind: "auto" } | { kind: "at"; eligibleAtMs: number } | null;
export type PostResult = { row: TicketRow; trigger: Trigger | null; suppressed: boolean };

let temporaries = 0;

function unchanged(posted: PostedFile): void {
  const bytes = readIfPresent(posted.absolute);
  if (bytes !== null && contentHash(bytes) === posted.hash) return;
  throw new SloopError("conflict", `${posted.path}: source version conflict: the file changed while it was posted`, {
    hint: "post it again",
  });
}

function writeBeside(posted: PostedFile, text: string): string {
  temporaries += 1;
  const name = `.${basename(posted.absolute)}.sloop-post-${process.pid}-${temporaries}.tmp`;
  const path = join(dirname(posted.absolute), name);
  const { mode } = statSync(posted.absolute);
  const descriptor = openSync(path, "wx", 0o600);
  try {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    fsyncSync(descriptor);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
  chmodSync(path, mode & 0o7777);
  return path;
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

/** Registers, queues and stamps. Throws SloopError `conflict` when the file changed meanwhile; then nothing did change. */
export function writePost(daemon: Daemon, post: Post): PostResult {
  const { posted, plan } = post;
  const temporary = plan.stamped === null ? null : writeBeside(posted, plan.stamped);
  try {
    unchanged(posted);
    const result = writeIndex(daemon, post);
    if (temporary !== null) {
      renameSync(temporary, posted.absolute);
      syncDirectory(dirname(posted.absolute));
    }
    return result;
  } catch (error) {
    if (temporary !== null) rmSync(temporary, { force: true });
    throw error;
  }
}

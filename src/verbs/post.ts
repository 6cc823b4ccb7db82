// `post`: registers or refreshes one ticket file, stamps it and queues its demand, in one step or not at all.

import { SloopError } from "../core/errors.ts";
import { nextLocalTime, parseLocalTime } from "../core/hours.ts";
import type { Daemon } from "../daemon/context.ts";
import { parseTicket, type TicketFile } from "../parse/ticket.ts";
import type { PostReply } from "../protocol/replies.ts";
import type { Params } from "../protocol/verbs.ts";
import type { Handler } from "./handler.ts";
import { readPostedFile } from "./post-file.ts";
import { type PostPlan, planPost } from "./post-resolve.ts";
import { type PostDemand, type PostResult, writePost } from "./post-write.ts";

type AskedTrigger = Params<"post">["trigger"];

/** The next instant with that local reading. Throws SloopError `invalid_arguments` when it is no `HH:MM`. */
export function nextTime(daemon: Daemon, text: string): number {
  const minute = parseLocalTime(text);
  const at = minute === null ? null : nextLocalTime(minute, daemon.clock.now());
  if (at === null)
    throw new SloopError("invalid_arguments", `time \`${text}\` is not a local time; write it as \`HH:MM\``);
  return at;
}

function demandOf(daemon: Daemon, trigger: AskedTrigger): PostDemand {
  switch (trigger.kind) {
    case "auto":
      return { kind: "auto" };
    case "at":
      return { kind: "at", eligibleAtMs: nextTime(daemon, trigger.time) };
    case "manual":
    case "hold":
      return null;
  }
}

function echoTrigger(result: PostResult): PostReply["trigger"] {
  const { trigger, row } = result;
  if (trigger === null) return null;
  const kind = trigger.kind === "at" ? "at" : "auto";
  const due = kind === "at" && trigger.eligibleAtMs !== null ? { eligible_at_ms: trigger.eligibleAtMs } : {};
  return { id: trigger.id, kind, state: "queued", ticket: row.id, ...due };
}

function echoTicket(file: TicketFile, plan: PostPlan, { row }: PostResult): PostReply["ticket"] {
  return {
    id: row.id,
    project: row.projectId,
    file: row.filePath ?? "",
    state: row.state,
    name: row.name,
    blocked_by: file.blockedBy,
    worktree: plan.worktree,
    target: row.target,
    model: row.model,
    effort: row.effort,
    flow: plan.flow,
  };
}

export const post: Handler<"post"> = (daemon, args) => {
  if (daemon.config.ticketSource !== null) {
    throw new SloopError("conflict", "tickets come from `sources.tickets.exec`, which does not support authoring");
  }
  const demand = demandOf(daemon, args.trigger);
  const posted = readPostedFile(daemon, args.file);
  const file = parseTicket(posted.text, posted.path);
  const plan = planPost(daemon, posted, file, { project: args.project ?? null, flow: args.flow ?? null });
  const result = writePost(daemon, { posted, file, plan, demand, hold: args.trigger.kind === "hold" });
  return {
    ticket: echoTicket(file, plan, result),
    created: plan.known === null,
    file_rewritten: plan.stamped !== null,
    trigger: echoTrigger(result),
    trigger_suppressed: result.suppressed ? { reason: "terminal_ticket", state: result.row.state } : null,
  };
};

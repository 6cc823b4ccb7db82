// `run`: queues one trigger; acceptance never means a start.

import { SloopError } from "../core/errors.ts";
import { isOpen, localMinute, nextOpening } from "../core/hours.ts";
import type { Daemon } from "../daemon/context.ts";
import type { RunReply, TriggerEcho } from "../protocol/replies.ts";
import type { Params } from "../protocol/verbs.ts";
import type { Queries } from "../store/open.ts";
import { projectIndexed } from "../store/projects.ts";
import type { TicketRow } from "../store/tables.ts";
import { readTicket } from "../store/tickets.ts";
import { insertTrigger, type NewTrigger } from "../store/triggers.ts";
import type { Handler } from "./handler.ts";
import { nextTime } from "./post.ts";

type Args = Params<"run">;
type Asked = Args["trigger"];

function requireRegistered(q: Queries, id: string): TicketRow {
  const row = readTicket(q, id);
  if (row !== null) return row;
  throw new SloopError("not_found", `ticket \`${id}\` is not registered; \`sloop show\` lists the tickets`);
}

function requireRunnable(q: Queries, id: string): void {
  const { state } = requireRegistered(q, id);
  if (state === "held") {
    throw new SloopError("conflict", `ticket \`${id}\` is held; release it with \`sloop ready ${id}\``);
  }
  if (state === "merged") throw new SloopError("conflict", `ticket \`${id}\` is merged; there is nothing left to run`);
  if (state === "needs_review") {
    throw new SloopError(
      "conflict",
      `ticket \`${id}\` is needs_review; \`git merge --no-ff\` its branch, and the daemon notices`,
      {
        hint: `\`sloop show ${id}\` lists its runs and branches`,
      },
    );
  }
}

function requireOnly(q: Queries, args: Args): void {
  const { project } = args;
  for (const id of args.only) {
    const row = requireRegistered(q, id);
    if (project != null && row.projectId !== project) {
      throw new SloopError(
        "invalid_arguments",
        `ticket \`${id}\` is in project \`${row.projectId}\`, not in \`${project}\``,
      );
    }
  }
}

const longestIntervalMs = Number.MAX_SAFE_INTEGER / 2;

function schedule(daemon: Daemon, asked: Asked): NewTrigger & { kind: "immediate" | "at" | "every" | "overnight" } {
  const now = daemon.clock.now();
  switch (asked.kind) {
    case "now":
      return { kind: "immediate" };
    case "at":
      return { kind: "at", eligibleAtMs: nextTime(daemon, asked.local_time) };
    case "every": {
      const intervalMs = asked.interval_ms;
      if (!(intervalMs > 0 && intervalMs < longestIntervalMs)) {
        throw new SloopError(
          "invalid_arguments",
          `\`--every\` takes an interval above 0 ms that fits, not ${intervalMs} ms`,
        );
      }
      return { kind: "every", intervalMs, eligibleAtMs: now + intervalMs };
    }
    case "overnight": {
      const hours = daemon.config.runningHours;
      const open = hours === null || isOpen(hours, localMinute(now));
      return { kind: "overnight", eligibleAtMs: open ? now : (nextOpening(hours, now) ?? now) };
    }
  }
}

function echo(args: Args, trigger: { id: string } & NewTrigger): TriggerEcho {
  const { trigger: asked } = args;
  return {
    id: trigger.id,
    kind: asked.kind,
    state: "queued",
    ...(args.ticket == null ? {} : { ticket: args.ticket }),
    ...(args.project == null ? {} : { project: args.project }),
    ...(trigger.eligibleAtMs == null ? {} : { eligible_at_ms: trigger.eligibleAtMs }),
    ...(asked.kind === "at" ? { local_time: asked.local_time } : {}),
    ...(asked.kind === "every" ? { interval_ms: asked.interval_ms } : {}),
  };
}

export const run: Handler<"run"> = (daemon, args): RunReply => {
  const q = daemon.store.db;
  if (args.ticket != null && args.project != null) {
    throw new SloopError("invalid_arguments", "a run takes a ticket or a project, not both");
  }
  if (args.ticket != null) requireRunnable(q, args.ticket);
  if (args.project != null && !projectIndexed(q, args.project)) {
    throw new SloopError("not_found", `project \`${args.project}\` is not indexed`);
  }
  requireOnly(q, args);
  const demand = schedule(daemon, args.trigger);
  const scope = { ticketId: args.ticket ?? null, projectId: args.project ?? null, only: args.only };
  const trigger = daemon.store.write((tx) => insertTrigger(tx, { ...demand, ...scope }, daemon.clock.now()));
  return { trigger: echo(args, trigger) };
};

// What a person at a terminal can do about what was just shown (cli.md 17.4). Standard output keeps its layout; this is a note beside it.

import { existsSync } from "node:fs";
import type { Client } from "../client/client.ts";
import type { ShowReply, TicketDetail } from "../protocol/replies.ts";
import type { RunDetail } from "../protocol/rows.ts";
import { remark } from "./say.ts";
import type { Session } from "./session.ts";
import { visibleDeep } from "./style.ts";
import { errorIsTerminal } from "./terminal.ts";

/** `--no-ff`, because a fast-forward leaves no trace that it was this branch (engine.md 15.2). */
function byHand(run: RunDetail): string | null {
  if (run.branch === null) return null;
  const where = run.worktree !== null && existsSync(run.worktree) ? ` (its files: ${run.worktree})` : "";
  const into = run.target_branch ? ` on \`${run.target_branch}\`` : "";
  if (run.wip !== null) {
    const files = run.wip.files === 1 ? "a file" : `${run.wip.files} files`;
    return `nothing merges this by itself; ${files} of it were never committed and are not on branch \`${run.branch}\`. Look at both${where}, and if they are good, \`git merge --no-ff ${run.wip.ref}\`${into} takes both: the daemon notices`;
  }
  return `nothing merges this by itself; look at branch \`${run.branch}\`${where}, and if it is good, \`git merge --no-ff ${run.branch}\`${into}: the daemon notices`;
}

async function reviewStep(client: Client, ticket: TicketDetail): Promise<string | null> {
  const newest = ticket.runs[0];
  if (newest === undefined) return null;
  const shown = await client.call("show", { ref: newest.alias });
  return shown.ok && shown.data.kind === "run" ? byHand(visibleDeep(shown.data.value)) : null;
}

async function ticketStep(client: Client, ticket: TicketDetail): Promise<string | null> {
  const { id, state, runs, queued_triggers: queued } = ticket;
  switch (state) {
    case "needs_review":
      return await reviewStep(client, ticket);
    case "failed": {
      const logs = runs[0] === undefined ? "" : `\`sloop logs ${runs[0].alias}\` shows what was printed; `;
      return `${logs}\`sloop retry ${id}\`, then \`sloop run ${id}\`, tries again`;
    }
    case "held":
      return `\`sloop ready ${id}\` releases it`;
    case "ready":
      return Array.isArray(queued) && queued.length === 0
        ? `nothing is queued for it; \`sloop run ${id}\` does that`
        : null;
    default:
      return null;
  }
}

/** The step that follows from what `show` gave, or null when nothing is a person's to do. */
export async function nextStep(client: Client, shown: ShowReply): Promise<string | null> {
  if (shown.kind === "ticket") return await ticketStep(client, shown.value);
  if (shown.kind !== "run" || shown.value.state !== "needs_review") return null;
  return byHand(visibleDeep(shown.value));
}

/** Tells a person at a terminal the next step. */
export async function tellNextStep(session: Session, client: Client, shown: ShowReply): Promise<void> {
  if (session.json || !errorIsTerminal()) return;
  const step = await nextStep(client, shown);
  if (step !== null) await remark(`note: ${step}`);
}

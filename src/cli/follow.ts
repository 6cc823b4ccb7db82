// Followers: `show --follow`, `watch`, `wait`: the feed page by page until what was named is settled (cli.md 3.6, protocol.md 12).

import type { Client } from "../client/client.ts";
import type { Reply } from "../protocol/envelope.ts";
import type { ShowReply } from "../protocol/replies.ts";
import type { Params } from "../protocol/verbs.ts";
import { checkDeadline, type Deadline, deadlineOf, pauseWithin } from "./deadline.ts";
import { tellNextStep } from "./next.ts";
import { openProgress, type Progress } from "./progress.ts";
import { openSession } from "./repository.ts";
import { usualHistory } from "./request.ts";
import { refuse, subjectOf } from "./respond.ts";
import { remark } from "./say.ts";
import type { Session } from "./session.ts";
import { feedPauseMs, printEvents, reconnectMs } from "./stream.ts";
import { visible } from "./style.ts";
import { errorIsTerminal } from "./terminal.ts";

const usualWaitMs = 3_600_000;

type Following = {
  session: Session;
  client: Client;
  ref: string | null;
  deadline: Deadline;
  quiet: boolean;
  progress: Progress | null;
  /** The first answer was good: refusals from now on are failures of following, not of what was typed. */
  begun: boolean;
};

/** A request was refused while following: the reply has been printed, this is the exit code. */
class Stopped extends Error {
  readonly exitCode: number;
  constructor(exitCode: number) {
    super("refused");
    this.exitCode = exitCode;
  }
}

async function answered<T>(following: Following, verb: "show" | "events", reply: Reply<T>): Promise<T> {
  if (reply.ok) return reply.data;
  await following.progress?.erase();
  const exitCode = await refuse(following.session, following.client, verb, reply);
  throw new Stopped(following.begun ? 1 : exitCode);
}

async function ask(following: Following): Promise<ShowReply> {
  const { client, ref } = following;
  return await answered(following, "show", await client.call("show", ref === null ? {} : { ref }));
}

/** Reads and prints the feed from `args` to its end; the cursor to go on from. */
async function readFeed(following: Following, args: Params<"events">): Promise<number> {
  const { session, client, ref, quiet, deadline } = following;
  const scope = ref === null ? {} : { scope: ref };
  let request: Params<"events"> = { ...args, ...scope };
  for (let last = -1; ; ) {
    const page = await answered(following, "events", await client.call("events", request));
    if (!quiet) await printEvents(session, page);
    const cursor = Number(page.next_cursor);
    if (cursor >= page.latest || cursor === last) return cursor;
    last = cursor;
    request = { after: cursor, ...scope };
    checkDeadline(deadline, ref, feedPauseMs);
  }
}

/** The state a subject has ended in, or null while something can still happen to it. */
function settledAs(shown: ShowReply): string | null {
  if (shown.kind === "run") return shown.value.terminal ? shown.value.state : null;
  if (shown.kind !== "ticket") return null;
  const { state, runs, queued_triggers: queued } = shown.value;
  if (state === "merged" || state === "failed" || state === "needs_review") return state;
  // Its runs are over and nothing is queued: nothing would ever settle it. A ticket that never ran is waited for.
  const over = Array.isArray(queued) && queued.length === 0 && runs.length > 0 && runs.every((run) => run.terminal);
  return over && (state === "ready" || state === "held") ? state : null;
}

/** A word that names nothing is a pattern: right, but seldom meant, and nothing ever ends it. */
async function tellWhatIsFollowed({ session, ref, quiet }: Following, first: ShowReply): Promise<void> {
  if (session.json || first.kind !== "matches" || ref === null) return;
  if (quiet && !errorIsTerminal()) return;
  const named = `note: no ticket, run or project is named \`${visible(ref)}\`; following `;
  if (first.tickets.length > 0) {
    await remark(`${named}every ticket that matches it, until interrupted`);
    return;
  }
  await remark(`${named}tickets that will match it, until interrupted`);
  await remark("  hint: `sloop list` shows every ticket");
}

/** The daemon that answered does not any more: it may be replacing itself. */
async function tellSilence({ session, progress }: Following): Promise<void> {
  if (session.json || !errorIsTerminal()) return;
  await progress?.erase();
  await remark(`note: the daemon does not answer; trying for ${reconnectMs / 1000} s`);
}

async function end(following: Following, shown: ShowReply, cursor: number): Promise<void> {
  // The last event of a run is written with its settlement: drain once more after having seen that.
  await readFeed(following, { after: cursor });
  await following.progress?.finish(shown);
  if (!following.quiet) await tellNextStep(following.session, following.client, shown);
}

async function loop(following: Following, tail: number): Promise<number> {
  const { client, ref, deadline, progress } = following;
  const first = await ask(following);
  following.begun = true;
  client.startNoMore(reconnectMs, () => tellSilence(following));
  const settles = first.kind === "ticket" || first.kind === "run";
  await tellWhatIsFollowed(following, first);
  let cursor = await readFeed(following, { tail });
  for (;;) {
    if (settles) {
      const shown = await ask(following);
      const state = settledAs(shown);
      if (state !== null) {
        await end(following, shown, cursor);
        return state === "merged" ? 0 : 1;
      }
      await progress?.update(shown);
    }
    await pauseWithin(deadline, feedPauseMs, ref);
    cursor = await readFeed(following, { after: cursor });
  }
}

/** Ctrl-C must leave the terminal's line clean. */
function eraseOnSignal(progress: Progress): void {
  for (const [signal, exitCode] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    process.on(signal, () => {
      progress.eraseNow();
      process.exit(exitCode);
    });
  }
}

async function follow(following: Following, tail: number): Promise<number> {
  if (following.progress !== null) eraseOnSignal(following.progress);
  try {
    return await loop(following, tail);
  } catch (error) {
    if (error instanceof Stopped) return error.exitCode;
    await following.progress?.erase();
    throw error;
  }
}

function progressOf(session: Session): Progress {
  return openProgress(session.style, () => session.clock.now());
}

/** `show --follow` and `watch`. */
export async function followShow(session: Session): Promise<number> {
  const quiet = session.values.switches.has("quiet");
  const deadline = deadlineOf(session, null);
  return await follow(
    {
      session,
      client: await openSession(session),
      ref: subjectOf(session),
      deadline,
      quiet,
      progress: quiet ? progressOf(session) : null,
      begun: false,
    },
    session.values.numbers.get("tail") ?? usualHistory,
  );
}

/** Whether what was refused for want of runs is a ticket that is queued: its first run is still to come. */
async function willRun(client: Client, ref: string, refusal: Reply<unknown> & { ok: false }): Promise<boolean> {
  if (refusal.error.code !== "not_found" || !refusal.error.message.includes("has no runs yet")) return false;
  const shown = await client.call("show", { ref });
  return shown.ok && shown.data.kind === "ticket" && shown.data.value.queued_triggers.length > 0;
}

/**
 * `wait`: the reference must resolve to a run, or to a ticket that is queued for its first one; then as `show -f -q`, with
 * the ticket followed when a ticket was named.
 */
export async function waitRun(session: Session): Promise<number> {
  const deadline = deadlineOf(session, usualWaitMs);
  const client = await openSession(session);
  const ref = session.values.words[0] ?? "";
  const reply = await client.call("wait", { run: ref });
  if (!reply.ok && !(await willRun(client, ref, reply))) return await refuse(session, client, "wait", reply);
  return await follow({ session, client, ref, deadline, quiet: true, progress: progressOf(session), begun: true }, 0);
}

// `sloop demo`: the main job in a scratch repository, shown live, and nothing left behind (cli.md 3.16).

import { Client } from "../client/client.ts";
import { SloopError } from "../core/errors.ts";
import type { Reply } from "../protocol/envelope.ts";
import type { TicketDetail } from "../protocol/replies.ts";
import { repositoryPaths } from "../system/paths.ts";
import { processAlive } from "../system/process.ts";
import { type DemoView, openDemoView, ticketLines } from "./demo-view.ts";
import { type DemoWorld, demoGit, demoTickets, fillWorld, makeWorld, removeWorld } from "./demo-world.ts";
import { quoteWord } from "./quote.ts";
import { say, sayLocal } from "./say.ts";
import type { Session } from "./session.ts";
import { outIsTerminal } from "./terminal.ts";

const lookMs = 50;
const limitMs = 120_000;
const exitLimitMs = 10_000;

type Demo = { session: Session; world: DemoWorld; client: Client; stopped: AbortSignal };

function expect<T>(reply: Reply<T>): T {
  if (reply.ok) return reply.data;
  throw new SloopError(reply.error.code, reply.error.message);
}

async function readTicket(client: Client, id: string): Promise<TicketDetail> {
  const shown = expect(await client.call("show", { ref: id }));
  if (shown.kind === "ticket") return shown.value;
  throw new SloopError("internal", `ticket ${id} is gone`);
}

const over = (ticket: TicketDetail) => ["merged", "failed", "needs_review"].includes(ticket.state);

/** Nothing more will happen: both are over, or one that the other waits for is. */
function finished(tickets: readonly TicketDetail[]): boolean {
  return tickets.every(over) || tickets.some((ticket) => over(ticket) && ticket.state !== "merged");
}

async function watchTickets(demo: Demo, ids: readonly string[], view: DemoView): Promise<TicketDetail[]> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const tickets: TicketDetail[] = [];
    for (const id of ids) tickets.push(await readTicket(demo.client, id));
    await view.show(tickets);
    if (finished(tickets) || demo.stopped.aborted || performance.now() > deadline) return tickets;
    await Bun.sleep(lookMs);
  }
}

function introduction(world: DemoWorld): string {
  return [
    `a scratch repository in ${world.root}`,
    "two tickets; the second waits for the first, and its test fails the first time",
    "",
  ].join("\n");
}

/** How to go on in a world that was kept: its state lies in it, and plain commands must be told so. */
function keptLines(world: DemoWorld): string[] {
  const { XDG_STATE_HOME: state, XDG_RUNTIME_DIR: run } = world.env;
  return [
    `left in place: ${world.directory}`,
    "look around in it:",
    `  cd ${quoteWord(world.root)}`,
    `  export XDG_STATE_HOME=${quoteWord(state ?? "")} XDG_RUNTIME_DIR=${quoteWord(run ?? "")}`,
    "  sloop show",
    "and when you are done:",
    `  sloop stop; cd /; rm -rf ${quoteWord(world.directory)}; unset XDG_STATE_HOME XDG_RUNTIME_DIR`,
  ];
}

/** What happened, told from what the daemon and git say. */
function summary(demo: Demo, tickets: readonly TicketDetail[], kept: boolean): string {
  const { world, session } = demo;
  const failed = tickets.flatMap((ticket) =>
    (ticket.runs[0]?.stages ?? [])
      .filter((stage) => stage.state === "failed")
      .map((stage) => `stage ${stage.stage} of ${ticket.id} failed once: the agent got it back and went on`),
  );
  const merged = tickets.every((ticket) => ticket.state === "merged");
  return [
    "",
    ...(merged ? ["both tickets are merged:"] : ["not everything was merged:", ...ticketLines(tickets, session.style)]),
    ...(merged ? failed : []).map((line) => `  ${line}`),
    "",
    "git log --graph --oneline main:",
    demoGit(world, "log", "--graph", "--oneline", "main"),
    "",
    ...(kept ? keptLines(world) : ["everything was removed; `sloop demo --keep` leaves it in place"]),
    "next: `sloop init` in a repository of yours",
  ].join("\n");
}

function openDemoClient(session: Session, world: DemoWorld): Client {
  const uid = process.geteuid?.() ?? 0;
  const paths = repositoryPaths({ root: world.root, env: world.env, uid, platform: process.platform });
  const starter = { prepare: () => session.self, env: world.env };
  return new Client({ paths, pid: process.pid, whenAbsent: { kind: "start", starter } });
}

/** Stops the demo's daemon and waits until it is gone, cancelling what still runs. */
async function stopDaemon(client: Client): Promise<void> {
  const pid = client.startedPid;
  if (pid === null) return;
  client.startNoMore(0);
  const gone = async (limit: number) => {
    const deadline = performance.now() + limit;
    while (processAlive(pid) && performance.now() < deadline) await Bun.sleep(10);
    return !processAlive(pid);
  };
  try {
    await client.call("stop", { force: true });
  } catch {
    // It does not answer any more; its process is looked at below.
  }
  if (!(await gone(exitLimitMs))) process.kill(pid, "SIGKILL");
}

async function play(demo: Demo, kept: boolean): Promise<boolean> {
  const { session, world, client } = demo;
  fillWorld(world);
  if (!session.json) await say(introduction(world));
  const ids: string[] = [];
  for (const file of demoTickets) {
    ids.push(expect(await client.call("post", { file, trigger: { kind: "auto" } })).ticket.id);
  }
  const view = openDemoView({ style: session.style, terminal: outIsTerminal(), quiet: session.json });
  const tickets = await watchTickets(demo, ids, view);
  if (demo.stopped.aborted) return false;
  const rows = tickets.map(({ id, name, state, runs }) => ({ id, name, state, run: runs[0]?.alias ?? null }));
  await sayLocal(session.json, { directory: world.directory, kept, tickets: rows }, summary(demo, tickets, kept));
  return tickets.every((ticket) => ticket.state === "merged");
}

/** Ctrl-C ends the show, not the cleaning up. */
function onInterrupt(): { signal: AbortSignal; exitCode: () => number | null } {
  const controller = new AbortController();
  let exitCode: number | null = null;
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.on(signal, () => {
      exitCode ??= code;
      controller.abort();
    });
  }
  return { signal: controller.signal, exitCode: () => exitCode };
}

/** The command; exit code 0 only if both tickets were merged. */
export async function demo(session: Session): Promise<number> {
  const kept = session.values.switches.has("keep");
  const interrupted = onInterrupt();
  const world = makeWorld(session.env);
  const client = openDemoClient(session, world);
  try {
    const merged = await play({ session, world, client, stopped: interrupted.signal }, kept);
    return interrupted.exitCode() ?? (merged ? 0 : 1);
  } finally {
    await stopDaemon(client);
    if (!kept) await removeWorld(world);
  }
}

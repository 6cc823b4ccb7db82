// The operator commands that are one request and one reply (cli.md 2).

import { DaemonAbsent } from "../client/client.ts";
import type { ListReply } from "../protocol/replies.ts";
import type { OperatorVerb, Params } from "../protocol/verbs.ts";
import { clientFor, currentDirectory, openClient, openRepository, openSession } from "./repository.ts";
import { eventsArgs, listArgs, logsArgs, runArgs, showArgs } from "./request.ts";
import { print, refuse, respond } from "./respond.ts";
import { sayLocal, tellNothingQueued } from "./say.ts";
import type { Session } from "./session.ts";

async function send<V extends OperatorVerb>(session: Session, verb: V, args: Params<V>): Promise<number> {
  const client = await openSession(session);
  return await respond(session, client, verb, await client.call(verb, args));
}

/** What the configuration says that nothing reads; a broken one is no concern of a daemon that answers. */
async function warnOfConfiguration(root: string, session: Session): Promise<void> {
  const { checkConfiguration, warn } = await import("./configuration.ts");
  try {
    await warn(session, checkConfiguration(root, session.env));
  } catch {
    // Whoever starts a daemon with it will be told.
  }
}

/** Reloads the daemon's program; without a daemon there is nothing to reload, and one is started. */
async function restart(session: Session): Promise<number> {
  const repository = await openRepository(currentDirectory(), session.env);
  // The successor would refuse to start with it, and nobody would serve.
  const { checkConfiguration, warn } = await import("./configuration.ts");
  await warn(session, checkConfiguration(repository.root, session.env));
  const running = openClient(repository, { kind: "stop" });
  try {
    return await respond(session, running, "restart", await running.call("restart", {}));
  } catch (error) {
    if (!(error instanceof DaemonAbsent)) throw error;
  }
  const client = clientFor(repository, session);
  const reply = await client.call("daemon", {});
  if (!reply.ok) return await refuse(session, client, "daemon", reply);
  const data = { draining: false, active_runs: 0, pid: reply.data.pid, started: true };
  await sayLocal(session.json, data, `daemon started (pid ${data.pid})`);
  return 0;
}

async function daemon(session: Session): Promise<number> {
  if (session.values.words[0] === "restart") return await restart(session);
  const repository = await openRepository(currentDirectory(), session.env);
  const client = clientFor(repository, session);
  const reply = await client.call("daemon", {});
  if (reply.ok) reply.data.started = client.startedPid !== null && client.startedPid === reply.data.pid;
  const code = await respond(session, client, "daemon", reply);
  if (!session.json) await warnOfConfiguration(repository.root, session);
  return code;
}

async function stop(session: Session): Promise<number> {
  const client = openClient(await openRepository(currentDirectory(), session.env), { kind: "stop" });
  try {
    const reply = await client.call("stop", { force: session.values.switches.has("force") });
    return await respond(session, client, "stop", reply);
  } catch (error) {
    if (!(error instanceof DaemonAbsent)) throw error;
    await sayLocal(session.json, { stopping: false, running: false }, "daemon is not running");
    return 0;
  }
}

async function retry(session: Session): Promise<number> {
  const client = await openSession(session);
  const reply = await client.call("retry", { ticket: session.values.words[0] ?? "" });
  const code = await respond(session, client, "retry", reply);
  if (reply.ok) await tellNothingQueued(session, reply.data.ticket);
  return code;
}

/** For a daemon that does not know the filters: the same rows, chosen here. */
function filterRows(data: ListReply, args: Params<"list">): ListReply {
  const { project, states, limit } = args;
  const kept = data.tickets.filter((row) => {
    return (project == null || row.project === project) && (states == null || states.includes(row.state));
  });
  return { tickets: limit == null ? kept : kept.slice(0, limit) };
}

async function list(session: Session): Promise<number> {
  const client = await openSession(session);
  const args = listArgs(session.values);
  const filtered = args.project !== undefined || args.states !== undefined;
  let reply = await client.call("list", args);
  if (!reply.ok && reply.error.code === "invalid_request" && filtered) {
    const all = await client.call("list", {});
    reply = all.ok ? { ...all, data: filterRows(all.data, args) } : all;
  }
  if (!reply.ok) return await refuse(session, client, "list", reply);
  await print(session, "list", reply, { filtered });
  return 0;
}

async function show(session: Session): Promise<number> {
  const client = await openSession(session);
  const reply = await client.call("show", showArgs(session.values));
  const code = await respond(session, client, "show", reply);
  // The dashboard and lists say it row by row.
  if (reply.ok && !session.json && (reply.data.kind === "ticket" || reply.data.kind === "run")) {
    await (await import("./next.ts")).tellNextStep(session, client, reply.data);
  }
  return code;
}

const first = (session: Session) => session.values.words[0] ?? "";

/** By command word; each gives the exit code. */
export const operatorCommands: Readonly<Record<string, (session: Session) => Promise<number>>> = {
  daemon,
  stop,
  post: async (session) => await (await import("./post.ts")).post(session),
  retry,
  list,
  pause: (session) => send(session, "pause", {}),
  resume: (session) => send(session, "resume", {}),
  run: (session) => send(session, "run", runArgs(session.values)),
  hold: (session) => send(session, "hold", { ticket: first(session) }),
  ready: (session) => send(session, "ready", { ticket: first(session) }),
  cancel: (session) => send(session, "cancel", { run: first(session) }),
  show,
  status: (session) => send(session, "show", {}),
  logs: (session) => send(session, "logs", logsArgs(session.values)),
  events: (session) => send(session, "events", eventsArgs(session.values)),
};

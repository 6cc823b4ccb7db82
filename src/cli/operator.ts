// The operator commands that are one request and one reply (cli.md 2).

import { existsSync, readFileSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { type Client, DaemonAbsent } from "../client/client.ts";
import type { Config } from "../core/config.ts";
import type { ListReply } from "../protocol/replies.ts";
import type { OperatorVerb, Params } from "../protocol/verbs.ts";
import { findCommand } from "./commands.ts";
import { usageError } from "./refusal.ts";
import {
  checkConfiguration,
  clientFor,
  currentDirectory,
  loadConfiguration,
  openClient,
  openRepository,
} from "./repository.ts";
import { eventsArgs, listArgs, logsArgs, postArgs, runArgs, showArgs } from "./request.ts";
import { print, refuse, respond } from "./respond.ts";
import { remark, sayLocal } from "./say.ts";
import type { Session } from "./session.ts";
import { errorIsTerminal } from "./terminal.ts";

/** Finds the repository and its daemon, starting one if need be. */
export async function openSession(session: Session): Promise<Client> {
  return clientFor(await openRepository(currentDirectory(), session.env), session);
}

async function send<V extends OperatorVerb>(session: Session, verb: V, args: Params<V>): Promise<number> {
  const client = await openSession(session);
  return await respond(session, client, verb, await client.call(verb, args));
}

/** What the configuration says that nothing reads: people are told, programs are not. */
export async function warn(session: Session, warnings: readonly string[]): Promise<void> {
  if (session.json) return;
  for (const warning of warnings) await remark(`warning: ${warning}`);
}

/** The warnings of a configuration as it is now; a broken one is no concern of a daemon that answers. */
async function currentWarnings(root: string, session: Session): Promise<string[]> {
  try {
    return await checkConfiguration(root, session.env);
  } catch {
    return [];
  }
}

/** Reloads the daemon's program; without a daemon there is nothing to reload, and one is started. */
async function restart(session: Session): Promise<number> {
  const repository = await openRepository(currentDirectory(), session.env);
  // The successor would refuse to start with it, and nobody would serve.
  await warn(session, await checkConfiguration(repository.root, session.env));
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
  if (!session.json) await warn(session, await currentWarnings(repository.root, session));
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

/** argv arrives decoded, bad bytes replaced; only the kernel still knows whether the replacement was typed. */
function checkUtf8(path: string): void {
  if (!path.includes("\uFFFD")) return;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(readFileSync("/proc/self/cmdline"));
  } catch {
    throw usageError("`<FILE>` is not valid UTF-8", findCommand("post"));
  }
}

/** Relative paths are the daemon's to resolve, from the root; one that exists from here was meant from here. */
function postedFile(path: string, directory: string, root: string): string {
  if (isAbsolute(path) || directory === root) return path;
  const here = resolve(directory, path);
  return existsSync(here) ? here : path;
}

async function tellNothingQueued(session: Session, ticket: string): Promise<void> {
  if (session.json || !errorIsTerminal()) return;
  await remark(`note: nothing is queued yet; \`sloop run ${ticket}\` queues it`);
}

/** An agent that is not installed is the commonest reason for a run that never starts. */
function missingProgram(config: Config, name: string | null, env: Session["env"]): string[] {
  const program = name === null ? undefined : config.agent?.targets[name]?.cmd[0];
  if (program === undefined || program.includes("{") || Bun.which(program, { PATH: env["PATH"] ?? "" }) !== null)
    return [];
  return [`agent target \`${name}\` starts \`${program}\`, which is not on your PATH; no run can start without it`];
}

async function post(session: Session): Promise<number> {
  const [path = ""] = session.values.words;
  checkUtf8(path);
  const directory = currentDirectory();
  const repository = await openRepository(directory, session.env);
  const loaded = await loadConfiguration(repository.root, session.env);
  await warn(session, loaded.warnings);
  const client = clientFor(repository, session);
  const reply = await client.call("post", postArgs(session.values, postedFile(path, directory, repository.root)));
  const code = await respond(session, client, "post", reply);
  if (reply.ok) await warn(session, missingProgram(loaded.config, reply.data.ticket.target, session.env));
  if (reply.ok && session.values.switches.has("manual")) await tellNothingQueued(session, reply.data.ticket.id);
  return code;
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

const first = (session: Session) => session.values.words[0] ?? "";

/** By command word; each gives the exit code. */
export const operatorCommands: Readonly<Record<string, (session: Session) => Promise<number>>> = {
  daemon,
  stop,
  post,
  retry,
  list,
  pause: (session) => send(session, "pause", {}),
  resume: (session) => send(session, "resume", {}),
  run: (session) => send(session, "run", runArgs(session.values)),
  hold: (session) => send(session, "hold", { ticket: first(session) }),
  ready: (session) => send(session, "ready", { ticket: first(session) }),
  cancel: (session) => send(session, "cancel", { run: first(session) }),
  show: (session) => send(session, "show", showArgs(session.values)),
  status: (session) => send(session, "show", {}),
  logs: (session) => send(session, "logs", logsArgs(session.values)),
  events: (session) => send(session, "events", eventsArgs(session.values)),
};

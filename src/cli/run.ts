// A parsed command -> its exit code: which of the command families runs it, loaded when it is needed.

import type { Clock } from "../system/clock.ts";
import type { Parsed } from "./args.ts";
import type { Command } from "./command.ts";
import { inWorker, refuseInWorker } from "./inside.ts";
import type { Program } from "./main.ts";
import { currentDirectory, openRepository } from "./repository.ts";
import type { Session } from "./session.ts";
import { chooseStyle } from "./style.ts";
import { outIsTerminal } from "./terminal.ts";
import { version } from "./version.ts";

/** `daemon --foreground`: the same checks as before any start, then this process is the daemon. */
async function foreground(program: Program, session: Session): Promise<number> {
  const { root } = await openRepository(currentDirectory(), session.env);
  const { checkStart, warn } = await import("./configuration.ts");
  await warn(session, checkStart(root, session.env));
  const { env, executable } = program;
  return await program.serve({ root, env, version, executable });
}

async function runFollower(session: Session): Promise<number> {
  if (session.name === "logs" || session.name === "events") {
    const stream = await import("./stream.ts");
    return await (session.name === "logs" ? stream.followLogs(session) : stream.followEvents(session));
  }
  const follow = await import("./follow.ts");
  return await (session.name === "wait" ? follow.waitRun(session) : follow.followShow(session));
}

async function runLocal(session: Session): Promise<number> {
  if (session.name === "init") return await (await import("./init.ts")).init(session);
  if (session.name === "demo") return await (await import("./demo.ts")).demo(session);
  if (session.name === "doctor") return await (await import("./doctor.ts")).doctor(session);
  if (session.name === "completions") return await (await import("./completions.ts")).completions(session);
  if (session.name === "completions refs") return await (await import("./completions.ts")).completionRefs(session);
  return await (await import("./local.ts")).template(session);
}

async function runOperator(program: Program, session: Session): Promise<number> {
  if (inWorker(session.env)) {
    refuseInWorker(session);
    return await (await import("./worker.ts")).runWorker(session);
  }
  if (session.values.switches.has("foreground") && session.values.words.length === 0)
    return await foreground(program, session);
  if (session.name === "reindex") return await (await import("./reindex.ts")).reindex(session);
  const follows = session.name === "watch" || session.name === "wait" || session.values.switches.has("follow");
  if (follows) return await runFollower(session);
  const { operatorCommands } = await import("./operator.ts");
  const command = operatorCommands[session.name];
  if (command === undefined) throw new Error(`no command for ${session.name}`);
  return await command(session);
}

async function runCommand(program: Program, command: Command, session: Session): Promise<number> {
  switch (command.kind) {
    case "local":
      return await runLocal(session);
    case "worker":
      return await (await import("./worker.ts")).runWorker(session);
    case "operator":
      return await runOperator(program, session);
  }
}

/** The system's clock, unless a test steers it. */
async function clockOf(env: Session["env"]): Promise<Clock> {
  if (env["SLOOP_TEST_CLOCK_PATH"] === undefined) return { now: () => Date.now() };
  return (await import("../system/clock.ts")).openClock(env);
}

/** Runs a command in the session its command line asks for. */
export async function runParsed(program: Program, parsed: Parsed & { kind: "command" }): Promise<number> {
  const { command, values, json } = parsed;
  const noColor = program.env["NO_COLOR"] !== undefined;
  const style = chooseStyle({ flag: parsed.colour, noColor, terminal: !json && outIsTerminal() });
  const clock = await clockOf(program.env);
  const session: Session = { name: command.name, values, json, style, env: program.env, clock, self: program.self };
  return await runCommand(program, command, session);
}

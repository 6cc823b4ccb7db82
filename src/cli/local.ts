// The commands that talk to nobody: help, version, template.

import { templates } from "../parse/templates.ts";
import type { RepositoryPaths } from "../system/paths.ts";
import type { HelpPage } from "./help.ts";
import { currentDirectory, openRepository } from "./repository.ts";
import { say, sayLocal } from "./say.ts";
import type { Session } from "./session.ts";

function pathLines(paths: RepositoryPaths): string {
  const rows = [
    ["repository", paths.root],
    ["state", paths.stateDir],
    ["database", paths.database],
    ["log", paths.logFile],
    ["daemon's errors", paths.stderrLog],
    ["runs", paths.runsDir],
    ["lock", paths.lockFile],
    ["sockets", paths.runtimeDir],
    ["operator socket", paths.operatorSocket],
  ];
  return `This repository:\n${rows.map(([name, path]) => `  ${name}: ${path}`).join("\n")}`;
}

async function realPaths(env: Session["env"]): Promise<string | null> {
  try {
    const repository = await openRepository(currentDirectory(), env);
    await repository.check();
    return pathLines(repository.paths);
  } catch {
    // Outside a repository, or in one whose configuration is broken: the general part is all there is to say.
    return null;
  }
}

/** Prints a help page; nothing is looked for but, for the topic `paths`, the repository. */
export async function sayHelp(page: HelpPage, json: boolean, env: Session["env"]): Promise<number> {
  const { renderHelp } = await import("./help.ts");
  const paths = page.kind === "topic" && page.name === "paths" ? await realPaths(env) : null;
  const text = renderHelp(page, paths);
  await sayLocal(json, { kind: "help", text }, text);
  return 0;
}

/** `template KIND` prints the file byte for byte; without a kind, its own long help. */
export async function template(session: Session): Promise<number> {
  const kind = session.values.words[0];
  if (kind === undefined) return await sayHelp({ kind: "topic", name: "template" }, session.json, session.env);
  const text = templates[kind as keyof typeof templates];
  if (session.json) await sayLocal(true, { kind, template: text }, "");
  else await say(text.replace(/\n$/, ""));
  return 0;
}

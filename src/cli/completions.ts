// `sloop completions`: the script for a shell, and the ids that script asks for (cli.md 17.1).

import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ListReply } from "../protocol/replies.ts";
import { isRegularFile } from "../system/files.ts";
import { completionScript, type Shell } from "./completion-script.ts";
import { inWorker } from "./inside.ts";
import { currentDirectory, openClient, openRepository, type Repository } from "./repository.ts";
import { say, sayLocal } from "./say.ts";
import type { Session } from "./session.ts";

/** Whoever presses Tab waits no longer. */
const limitMs = 300;

function flowNames(root: string): string[] {
  const directory = join(root, ".agents/sloop/flows");
  const files = readdirSync(directory).filter((file) => file.endsWith(".yaml") && file !== ".yaml");
  const names = files
    .filter((file) => isRegularFile(join(directory, file)))
    .map((file) => file.slice(0, -".yaml".length));
  return [...new Set(["default", ...names])].sort();
}

function fromRows(kind: string, { tickets }: ListReply): string[] {
  switch (kind) {
    case "tickets":
      return tickets.map((row) => row.id);
    case "runs":
      return tickets.flatMap((row) => (row.run === null ? [] : [row.run]));
    default:
      return [...new Set(tickets.map((row) => row.project))].sort();
  }
}

async function listRows(repository: Repository): Promise<ListReply | null> {
  const client = openClient(repository, { kind: "stop" });
  const reply = await client.call("list", {}, { connectMs: limitMs, replyMs: limitMs });
  return reply.ok ? reply.data : null;
}

async function findRefs(kind: string, env: Session["env"]): Promise<string[]> {
  try {
    const repository = await openRepository(currentDirectory(), env);
    await repository.check();
    if (kind === "flows") return flowNames(repository.root);
    const rows = await listRows(repository);
    return rows === null ? [] : fromRows(kind, rows);
  } catch {
    // No repository, no daemon, nothing to read: a Tab that finds nothing says nothing.
    return [];
  }
}

/** `completions refs KIND [PREFIX]`: one per line, within 300 ms or not at all. Starts no daemon; always exit code 0. */
export async function completionRefs(session: Session): Promise<number> {
  const [kind = "", prefix = ""] = session.values.words;
  const tooLate = Bun.sleep(limitMs).then((): string[] => []);
  const found = inWorker(session.env) ? [] : await Promise.race([findRefs(kind, session.env), tooLate]);
  const refs = found.filter((ref) => ref.startsWith(prefix));
  await sayLocal(session.json, { kind: "refs", refs }, refs.join("\n"));
  return 0;
}

/** `completions SHELL`: the whole script. */
export async function completions(session: Session): Promise<number> {
  const shell = session.values.words[0] as Shell;
  const script = completionScript(shell);
  if (session.json) await sayLocal(true, { kind: "completions", shell, script }, "");
  else await say(script.replace(/\n$/, ""));
  return 0;
}

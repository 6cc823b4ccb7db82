// Everything that reads what a person or another program wrote, each as one function from text to what it said about it.

import { quickWorktreeDir } from "../src/cli/essentials.ts";
import { parseDuration } from "../src/core/duration.ts";
import { SloopError } from "../src/core/errors.ts";
import { parseLocalTime } from "../src/core/hours.ts";
import { compilePattern } from "../src/core/pattern.ts";
import { parseFlowSnapshot, parseTicketSnapshot, renderFlowSnapshot } from "../src/core/snapshot.ts";
import { parseConfig, parseEssentials } from "../src/parse/config.ts";
import { parseSimple } from "../src/parse/fast.ts";
import { parseFlow, worstCase } from "../src/parse/flow.ts";
import { loadAll } from "../src/parse/load.ts";
import { parseProject } from "../src/parse/project.ts";
import { parsePulled } from "../src/parse/pulled.ts";
import { parseYaml, parseYamlFully } from "../src/parse/source.ts";
import { stampId, stampTicket } from "../src/parse/stamp.ts";
import { rawTestCommand } from "../src/parse/templates.ts";
import { parseTicket, salvageTicket } from "../src/parse/ticket.ts";

/** What is wrong with a program, not with its input. */
class Broken extends Error {}

function must(holds: boolean, promise: string): void {
  if (!holds) throw new Broken(promise);
}

/** Refusals are verdicts; everything else that is thrown is a crash. */
function orRefusal<T>(read: () => T): T | { refused: string } {
  try {
    return read();
  } catch (error) {
    if (error instanceof SloopError && error.code === "invalid_arguments") return { refused: error.message };
    throw error;
  }
}

function ticket(text: string): unknown {
  const read = orRefusal(() => parseTicket(text, "t.md"));
  const salvaged = salvageTicket(text);
  if ("refused" in read) {
    must(read.refused.startsWith("t.md:"), "a refusal begins with the path");
    return { read, salvaged };
  }
  must(read.name !== "" && read.body !== "", "an accepted ticket has a name and a body");
  must(salvaged.name === read.name && salvaged.id === read.id, "salvage reads what a reading reads");
  return read;
}

const values = { id: "T-1", project: "p: q", worktree: "sloop/x", flow: "true" };

function stamp(text: string): unknown {
  const stamped = orRefusal(() => stampTicket(text, "t.md", values));
  if (typeof stamped !== "string") return stamped;
  must(orRefusal(() => stampTicket(stamped, "t.md", values)) === null, "stamping twice changes nothing");
  const { id, project, worktree, flow } = salvageTicket(stamped);
  must(id !== null && project !== null && worktree !== null && flow !== null, "a stamped file has all four keys");
  let same = 0;
  while (same < text.length && text[same] === stamped[same]) same += 1;
  // The inserted lines may begin with what follows them, so the first difference may lie a little into them.
  const tail = text.slice(same);
  must(stamped.endsWith(tail) && stamped.startsWith(text.slice(0, same)), "stamping only inserts");
  return stamped;
}

function project(text: string): unknown {
  const read = parseProject(text, "p.md");
  if ("problem" in read) return read;
  const stamped = orRefusal(() => stampId(text, "p.md", "PROJ-1"));
  if (typeof stamped !== "string") return { read, stamped };
  const again = parseProject(stamped, "p.md");
  must("id" in again && again.id === "PROJ-1", "a stamped project has its id");
  return stamped;
}

function flow(text: string): unknown {
  const read = orRefusal(() => parseFlow("f", "/f", text));
  if ("refused" in read) {
    must(/^\/f: [\s\S]*\(line \d+, column \d+\)$/.test(read.refused), "a refusal says where");
    return read;
  }
  const names = read.stages.map((stage) => stage.name);
  must(names.length > 0 && new Set(names).size === names.length, "stage names are unique");
  must(worstCase(read.stages) <= 48, "the worst case is bounded");
  for (const [index, { action, failAction }] of read.stages.entries()) {
    must(action.kind !== "merge" || index === names.length - 1, "a merge is last");
    const earlier = failAction.kind !== "return_to" || names.slice(0, index).includes(failAction.stage);
    must(earlier, "a return leads to an earlier stage");
  }
  const stored = renderFlowSnapshot(read);
  must(Bun.deepEquals(parseFlowSnapshot(stored), read), "a snapshot reads back equal");
  return read;
}

function config(text: string): unknown {
  const repository = { path: "/c", text };
  const full = orRefusal(() => parseConfig({ repository, user: null }));
  const light = orRefusal(() => parseEssentials("/c", text));
  must("refused" in full || !("refused" in light), "the light check refuses nothing that the full one takes");
  const quick = quickWorktreeDir(text);
  must(quick === null || ("worktreeDir" in light && light.worktreeDir === quick), "the quick check agrees");
  const user = orRefusal(() =>
    parseConfig({ repository: { path: "/c", text: "version: 1" }, user: { path: "/u", text } }),
  );
  return { full, user, light };
}

function load(text: string): unknown {
  const bytes = Buffer.from(text);
  const files = {
    read: (path: string) => (path.endsWith("/config.yaml") && !path.startsWith("/r") ? null : bytes),
    list: () => ["a.yaml", "b.yml"],
  };
  const version = Buffer.from("version: 1\n");
  const read = (path: string) => (path.endsWith("/config.yaml") ? version : bytes);
  const own = { ...files, read };
  return [orRefusal(() => loadAll(files, "/r", "/h")), orRefusal(() => loadAll(own, "/r", null))].map((result) =>
    "refused" in result ? result : { ...result, flows: [...result.flows], control: [...result.control.listen] },
  );
}

function yaml(text: string): unknown {
  const simple = parseSimple(text);
  const full = parseYamlFully(text);
  if (simple !== null)
    must(full.ok && Bun.deepEquals(full.root, simple.root), "the quick reader agrees with the library");
  return parseYaml(text);
}

/** Short texts: what stands in a field or an argument. */
function words(text: string): unknown {
  const short = text.slice(0, 200);
  const pattern = compilePattern(short);
  return [parseDuration(short), parseLocalTime(short), pattern === null ? null : pattern(text.slice(0, 2_000))];
}

export type Parser = { name: string; read: (text: string) => unknown };

export const parsers: readonly Parser[] = [
  { name: "yaml", read: yaml },
  { name: "config", read: config },
  { name: "load", read: load },
  { name: "flow", read: flow },
  { name: "ticket", read: ticket },
  { name: "stamp", read: stamp },
  { name: "project", read: project },
  { name: "pulled", read: (text) => parsePulled(text) },
  { name: "snapshot", read: (text) => [parseFlowSnapshot(text), parseTicketSnapshot(text)] },
  { name: "template", read: (text) => rawTestCommand(text) },
  { name: "words", read: words },
];

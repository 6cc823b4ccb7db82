// Every ticket of the source as it is written now: Markdown files below the ticket directory, or rows of an external source.

import { type Dirent, readdirSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { isBlank } from "../core/blank.ts";
import { SloopError } from "../core/errors.ts";
import { contentHash } from "../core/hash.ts";
import { validTicketId } from "../core/worktree-name.ts";
import type { PulledTicket } from "../parse/pulled.ts";
import { decodeUtf8, parseTicket, type SalvagedTicket, salvageTicket } from "../parse/ticket.ts";
import {
  type FileReader,
  NotAFileError,
  openFileReader,
  removeIfPresent,
  systemCode,
  wholeFileLimit,
} from "../system/files.ts";
import { processAlive } from "../system/process.ts";
import { leftBy } from "../system/rewrite.ts";
import { type Breathe, openSlices } from "../system/slices.ts";
import type { Daemon } from "./context.ts";
import { pullTickets } from "./source.ts";

/** Where a ticket's file is, and what it said. `path` is repository-relative; `hash` is null for a file that was not read. */
export type TicketSourceFile = { absolute: string; path: string; hash: string | null; text: string };

export type SourceTicket = {
  source: "local" | "exec";
  /** Path of the file, or the external reference: what begins every message about the ticket. */
  ref: string;
  file: TicketSourceFile | null;
  fields: SalvagedTicket;
  /** Why the ticket is wrong by itself, beginning with `ref`; null when it is not. */
  problem: string | null;
};

const sliceMs = 10;

/** A refusal of the whole reindex. */
export function cannotReindex(problem: string): SloopError {
  return new SloopError("internal", `cannot reindex tickets: ${problem}`);
}

/** A path with its links resolved, and as the walk came to it. */
type Place = { real: string; reached: string };
type Found = { absolute: string; path: string };
type Walk = { top: string; root: string; found: Found[]; seen: Set<string> };

function readEntries(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    // Gone since it was seen, or never there: nothing in it.
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") return [];
    throw error;
  }
}

/** The file or directory a symbolic link leads to; null when that is nothing, or nothing that holds tickets. */
function resolveLink(path: string): { real: string; directory: boolean } | null {
  try {
    const real = realpathSync(path);
    const found = statSync(real);
    return found.isFile() || found.isDirectory() ? { real, directory: found.isDirectory() } : null;
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ELOOP") return null;
    throw error;
  }
}

/** A path as `post` registers it: links resolved where that stays inside the repository, else as it was reached. */
function registered(root: string, { real, reached }: Place): string {
  return (real.startsWith(`${root}/`) ? real : reached).slice(root.length + 1);
}

function addFile(walk: Walk, place: Place): void {
  if (walk.seen.has(place.real)) return;
  walk.seen.add(place.real);
  walk.found.push({ absolute: place.real, path: registered(walk.root, place) });
}

/** A text that was prepared by a daemon which died, or became another with the same pid, before it could place or drop it. */
function removeLeftover(path: string): void {
  const pid = leftBy(path);
  if (pid === null) return;
  // What this daemon prepares itself is never there while the files are looked for.
  if (pid === process.pid || !processAlive(pid)) removeIfPresent(path);
}

/** As for `post`: a link may lead about in the repository or its ticket directory, never out of them. */
function allowed({ root, top }: Walk, real: string): boolean {
  return [root, top].some((directory) => real.startsWith(`${directory}/`));
}

/** Looks at one entry; a directory is handed back to be walked. */
function visit(walk: Walk, entry: Dirent, at: Place): Place | null {
  const place = { real: `${at.real}/${entry.name}`, reached: `${at.reached}/${entry.name}` };
  if (entry.isDirectory()) return place;
  const ticket = entry.name.endsWith(".md");
  if (entry.isFile()) {
    if (ticket) addFile(walk, place);
    else removeLeftover(place.real);
    return null;
  }
  const target = entry.isSymbolicLink() ? resolveLink(place.real) : null;
  if (target === null || !allowed(walk, target.real)) return null;
  if (target.directory) return { real: target.real, reached: place.reached };
  if (ticket) addFile(walk, { real: target.real, reached: place.reached });
  return null;
}

/** Every ticket file below the ticket directory, each once whatever links lead to it, by path. */
async function findFiles(daemon: Daemon, breathe: Breathe): Promise<Found[]> {
  const { root } = daemon.paths;
  const reached = join(root, daemon.config.ticketDir);
  const top = resolveLink(reached);
  const walk: Walk = { root, top: top?.real ?? root, found: [], seen: new Set() };
  const open: Place[] = top === null ? [] : [{ real: top.real, reached }];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (walk.seen.has(at.real)) continue;
    walk.seen.add(at.real);
    // By name, so that of two links to one file the first always wins.
    const entries = readEntries(at.real).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      const directory = visit(walk, entry, at);
      if (directory !== null) open.push(directory);
      await breathe();
    }
  }
  return walk.found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** What bytes that are no text say. */
const nothing = salvageTicket("");

function readFields(text: string, path: string): Pick<SourceTicket, "fields" | "problem"> {
  try {
    return { fields: parseTicket(text, path), problem: null };
  } catch (error) {
    if (!(error instanceof SloopError)) throw error;
    return { fields: salvageTicket(text), problem: error.message };
  }
}

/** A file that is too large to be a ticket: there is no telling what it says. */
function unread({ absolute, path }: Found): SourceTicket {
  const problem = `${path}: is larger than ${wholeFileLimit / 1_048_576} MiB`;
  return { source: "local", ref: path, file: { absolute, path, hash: null, text: "" }, fields: nothing, problem };
}

function readFound(read: FileReader, found: Found): SourceTicket | null {
  try {
    const bytes = read(found.absolute);
    return bytes === null ? null : readFile(found, bytes);
  } catch (error) {
    if (error instanceof NotAFileError) return unread(found);
    throw error;
  }
}

function readFile({ absolute, path }: Found, bytes: Uint8Array): SourceTicket {
  const hash = contentHash(bytes);
  const text = decodeUtf8(bytes);
  const ticket = { source: "local", ref: path, file: { absolute, path, hash, text: text ?? "" } } as const;
  if (text === null) return { ...ticket, fields: nothing, problem: `${path}: is not valid UTF-8 text` };
  return { ...ticket, ...readFields(text, path) };
}

async function readFiles(daemon: Daemon): Promise<SourceTicket[]> {
  const breathe = openSlices(sliceMs);
  const read = openFileReader();
  const tickets: SourceTicket[] = [];
  for (const found of await findFiles(daemon, breathe)) {
    const ticket = readFound(read, found);
    if (ticket !== null) tickets.push(ticket);
    await breathe();
  }
  return tickets;
}

function rowProblem(row: PulledTicket): string | null {
  if (row.id !== null && !validTicketId(row.id)) {
    return `\`id\` is ${JSON.stringify(row.id)}, which cannot be an id: no blanks, and \`sloop/<id>-a1-…\` must be a legal branch name`;
  }
  if (isBlank(row.name)) return "empty `name`";
  return isBlank(row.body) ? "empty `body`" : null;
}

function externalTicket(row: PulledTicket, position: number): SourceTicket {
  const ref = row.id === null || isBlank(row.id) ? `row:${position}` : row.id;
  const problem = rowProblem(row);
  return {
    source: "exec",
    ref,
    file: null,
    fields: { ...row, title: null, worktree: null },
    problem: problem === null ? null : `${ref}: ${problem}`,
  };
}

/** Reads the whole ticket source, in the order in which ids are given out. Throws SloopError `internal`: nothing was changed. */
export async function readSource(daemon: Daemon): Promise<SourceTicket[]> {
  const { ticketSource } = daemon.config;
  if (ticketSource !== null) return (await pullTickets(daemon, ticketSource)).map(externalTicket);
  try {
    return await readFiles(daemon);
  } catch (error) {
    throw cannotReindex(error instanceof Error ? error.message : String(error));
  }
}

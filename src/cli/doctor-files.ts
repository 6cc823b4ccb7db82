// What `sloop doctor` finds where a file of ours belongs and something else stands: a pipe, a device, a folder, a dead link.

import { accessSync, constants, lstatSync, readdirSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "../core/config.ts";
import { configFile } from "../system/config-file.ts";
import { systemCode, wholeFileLimit } from "../system/files.ts";
import { pasteWord } from "./doctor-text.ts";
import type { Finding } from "./finding.ts";

/** Why something at a path is not read, in words that follow the path. */
export type Odd = { what: string; tooLarge: boolean };
type Wanted = "file" | "file or directory";

function kindOf(found: Stats): string {
  if (found.isDirectory()) return "a directory";
  if (found.isFIFO()) return "a named pipe";
  return found.isSocket() ? "a socket" : "a device";
}

function unreadable(path: string, error: unknown): Odd | null {
  const code = systemCode(error);
  const missing = code === "ENOENT" || code === "ENOTDIR";
  if (!missing && code !== "ELOOP") return { what: `cannot be read: ${(error as Error).message}`, tooLarge: false };
  const link = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return link ? { what: "is a link that leads nowhere", tooLarge: false } : null;
}

/** What is odd about the thing at `path`, links followed; null when it is as it should be, or nothing is there. Opens nothing. */
export function oddAt(path: string, wanted: Wanted = "file"): Odd | null {
  try {
    const found = statSync(path);
    if (found.isDirectory() && wanted !== "file") return null;
    if (!found.isFile()) return { what: `is ${kindOf(found)}, not a ${wanted}`, tooLarge: false };
    if (found.size > wholeFileLimit)
      return { what: `is larger than ${wholeFileLimit / 1024 ** 2} MiB`, tooLarge: true };
    accessSync(path, constants.R_OK);
    return null;
  } catch (error) {
    return unreadable(path, error);
  }
}

/** Says what stands at `path`; moving it away is what mends it. */
export function oddFinding(about: Pick<Finding, "check" | "severity" | "why">, path: string, odd: Odd): Finding {
  const fix = `mv ${pasteWord(path)} ${pasteWord(`${path}.away`)}`;
  return { check: about.check, severity: about.severity, message: `${path} ${odd.what}`, why: about.why, fix };
}

/** The nearest place at or above `directory`, below `root`, where the configuration belongs and something else stands. */
export function checkConfigFile(directory: string, root: string | null): Finding[] {
  for (let at = directory; at !== root; at = dirname(at)) {
    const path = join(at, configFile);
    const odd = oddAt(path);
    if (odd !== null && !odd.tooLarge) {
      const why =
        root === null ? "no command works here without it" : `it is passed over, and ${root} serves what is typed here`;
      const found = oddFinding(
        { check: "configuration", severity: root === null ? "error" : "warning", why },
        path,
        odd,
      );
      return [{ ...found, fix: `${found.fix} && (cd ${pasteWord(at)} && sloop init)` }];
    }
    if (dirname(at) === at) break;
  }
  return [];
}

/** More than anybody has; a link to the top of a disk leads to more. */
const mostEntries = 20_000;

type Walk = { seen: Set<string>; left: number };

function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory).sort();
  } catch {
    return [];
  }
}

/** Everything below `directory` as reindex walks it: folders and links to folders entered once, whatever their name. */
function below(directory: string, walk: Walk): string[] {
  const real = realpathSync(directory);
  if (walk.seen.has(real)) return [];
  walk.seen.add(real);
  return entriesOf(directory).flatMap((name) => {
    walk.left -= 1;
    if (walk.left < 0) return [];
    const path = join(directory, name);
    return isDirectory(path) ? below(path, walk) : [path];
  });
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function tooMany(directory: string): Finding {
  return {
    check: "ticket file",
    severity: "warning",
    message: `more than ${mostEntries} files and folders are below ${directory}; the rest was not looked at`,
    why: "`sloop reindex` walks all of them",
    fix: `find -L ${pasteWord(directory)} -type d (and move away what holds no tickets)`,
  };
}

function checkTickets(directory: string): Finding[] {
  if (!isDirectory(directory)) return [];
  const why = "no ticket can be read from it, and `sloop reindex` passes over it or stops there";
  const walk = { seen: new Set<string>(), left: mostEntries };
  const found = below(directory, walk)
    .filter((path) => path.endsWith(".md"))
    .flatMap((path) => {
      const odd = oddAt(path);
      return odd === null ? [] : [oddFinding({ check: "ticket file", severity: "warning", why }, path, odd)];
    });
  return walk.left < 0 ? [...found, tooMany(directory)] : found;
}

function checkProjects(directory: string): Finding[] {
  return entriesOf(directory)
    .filter((name) => name.endsWith(".md") && name !== ".md")
    .flatMap((name) => {
      const path = join(directory, name);
      const odd = oddAt(path);
      if (odd === null) return [];
      return odd.tooLarge
        ? [oddFinding({ check: "project file", severity: "error", why: "no daemon starts with it" }, path, odd)]
        : [oddFinding({ check: "project file", severity: "warning", why: "its project is passed over" }, path, odd)];
    });
}

/** A flow that was said already, because the configuration was loaded, is not said again. */
function checkFlows(directory: string, said: readonly Finding[]): Finding[] {
  return entriesOf(directory)
    .filter((name) => name.endsWith(".yaml") && name !== ".yaml")
    .map((name) => join(directory, name))
    .filter((path) => !said.some(({ message }) => message.startsWith(`${path}:`)))
    .flatMap((path) => {
      const odd = oddAt(path);
      const why = "its flow is not there for any ticket";
      return odd === null ? [] : [oddFinding({ check: "flow file", severity: "warning", why }, path, odd)];
    });
}

/** Each odd thing where a ticket, a project or a flow belongs; the usual places without a configuration that loads. */
export function checkOddFiles(root: string, config: Config | null, said: readonly Finding[]): Finding[] {
  return [
    ...checkFlows(join(root, ".agents/sloop/flows"), said),
    ...checkProjects(join(root, config?.projectDir ?? ".agents/sloop/projects")),
    ...checkTickets(join(root, config?.ticketDir ?? ".agents/sloop/tickets")),
  ];
}

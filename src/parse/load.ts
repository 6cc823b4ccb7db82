// Everything the daemon fixes at its start: configuration and flows, from files handed in.

import { expandCommand } from "../core/command.ts";
import type { Config } from "../core/config.ts";
import { SloopError } from "../core/errors.ts";
import { builtInFlow, type Flow, type Reviewer } from "../core/flow.ts";
import { type ConfigHead, openConfig } from "./config.ts";
import type { Control } from "./control.ts";
import { parseFlow } from "./flow.ts";
import { refusePlaced } from "./shape.ts";
import { decodeUtf8 } from "./source.ts";

/** The file system as parse sees it. Null: no regular file (or no directory) there. Other failures are thrown. */
export type FileSource = {
  read: (path: string) => Uint8Array | null;
  /** Names of a directory's entries, in any order. */
  list: (directory: string) => string[] | null;
};

export type Loaded = {
  config: Config;
  /** By name; the built-in `default` included unless a file replaces it. */
  flows: Map<string, Flow>;
  /** One line each, for the log and for stderr. */
  warnings: string[];
  /** From the user-level file. */
  control: Control;
};

function readText(files: FileSource, path: string): string | null {
  let bytes: Uint8Array | null;
  try {
    bytes = files.read(path);
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    throw new SloopError("invalid_arguments", `${path}: cannot be read: ${cause}`);
  }
  if (bytes === null) return null;
  const text = decodeUtf8(bytes);
  if (text === null) throw new SloopError("invalid_arguments", `${path}: not valid UTF-8; save the file as UTF-8`);
  return text;
}

/** The repository's configuration file. */
export function configPath(root: string): string {
  return `${root}/.agents/sloop/config.yaml`;
}

function readConfig(files: FileSource, root: string, home: string | null): ConfigHead {
  const userPath = home?.startsWith("/") === true ? `${home}/.config/sloop/config.yaml` : null;
  const userText = userPath === null ? null : readText(files, userPath);
  const path = configPath(root);
  const repository = {
    path,
    // Read when it is asked for: a broken user file is reported first.
    get text(): string {
      const text = readText(files, path);
      if (text === null) throw new SloopError("invalid_arguments", `${path}: there is no such file`);
      return text;
    },
  };
  return openConfig({
    repository,
    user: userPath === null || userText === null ? null : { path: userPath, text: userText },
  });
}

type LoadedFlow = { flow: Flow; path: string };

function readFlows(files: FileSource, root: string): { flows: LoadedFlow[]; warnings: string[] } {
  const directory = `${root}/.agents/sloop/flows`;
  const names = [...(files.list(directory) ?? [])].sort();
  const warnings = names
    .filter((name) => name.endsWith(".yml"))
    .map((name) => `${directory}/${name}: not read; flow files end in \`.yaml\``);
  const flows: LoadedFlow[] = [];
  for (const name of names) {
    const stem = name.endsWith(".yaml") ? name.slice(0, -".yaml".length) : "";
    const path = `${directory}/${name}`;
    if (stem === "") continue;
    const text = readText(files, path);
    if (text === null) warnings.push(`${path}: not read; it is not a regular file`);
    else flows.push({ flow: parseFlow(stem, path, text), path });
  }
  return { flows, warnings };
}

/** A panel seat with the words that name it in a message. */
type Seat = { reviewer: Reviewer; where: string };

function seatsOf({ flow, path }: LoadedFlow): Seat[] {
  return flow.stages.flatMap(({ name, resultCheck }) =>
    resultCheck.kind === "panel"
      ? resultCheck.reviewers.map((reviewer, index) => ({
          reviewer,
          where: `${path}: stage \`${name}\`: panel reviewer ${index + 1}`,
        }))
      : [],
  );
}

function checkTargets(seats: Seat[], agent: Config["agent"]): string[] {
  const targets = agent?.targets ?? {};
  const warnings: string[] = [];
  for (const { reviewer, where } of seats) {
    const target = Object.hasOwn(targets, reviewer.target) ? targets[reviewer.target] : undefined;
    if (target === undefined) {
      const known =
        Object.keys(targets)
          .map((name) => `\`${name}\``)
          .join(", ") || "none";
      const problem = `${where} has the unknown agent target \`${reviewer.target}\`; agent.targets has ${known}`;
      throw new SloopError("invalid_arguments", problem);
    }
    const expanded = expandCommand(target, { ...reviewer, prompt: "" });
    if (!expanded.ok) {
      warnings.push(
        `${where}: agent target \`${target.name}\` does not specify \`${expanded.missing}\`, so this seat will count as a fail`,
      );
    }
  }
  return warnings;
}

function checkTestStage(flows: LoadedFlow[], testCmd: ConfigHead["testCmd"]): void {
  if (testCmd === null) return;
  const taken = flows.find(({ flow }) => flow.stages.some((stage) => stage.name === "test"));
  if (taken === undefined) return;
  refusePlaced(
    testCmd,
    `flow.test_cmd conflicts with the stage \`test\` of flow \`${taken.flow.name}\` (${taken.path}); rename the stage or remove the key`,
  );
}

/** Loads and checks everything, in the order of files.md 3.7. `root` and `home` are absolute. Throws `invalid_arguments`. */
export function loadAll(files: FileSource, root: string, home: string | null): Loaded {
  const head = readConfig(files, root, home);
  const { flows, warnings } = readFlows(files, root);
  const seatWarnings = checkTargets(flows.flatMap(seatsOf), head.config.agent);
  checkTestStage(flows, head.testCmd);
  const { config, control, warnings: configWarnings } = head.finish();
  const all = flows.map(({ flow }) => flow);
  if (!all.some((flow) => flow.name === builtInFlow.name)) all.push(builtInFlow);
  return {
    config,
    control,
    flows: new Map(all.map((flow) => [flow.name, flow])),
    warnings: [...configWarnings, ...warnings, ...seatWarnings],
  };
}

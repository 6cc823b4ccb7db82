// config.yaml: the repository's file with the user's defaults behind it, checked in the order of files.md 3.7.

import type { Config } from "../core/config.ts";
import { validPrefix } from "../core/ids.ts";
import { validBranch } from "../core/worktree-name.ts";
import { checkAgent, checkCommand, readAgent, readTicketSource } from "./config-agent.ts";
import { type RawConfig, readConfigFile, readRoot } from "./config-file.ts";
import { checkDuration, checkRetention, checkScheduler } from "./config-scheduler.ts";
import { type Control, noControl, parseBind, readControl } from "./control.ts";
import { parseDirectory } from "./directory.ts";
import { type MapNode, member } from "./node.ts";
import { asLooseText, type Placed, refuse, refusePlaced, type Source } from "./shape.ts";

/** `path` is absolute and begins every message about the file. */
export type ConfigInput = {
  repository: { path: string; text: string };
  user: { path: string; text: string } | null;
};

export type LoadedConfig = { config: Config; warnings: string[]; control: Control };

type Tail = "deleteMissingAfterMs" | "worktreeRetentionMs" | "evidenceRetentionMs";

/** A configuration checked up to where flow files come in; `finish` does the rest. `testCmd` with where it is written. */
export type ConfigHead = {
  config: Omit<Config, Tail>;
  testCmd: Placed<string[]> | null;
  finish: () => LoadedConfig;
};

const dayMs = 86_400_000;
const configSuffix = "/.agents/sloop/config.yaml";

function directory(placed: Placed<string> | null, fallback: string): string {
  if (placed === null) return fallback;
  const result = parseDirectory(placed.value);
  return result.ok ? result.directory : refusePlaced(placed, `${placed.key}: ${result.problem}`);
}

function prefix(placed: Placed<string> | null, fallback: string): string {
  if (placed === null || validPrefix(placed.value)) return placed?.value ?? fallback;
  refusePlaced(
    placed,
    `${placed.key}: \`${placed.value}\` is not an id prefix; use a non-empty one of ASCII letters, digits, \`-\` and \`_\` that starts and ends with a letter or digit`,
  );
}

function mergeTarget(placed: Placed<string> | null): string | null {
  if (placed === null || validBranch(placed.value)) return placed?.value ?? null;
  refusePlaced(placed, `${placed.key}: \`${placed.value}\` is not a legal local branch name`);
}

/** Refuses a section that is the repository's alone, at the user file's top level or under its `defaults`. */
function refuseScoped(user: RawConfig, name: string, keys: string): void {
  const defaults = member(user.root, "defaults");
  const inDefaults = defaults?.kind === "map" ? member(defaults, name) : null;
  const found = member(user.root, name) ?? inDefaults;
  if (found === null) return;
  refuse(user.source, found.at, `\`${name}\` is repository-scoped; set ${keys} in the repository's config.yaml`);
}

function userControl(user: RawConfig, repositoryPath: string): Control {
  const node = member(user.root, "control");
  if (node === null) return noControl;
  const control = readControl(user.source, node);
  const root = repositoryPath.endsWith(configSuffix) ? repositoryPath.slice(0, -configSuffix.length) : "";
  // Other repositories' entries are theirs to judge.
  const own = control.listen.get(root);
  if (own !== undefined && parseBind(own.bind) === null) {
    const problem = `control.listen.${root}.bind: \`${own.bind}\` is not an address; write ADDR:PORT with an IPv4 address, a bracketed IPv6 address or localhost`;
    refuse(user.source, node.at, problem);
  }
  return control;
}

function readUser(input: ConfigInput["user"]): RawConfig | null {
  if (input === null) return null;
  const { source, root } = readRoot(input.path, input.text);
  return readConfigFile(source, root);
}

function refuseControl(source: Source, root: MapNode): void {
  const control = root.entries.find((entry) => entry.key === "control" && entry.value.kind !== "null");
  if (control === undefined) return;
  const problem =
    "`control` may only stand in the user-level file ~/.config/sloop/config.yaml: a repository must not be able to open a port";
  refuse(source, control.keyAt, problem);
}

/** Checks 1 to 17. Throws `invalid_arguments` at the first problem. */
export function openConfig(input: ConfigInput): ConfigHead {
  const user = readUser(input.user);
  const { source, root } = readRoot(input.repository.path, input.repository.text);
  refuseControl(source, root);
  const raw = readConfigFile(source, root);
  const agent = readAgent(source, root);
  const ticketSource = readTicketSource(source, root);
  const { texts } = raw;
  const worktreeDir = directory(texts.worktree_dir, ".worktrees");
  const projectDir = directory(texts.project_dir, ".agents/sloop/projects");
  const ticketDir = directory(texts.ticket_dir, ".agents/sloop/tickets");
  if (user !== null) refuseScoped(user, "agent", "agent.default_target and agent.targets");
  if (user !== null) refuseScoped(user, "sources", "sources.tickets.exec");
  const control = user === null ? noControl : userControl(user, input.repository.path);
  const ticketCommand = ticketSource === null ? null : checkCommand(ticketSource);
  const scheduler = checkScheduler(raw.scheduler, user?.defaults.scheduler ?? null);
  const checkedAgent = checkAgent(agent);
  const testCmd = (raw.flow ?? user?.defaults.flow ?? null)?.testCmd ?? null;
  const config: ConfigHead["config"] = {
    worktreeDir,
    projectDir,
    ticketDir,
    ...scheduler,
    agent: checkedAgent,
    ticketSource: ticketCommand,
    testCmd: testCmd === null ? null : checkCommand(testCmd),
    ticketPrefix: prefix(texts["ids.ticket_prefix"], "TICK"),
    projectPrefix: prefix(texts["ids.project_prefix"], "PROJ"),
    mergeTarget: mergeTarget(texts["merge.target"]),
  };
  const warnings = [user?.warning, raw.warning].filter((warning) => typeof warning === "string");
  const finish = () => ({ config: { ...config, ...retentions(texts) }, warnings, control });
  return { config, testCmd, finish };
}

/** Checks 21 and 22. */
function retentions(texts: RawConfig["texts"]): Pick<Config, Tail> {
  return {
    deleteMissingAfterMs: checkDuration(texts.delete_missing_after, 30 * dayMs),
    worktreeRetentionMs: checkRetention(texts.worktree_retention, 7 * dayMs),
    evidenceRetentionMs: checkRetention(texts.evidence_retention, 30 * dayMs),
  };
}

/** The whole configuration, flow files aside. Throws `invalid_arguments` at the first problem, in the order of files.md 3.7. */
export function parseConfig(input: ConfigInput): LoadedConfig {
  return openConfig(input).finish();
}

/** The light check of every operator verb: the file parses, its version is 1, `worktree_dir` is legal. Throws `invalid_arguments`. */
export function parseEssentials(path: string, text: string): { worktreeDir: string } {
  const { source, root } = readRoot(path, text);
  const node = member(root, "worktree_dir");
  if (node === null) return { worktreeDir: ".worktrees" };
  const value = asLooseText(source, node, "worktree_dir");
  return { worktreeDir: directory({ value, key: "worktree_dir", at: node.at, source }, ".worktrees") };
}

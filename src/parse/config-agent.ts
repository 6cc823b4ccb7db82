// The sections only the repository's file may hold: agent targets and ticket sources.

import { isBlank } from "../core/blank.ts";
import type { Config, Target } from "../core/config.ts";
import { type MapNode, member, type Node } from "./node.ts";
import { asLooseText, asLooseTexts, asMap, type Placed, refuse, refusePlaced, type Source } from "./shape.ts";

type RawTarget = {
  name: string;
  cmd: Placed<string[]>;
  model: Placed<string> | null;
  effort: Placed<string> | null;
};

export type RawAgent = {
  source: Source;
  at: number;
  /** Where a misplaced `agent.cmd` stands. */
  cmdAt: number | null;
  defaultTarget: Placed<string> | null;
  targets: RawTarget[] | null;
};

function text(source: Source, map: MapNode, name: string, prefix: string): Placed<string> | null {
  const key = `${prefix}.${name}`;
  const node = member(map, name);
  return node === null ? null : { value: asLooseText(source, node, key), key, at: node.at, source };
}

function texts(source: Source, node: Node, key: string): Placed<string[]> {
  return { value: asLooseTexts(source, node, key), key, at: node.at, source };
}

function readTarget(source: Source, name: string, node: Node): RawTarget {
  const key = `agent.targets.${name}`;
  const map = asMap(source, node, key);
  const cmd = member(map, "cmd");
  if (cmd === null) return refuse(source, map.at, `${key}: missing field \`cmd\`, a list of strings`);
  return {
    name,
    cmd: texts(source, cmd, `${key}.cmd`),
    model: text(source, map, "model", key),
    effort: text(source, map, "effort", key),
  };
}

/** Types of the `agent` section; null when there is none. */
export function readAgent(source: Source, root: MapNode): RawAgent | null {
  const node = member(root, "agent");
  if (node === null) return null;
  const map = asMap(source, node, "agent");
  const targets = member(map, "targets");
  return {
    source,
    at: map.at,
    cmdAt: member(map, "cmd")?.at ?? null,
    defaultTarget: text(source, map, "default_target", "agent"),
    targets:
      targets === null
        ? null
        : asMap(source, targets, "agent.targets").entries.map(({ key, value }) => readTarget(source, key, value)),
  };
}

/** An argv that names a command: not empty, and its first item not blank. */
export function checkCommand(command: Placed<string[]>): string[] {
  const [first] = command.value;
  if (first === undefined || isBlank(first)) refusePlaced(command, `${command.key} must name a command`);
  return command.value;
}

function checkNotBlank(value: Placed<string> | null): string | null {
  if (value !== null && isBlank(value.value)) {
    refusePlaced(value, `${value.key} must not be empty; give it a value or remove the line`);
  }
  return value?.value ?? null;
}

function checkTarget(raw: RawTarget): Target {
  const cmd = checkCommand(raw.cmd);
  const count = cmd.reduce((sum, argument) => sum + argument.split("{prompt}").length - 1, 0);
  if (count !== 1) refusePlaced(raw.cmd, `${raw.cmd.key} must contain \`{prompt}\` exactly once, found ${count}`);
  return { name: raw.name, cmd, model: checkNotBlank(raw.model), effort: checkNotBlank(raw.effort) };
}

function byName(left: RawTarget, right: RawTarget): number {
  if (left.name === right.name) return 0;
  return left.name < right.name ? -1 : 1;
}

/** The rules of files.md 4, targets in name order. `targets` has no prototype: any name can be looked up in it. */
export function checkAgent(raw: RawAgent | null): Config["agent"] {
  if (raw === null) return null;
  const { source, at, defaultTarget, targets } = raw;
  if (raw.cmdAt !== null) {
    refuse(
      source,
      raw.cmdAt,
      "agent.cmd is not a key; commands belong under agent.targets, with an agent.default_target",
    );
  }
  if (defaultTarget === null) return refuse(source, at, "agent.default_target is required; name one of agent.targets");
  if (targets === null) return refuse(source, at, "agent.targets is required; it holds each target's `cmd`");
  if (!targets.some((target) => target.name === defaultTarget.value)) {
    const known = targets.map((target) => `\`${target.name}\``).join(", ") || "none";
    refusePlaced(
      defaultTarget,
      `agent.default_target \`${defaultTarget.value}\` is not one of agent.targets (${known})`,
    );
  }
  const checked: Record<string, Target> = Object.create(null);
  for (const target of [...targets].sort(byName)) checked[target.name] = checkTarget(target);
  return { defaultTarget: defaultTarget.value, targets: checked };
}

/** Types of the `sources` section, where unknown keys are errors: `sources.tickets.exec`, null when absent. */
export function readTicketSource(source: Source, root: MapNode): Placed<string[]> | null {
  const sources = strictMember(source, root, "sources", { key: "sources", only: "tickets" });
  const tickets = sources && strictMember(source, sources, "tickets", { key: "sources.tickets", only: "exec" });
  const exec = tickets && member(tickets, "exec");
  return exec === null ? null : texts(source, exec, "sources.tickets.exec");
}

function strictMember(
  source: Source,
  parent: MapNode,
  name: string,
  allowed: { key: string; only: string },
): MapNode | null {
  const node = member(parent, name);
  if (node === null) return null;
  const map = asMap(source, node, allowed.key);
  const stranger = map.entries.find((entry) => entry.key !== allowed.only);
  if (stranger !== undefined) {
    const problem = `${allowed.key}: unknown field \`${stranger.key}\`, expected \`${allowed.only}\``;
    refuse(source, stranger.keyAt, problem);
  }
  return map;
}

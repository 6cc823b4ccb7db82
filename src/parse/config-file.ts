// One configuration file, types checked, values not yet: the same reading for the repository's file and the user's.

import { type MapNode, member, type Node } from "./node.ts";
import {
  asCount,
  asLooseText,
  asLooseTexts,
  asMap,
  openSource,
  type Placed,
  parseSource,
  refuse,
  type Source,
} from "./shape.ts";
import { unknownKeys } from "./unknown.ts";

export type RawHours = { start: Placed<string>; end: Placed<string> };

export type RawScheduler = {
  maxParallelTasks: Placed<number> | null;
  stallReportAfter: Placed<string> | null;
  stallAfter: Placed<string> | null;
  cancelGrace: Placed<string> | null;
  runningHours: RawHours | null;
};

type RawFlow = { testCmd: Placed<string[]> | null };

export type RawConfig = {
  source: Source;
  root: MapNode;
  texts: Record<TextKey, Placed<string> | null>;
  scheduler: RawScheduler;
  /** Null: no section; a section without a command switches the user's default off. */
  flow: RawFlow | null;
  defaults: { scheduler: RawScheduler; flow: RawFlow | null };
  warning: string | null;
};

const textKeys = [
  "worktree_dir",
  "project_dir",
  "ticket_dir",
  "worktree_retention",
  "delete_missing_after",
  "evidence_retention",
  "merge.target",
  "ids.ticket_prefix",
  "ids.project_prefix",
] as const;
type TextKey = (typeof textKeys)[number];

const nothing: MapNode = { kind: "map", entries: [], at: 0 };

function section(source: Source, map: MapNode, name: string, key = name): MapNode {
  const value = member(map, name);
  return value === null ? nothing : asMap(source, value, key);
}

function read<T>(
  source: Source,
  map: MapNode,
  key: string,
  as: (source: Source, node: Node, key: string) => T,
): Placed<T> | null {
  const node = member(map, key.slice(key.lastIndexOf(".") + 1));
  return node === null ? null : { value: as(source, node, key), key, at: node.at, source };
}

function readHours(source: Source, scheduler: MapNode, prefix: string): RawHours | null {
  const node = member(scheduler, "running_hours");
  if (node === null) return null;
  const key = `${prefix}.running_hours`;
  const map = asMap(source, node, key);
  const half = (name: string): Placed<string> =>
    read(source, map, `${key}.${name}`, asLooseText) ??
    refuse(source, map.at, `${key}: missing \`${name}\`; the fields \`start\` and \`end\` are both required`);
  return { start: half("start"), end: half("end") };
}

function readScheduler(source: Source, map: MapNode, prefix: string): RawScheduler {
  return {
    maxParallelTasks: read(source, map, `${prefix}.max_parallel_tasks`, asCount),
    stallReportAfter: read(source, map, `${prefix}.stall_report_after`, asLooseText),
    stallAfter: read(source, map, `${prefix}.stall_after`, asLooseText),
    cancelGrace: read(source, map, `${prefix}.cancel_grace`, asLooseText),
    runningHours: readHours(source, map, prefix),
  };
}

function readFlow(source: Source, map: MapNode, prefix: string): RawFlow | null {
  if (member(map, "flow") === null) return null;
  const flow = section(source, map, "flow", prefix);
  return { testCmd: read(source, flow, `${prefix}.test_cmd`, asLooseTexts) };
}

function readTexts(source: Source, root: MapNode): RawConfig["texts"] {
  const placed = (key: TextKey) => {
    const [first = key, second] = key.split(".");
    return read(source, second === undefined ? root : section(source, root, first), key, asLooseText);
  };
  return Object.fromEntries(textKeys.map((key) => [key, placed(key)])) as RawConfig["texts"];
}

/** Parses a file as far as its version, which is judged before anything else in it. */
export function readRoot(path: string, text: string): { source: Source; root: MapNode } {
  const source = openSource(path, text);
  const node = parseSource(source);
  if (node !== null && node.kind !== "null" && node.kind !== "map") {
    return refuse(source, node.at, "a configuration file must be a mapping of keys to values");
  }
  const root = node?.kind === "map" ? node : nothing;
  const version = member(root, "version");
  if (version === null) return refuse(source, root.at, "missing `version`; add `version: 1`");
  const value = asCount(source, version, "version");
  if (value !== 1) {
    return refuse(source, version.at, `unsupported config version ${value}; this program reads version 1`);
  }
  return { source, root };
}

/** Types of every known key but `agent`, `sources` and `control`, which only one of the two files may have. */
export function readConfigFile(source: Source, root: MapNode): RawConfig {
  const defaults = section(source, root, "defaults");
  return {
    source,
    root,
    texts: readTexts(source, root),
    scheduler: readScheduler(source, section(source, root, "scheduler"), "scheduler"),
    flow: readFlow(source, root, "flow"),
    defaults: {
      scheduler: readScheduler(
        source,
        section(source, defaults, "scheduler", "defaults.scheduler"),
        "defaults.scheduler",
      ),
      flow: readFlow(source, defaults, "defaults.flow"),
    },
    warning: unknownKeys(source.path, root),
  };
}

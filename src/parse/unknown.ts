// Keys of config.yaml that nothing reads: listed in one warning, because a misspelt key is otherwise invisible.

import { nearest } from "./nearest.ts";
import type { MapNode, Node } from "./node.ts";

/** Known keys of a mapping: true for a key whose value is not looked into. `*` stands for every key. */
type Known = { [key: string]: Known | true };

const scheduler: Known = {
  max_parallel_tasks: true,
  stall_report_after: true,
  stall_after: true,
  cancel_grace: true,
  running_hours: { start: true, end: true },
};
const flow: Known = { test_cmd: true };

const knownKeys: Known = {
  version: true,
  worktree_dir: true,
  project_dir: true,
  ticket_dir: true,
  worktree_retention: true,
  delete_missing_after: true,
  evidence_retention: true,
  scheduler,
  agent: { default_target: true, targets: { "*": { cmd: true, model: true, effort: true } } },
  sources: true,
  flow,
  merge: { target: true },
  ids: { ticket_prefix: true, project_prefix: true },
  defaults: { scheduler, flow },
  control: true,
};

type Found = { key: string; near: string | null };

function collect(map: MapNode, known: Known, prefix: string, found: Found[]): void {
  for (const { key, value } of map.entries) {
    const below = Object.hasOwn(known, key) ? known[key] : known["*"];
    if (below === undefined) {
      found.push({ key: prefix + key, near: nearest(key, Object.keys(known))?.word ?? null });
    } else if (below !== true && value.kind === "map") {
      collect(value, below, `${prefix}${key}.`, found);
    }
  }
}

/** One line that names the file's ignored keys, each with the nearest known one; null when there are none. */
export function unknownKeys(path: string, root: Node | null): string | null {
  const found: Found[] = [];
  if (root?.kind === "map") collect(root, knownKeys, "", found);
  if (found.length === 0) return null;
  const list = found.map(({ key, near }) => (near === null ? `\`${key}\`` : `\`${key}\` (nearest: \`${near}\`)`));
  return `${path}: ignored unknown keys: ${list.join(", ")}`;
}

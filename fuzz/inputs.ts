// Hostile files: good ones mutated, pieces thrown together, bytes from nowhere, and nesting without end.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "./random.ts";

const project = join(import.meta.dir, "..");

function filesOf(...folders: string[]): Buffer[] {
  return folders.flatMap((folder) =>
    readdirSync(join(project, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(md|ya?ml)$/.test(entry.name))
      .map((entry) => readFileSync(join(entry.parentPath, entry.name))),
  );
}

/** Every fenced block of the documentation is a file somebody may start from. */
function blocksOf(documents: readonly Buffer[]): Buffer[] {
  const fences = /```[a-z]*\n([\s\S]*?)```/g;
  return documents.flatMap((text) => [...text.toString().matchAll(fences)].map((found) => Buffer.from(found[1] ?? "")));
}

const small = [
  "---\nname: A ticket\nblocked_by: []\n---\nDo it.\n",
  "---\n{name: X, blocked_by: [], id: T1, project: p, worktree: w, flow: f}\n---\nDo it.\n",
  "version: 1\nscheduler: { running_hours: { start: 22:00, end: 06:00 }, stall_after: 3h }\n",
  'version: 1\nagent: { default_target: a, targets: { a: { cmd: [x, "{prompt}"], model: m } } }\n',
  "- { name: a, action: agent }\n- { name: b, action: { exec: ['true'] }, fail_action: { return_to: a } }\n",
  '[{"id":"E-1","name":"One","body":"w","blocked_by":["E-2"],"flow":null}]',
  '{"version":1,"name":"f","stages":[]}',
  "30d",
  "23:59",
];

/** What mutation starts from: long files are slow to read, so they are taken less often. */
export type Corpus = { short: readonly Buffer[]; long: readonly Buffer[] };

const shortBytes = 400;

export function readCorpus(): Corpus {
  const all = [...filesOf("templates"), ...blocksOf(filesOf("docs")), ...small.map((text) => Buffer.from(text))];
  return {
    short: all.filter(({ length }) => length <= shortBytes),
    long: all.filter(({ length }) => length > shortBytes),
  };
}

const pieces = [
  ..."name:|blocked_by:|id:|project:|worktree:|flow:|title:|target:|model:|stages:|version: 1|action:|agent|exec:".split(
    "|",
  ),
  ..."builtin: merge|result_check:|panel:|reviewers:|return_to:|attempts: 11|scheduler:|sources:|ids:|control:".split(
    "|",
  ),
  ..." [|]|{|}|, |: |- |? |&a |*a |!!str |!!int |\"|'|\n|\n  |\n- |---\n|\n---\n|...|#|~|true|007|0x10|1e5|.inf".split(
    "|",
  ),
  ..."\r\n|\u0085|\u2028|\ufeff|\t|é|\0|<<: *a|%YAML 1.1\n|>|\\|\\u0000|\ud800|🦥|null|-1|9999999999999999999".split(
    "|",
  ),
  "|",
  "||",
  "[".repeat(300),
  "a:\n ".repeat(150),
  "- ".repeat(300),
  "x".repeat(5_000),
];

const opened = Buffer.from("---\n");

function bytes(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.below(256)));
}

function soup(random: Random): Buffer {
  const parts = Array.from({ length: random.below(25) }, () => random.pick(pieces)).join("");
  const text = random.oneIn(2) ? parts : `---\n${parts}\n---\nbody`;
  return Buffer.from(random.oneIn(4) ? `version: 1\n${text}` : text);
}

/** Cuts a piece out and puts another in. */
function splice(random: Random, input: Buffer, put: Buffer): Buffer {
  const start = random.below(input.length + 1);
  const end = Math.min(input.length, start + (random.oneIn(2) ? 0 : random.below(40)));
  return Buffer.concat([input.subarray(0, start), put, input.subarray(end)]);
}

function anyPiece(random: Random, corpus: Corpus): Buffer {
  if (random.oneIn(12)) return bytes(random, 1 + random.below(4));
  if (random.oneIn(6)) {
    const other = random.pick(corpus.long);
    const start = random.below(other.length);
    return other.subarray(start, start + random.below(80));
  }
  return Buffer.from(random.pick(pieces));
}

function mutate(random: Random, corpus: Corpus): Buffer {
  let input = random.pick(random.oneIn(12) ? corpus.long : corpus.short);
  for (let left = 1 + random.below(5); left > 0; left -= 1) input = splice(random, input, anyPiece(random, corpus));
  return input;
}

/** Of pieces repeated: what takes a reader more than its share of time does so well below this. */
const longest = 4_000;

/** The next input. */
export function nextInput(random: Random, corpus: Corpus): Buffer {
  const kind = random.below(20);
  if (kind === 0) return bytes(random, random.below(300));
  if (kind === 1) return Buffer.concat([opened, bytes(random, random.below(100)), Buffer.from("\n---\nx")]);
  if (kind < 6) return soup(random);
  if (kind === 6 && random.oneIn(20))
    return Buffer.from(random.pick(pieces).repeat(random.below(2_000))).subarray(0, longest);
  return mutate(random, corpus);
}

// What must hold at every moment of a soak, and what must hold when everything has come to rest.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Scene } from "../support/scene.ts";

type Row = Record<string, string | number | null>;

const never: [string, string][] = [
  [
    "a lease whose ticket is not claimed",
    "select l.ticket_id from leases l join tickets t on t.id = l.ticket_id where t.state <> 'claimed'",
  ],
  [
    "a settled run that holds a lease",
    "select r.id from leases l join runs r on r.id = l.run_id where r.exited_at_ms is not null",
  ],
  [
    "a ticket with two unsettled runs",
    "select ticket_id from runs where exited_at_ms is null group by ticket_id having count(*) > 1",
  ],
  [
    "a run whose state and end disagree",
    "select id from runs where (state in ('claimed','driving','running')) <> (exited_at_ms is null)",
  ],
  [
    "run attempts with gaps or repeats",
    "select ticket_id from runs group by ticket_id having max(attempt) <> count(*) or count(distinct attempt) <> count(*)",
  ],
  [
    "a queued trigger pinned to a merged ticket",
    "select t.id from triggers t join tickets k on k.id = t.ticket_id where t.state = 'queued' and k.state = 'merged'",
  ],
];

/** Throws at the first invariant of the store that does not hold. */
export function checkStore(scene: Scene, slots: number): void {
  for (const [what, sql] of never) {
    const found = scene.query<Row>(sql);
    if (found.length > 0) throw new Error(`${what}: ${JSON.stringify(found)}`);
  }
  const live = scene.query<{ n: number }>("select count(*) as n from runs where exited_at_ms is null")[0]!.n;
  if (live > slots) throw new Error(`${live} live runs on ${slots} slots`);
}

/** Every captured record once, in order. */
function checkOutput(scene: Scene): void {
  for (const { id } of scene.query<{ id: string }>("select id from runs")) {
    const sequences = scene.records(id).map((record) => record["sequence"]);
    const wanted = sequences.map((_, index) => index + 1);
    if (JSON.stringify(sequences) !== JSON.stringify(wanted)) {
      throw new Error(`run ${id}: sequences ${JSON.stringify(sequences)}`);
    }
  }
}

/** No execution was started twice, but for those whose supervisor was killed. */
function checkStarts(scene: Scene, excused: ReadonlySet<string>): void {
  const path = join(scene.outside, "starts");
  const starts = existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : [];
  const seen = new Set<string>();
  for (const start of starts) {
    if (seen.has(start) && !excused.has(start.split(" ")[0]!)) throw new Error(`started twice: ${start}`);
    seen.add(start);
  }
}

/** What merged has landed once; what did not merge has not. The checkout is whole. */
function checkGit(scene: Scene): void {
  if (existsSync(join(scene.root, ".git/MERGE_HEAD"))) throw new Error("a merge was left in progress");
  const status = scene.git("status", "--porcelain", "--untracked-files=no");
  if (status !== "") throw new Error(`the checkout is not clean: ${status}`);
  const landed = new Map<string, number>();
  for (const subject of scene.git("log", "--format=%s", "main").split("\n")) {
    landed.set(subject, (landed.get(subject) ?? 0) + 1);
  }
  type Run = { id: string; state: string; branch: string | null };
  for (const { id, state, branch } of scene.query<Run>("select id, state, branch from runs")) {
    // An agent that a stage returned to has committed once more.
    const commits = landed.get(`work of ${id}`) ?? 0;
    if (state === "merged" && commits === 0) throw new Error(`run ${id} is merged, and its commits did not land`);
    // A cancel that comes while git merges is kept, even though the merge has landed (engine.md 21, 19).
    if (state !== "merged" && state !== "cancelled" && commits > 0) {
      throw new Error(`run ${id} is ${state}, but its commits landed`);
    }
    const merges = landed.get(`Merge run branch '${branch}'`) ?? 0;
    if (merges > 1) throw new Error(`the branch of run ${id} was merged ${merges} times`);
  }
}

/** Everything that must be true once no run is going. */
export function checkRest(scene: Scene, excused: ReadonlySet<string>): void {
  const leases = scene.query<Row>("select * from leases");
  if (leases.length > 0) throw new Error(`leases are left: ${JSON.stringify(leases)}`);
  const checkpoints = scene.query<Row>("select run_id from run_evidence where kind = 'stage_process'");
  if (checkpoints.length > 0) throw new Error(`process checkpoints are left: ${JSON.stringify(checkpoints)}`);
  checkOutput(scene);
  checkStarts(scene, excused);
  checkGit(scene);
}

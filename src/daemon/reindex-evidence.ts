// What git proves about tickets: of their branches that carry work, whether all of it has landed (files.md 13.4).

import { readBaseline, readTarget } from "../git/inspect.ts";
import { type Branch, landedOtherwise, listBranches, listMergedBranches } from "../git/landed.ts";
import { openSlices } from "../system/slices.ts";
import type { Daemon } from "./context.ts";
import { cannotReindex } from "./reindex-read.ts";

export type Evidence = "merged" | "needs_review";

/** A ticket that git may have something to say about. */
type Candidate = { id: string; worktree: string; heldReason: string | null };

type Owned = Branch & { ticket: string };

const sliceMs = 10;
const asksAtOnce = 2;

/** Run branches are `sloop/<id>-a<attempt>-<short run id>`; the last two parts hold no dash, so the id is plain. */
const runBranchPattern = /^sloop\/(.+)-a[0-9]+-[0-9a-f]+$/;

/** Run branches by the ticket id in their names. */
function byTicket(branches: readonly Branch[]): Map<string, Branch[]> {
  const found = new Map<string, Branch[]>();
  for (const branch of branches) {
    const id = runBranchPattern.exec(branch.name)?.[1];
    if (id !== undefined) found.set(id, [...(found.get(id) ?? []), branch]);
  }
  return found;
}

/** Which ticket each branch belongs to: the first whose label or run branch it is. A held one's are nobody's. */
function assign(branches: readonly Branch[], candidates: readonly Candidate[]): Owned[] {
  const byLabel = new Map(branches.map((branch) => [branch.name, branch]));
  const byId = byTicket(branches);
  const taken = new Set<Branch>();
  const owned: Owned[] = [];
  for (const { id, worktree, heldReason } of candidates) {
    const label = byLabel.get(worktree);
    const runs = byId.get(id);
    if (label === undefined && runs === undefined) continue;
    const own = [...(label === undefined ? [] : [label]), ...(runs ?? [])].filter((branch) => !taken.has(branch));
    for (const branch of own) taken.add(branch);
    if (heldReason === null) owned.push(...own.map((branch) => ({ ...branch, ticket: id })));
  }
  return owned;
}

/** Leaves out what was only created: a bare branch is not work. */
async function withWork(root: string, owned: readonly Owned[]): Promise<Owned[]> {
  const breathe = openSlices(sliceMs);
  const worked: Owned[] = [];
  for (const branch of owned) {
    const baseline = await readBaseline(root, branch.name);
    if (baseline !== null && baseline !== branch.tip) worked.push(branch);
    await breathe();
  }
  return worked;
}

async function judge(root: string, target: string, branches: readonly Owned[]): Promise<Map<string, Evidence>> {
  const merged = await listMergedBranches(root, target);
  const found = new Map<string, Evidence>();
  const left = branches[Symbol.iterator]();
  const worker = async () => {
    for (const { name, tip, ticket } of left) {
      // One branch with unlanded work outweighs any number that landed.
      if (found.get(ticket) === "needs_review") continue;
      const landed = merged.has(name) || (await landedOtherwise(root, target, tip));
      if (!landed) found.set(ticket, "needs_review");
      else if (!found.has(ticket)) found.set(ticket, "merged");
    }
  };
  await Promise.all(Array.from({ length: asksAtOnce }, worker));
  return found;
}

/** By ticket id, what its branches prove (`candidates` in path order); a ticket that git knows nothing about is absent. Rejects with SloopError `internal`. */
export async function gatherEvidence(
  daemon: Daemon,
  candidates: readonly Candidate[],
): Promise<ReadonlyMap<string, Evidence>> {
  const { root } = daemon.paths;
  try {
    const target = readTarget(root, daemon.config.mergeTarget);
    const owned = assign(await listBranches(root), candidates);
    // The target branch itself, were it a ticket's label, would prove nothing.
    const own = "branch" in target ? owned.filter(({ name }) => name !== target.branch) : owned;
    const worked = await withWork(root, own);
    if (worked.length === 0) return new Map();
    if ("problem" in target) {
      throw new Error(`no target branch (${target.problem}); check out a branch or set \`merge.target\``);
    }
    return await judge(root, target.tip, worked);
  } catch (error) {
    throw cannotReindex(error instanceof Error ? error.message : String(error));
  }
}

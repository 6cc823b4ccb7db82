// A branch that was moved by reference while somebody checked it out: the checkout is brought along (engine.md 11.8).

import { checkoutReady, findMergeCheckout, indexClean, indexLocked, indexTree } from "./checkout.ts";
import { readBranchTip } from "./inspect.ts";
import { listCheckouts } from "./layout.ts";
import { overwriteReason } from "./merge.ts";
import { overwrittenPaths } from "./overwrite.ts";
import { git, lastLine, longestGitMs } from "./run.ts";

export type MovedBranch = { root: string; branch: string; from: string; to: string };

const stepMs = 20;
const longestLookMs = 1000;

/** A checkout that is just being switched holds its index; where HEAD goes is seen only after that. */
async function settledCheckout(root: string, branch: string): Promise<string | null> {
  const began = performance.now();
  while (performance.now() - began < longestLookMs) {
    if (!listCheckouts(root).some(({ path }) => indexLocked(path))) break;
    await Bun.sleep(stepMs);
  }
  return findMergeCheckout(root, branch);
}

async function treeOf(cwd: string, commit: string): Promise<string | null> {
  const { code, stdout } = await git(["rev-parse", "--verify", "--quiet", `${commit}^{tree}`], { cwd });
  return code === 0 ? stdout.trim() : null;
}

async function bringAlong(checkout: string, { from, to }: MovedBranch): Promise<string | null> {
  const paths = await overwrittenPaths({ checkout, from, to });
  if (paths === null) return "git cannot compare it";
  if (paths.length > 0) return overwriteReason(checkout, paths);
  const options = { cwd: checkout, write: true, timeoutMs: longestGitMs };
  await git(["update-index", "-q", "--refresh"], options);
  const done = await git(["read-tree", "-m", "-u", from, to], options);
  return done.code === 0 ? null : lastLine(done.stderr, "git read-tree failed");
}

export type Followed = { checkout: string; problem: string };

/**
 * After a branch was moved from one commit to another without a checkout: one that took the branch up just before still
 * holds the old files and is brought along. Null when all is well; else which checkout was left as it is, and why.
 */
export async function followBranch(moved: MovedBranch): Promise<Followed | null> {
  const { root, branch, from, to } = moved;
  const checkout = await settledCheckout(root, branch);
  if (checkout === null || readBranchTip(root, branch) !== to || (await indexClean(checkout)) === true) return null;
  const index = await indexTree(checkout);
  if (index === null || index !== (await treeOf(root, from))) {
    return { checkout, problem: (await checkoutReady(checkout)) ?? "its index is neither the old nor the new one" };
  }
  const problem = await bringAlong(checkout, moved);
  return problem === null ? null : { checkout, problem };
}

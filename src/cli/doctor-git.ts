// What `sloop doctor` asks git: the program, the identity, and what in a repository does not reach a worktree.

import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { readIfPresent } from "../system/files.ts";
import { type Env, type Git, gitIn, unlessSilent } from "./doctor-ask.ts";
import { oddAt, oddFinding } from "./doctor-files.ts";
import { checkMergeHooks } from "./doctor-hooks.ts";
import { pasteWord } from "./doctor-text.ts";
import type { Finding } from "./finding.ts";

async function checkVersion(git: Git): Promise<Finding[]> {
  const version = /([0-9]+)\.([0-9]+)/.exec((await git("--version")).stdout);
  const [major, minor] = [Number(version?.[1]), Number(version?.[2])];
  if (version === null || major > 2 || (major === 2 && minor >= 38)) return [];
  return [
    {
      check: "git version",
      severity: "warning",
      message: `git is ${version[0]}; sloop wants 2.38 or newer`,
      why: "an older git merges only into a branch that is checked out, so some work ends in needs_review",
      fix: "install a newer git: https://git-scm.com/downloads",
    },
  ];
}

async function checkIdentity(git: Git): Promise<Finding[]> {
  if ((await git("var", "GIT_AUTHOR_IDENT")).exitCode === 0 && (await git("var", "GIT_COMMITTER_IDENT")).exitCode === 0)
    return [];
  return [
    {
      check: "git identity",
      severity: "error",
      message: "git does not know who commits here",
      why: "an agent's first commit, and every merge, would fail",
      fix: 'git config --global user.name "Your Name" && git config --global user.email you@example.com',
    },
  ];
}

async function checkProgram(env: Env, cwd: string): Promise<Finding[]> {
  const git = await gitIn(cwd, env);
  if (git !== null) return [...(await checkVersion(git)), ...(await checkIdentity(git))];
  return [
    {
      check: "git version",
      severity: "error",
      message: "git is not on your PATH, or does not start",
      why: "every run works on a branch and a worktree",
      fix: "install git: https://git-scm.com/downloads",
    },
  ];
}

/** The program and the identity, which need no repository. */
export async function checkGit(env: Env, cwd: string): Promise<Finding[]> {
  return await unlessSilent(cwd, async () => checkProgram(env, cwd));
}

async function checkHead(git: Git, mergeTarget: string | null): Promise<Finding[]> {
  if ((await git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")).exitCode !== 0) {
    return [
      {
        check: "first commit",
        severity: "error",
        message: "the repository has no commit yet",
        why: "a run begins at the newest commit of the branch it merges into",
        fix: 'git add -A && git commit -m "First commit"',
      },
    ];
  }
  if (mergeTarget !== null || (await git("symbolic-ref", "--quiet", "HEAD")).exitCode === 0) return [];
  return [
    {
      check: "detached HEAD",
      severity: "error",
      message: "no branch is checked out, and `merge.target` names none",
      why: "a run has no branch to start from and to merge into; tickets wait",
      fix: "git switch main (or set `merge.target` in .agents/sloop/config.yaml)",
    },
  ];
}

async function checkBranchName(git: Git): Promise<Finding[]> {
  if ((await git("show-ref", "--verify", "--quiet", "refs/heads/sloop")).exitCode !== 0) return [];
  return [
    {
      check: "branch named sloop",
      severity: "error",
      message: "there is a branch `sloop`",
      why: "git then allows no branch `sloop/...`, and every run needs one",
      fix: "git branch -m sloop sloop-old",
    },
  ];
}

/** A relative hooks path is looked for in each worktree; hooks that are generated are in none. */
async function checkHooks(git: Git): Promise<Finding[]> {
  const path = (await git("config", "core.hooksPath")).stdout;
  if (path === "" || isAbsolute(path) || path.startsWith("~") || path.startsWith("%")) return [];
  if ((await git("--literal-pathspecs", "ls-tree", "-r", "--name-only", "HEAD", "--", path)).stdout !== "") return [];
  return [
    {
      check: "hooks",
      severity: "warning",
      message: `core.hooksPath is \`${path}\`, which is not committed`,
      why: "a worktree does not have it, so an agent's commits pass no hook",
      fix: `git config core.hooksPath "$(git rev-parse --show-toplevel)"/${pasteWord(path)}`,
    },
  ];
}

function checkSubmodules(root: string): Finding[] {
  if (!existsSync(join(root, ".gitmodules"))) return [];
  return [
    {
      check: "submodules",
      severity: "warning",
      message: "the repository has submodules",
      why: "in a fresh worktree their folders are empty, so builds and tests may fail there",
      fix: "let a first stage run `git submodule update --init --recursive`, or the agent's command do it",
    },
  ];
}

async function checkLfs(git: Git, root: string): Promise<Finding[]> {
  const path = join(root, ".gitattributes");
  const odd = oddAt(path);
  if (odd !== null) {
    const why = "git reads it for every checkout and every commit, and may wait there for ever";
    return [oddFinding({ check: "attributes", severity: "error", why }, path, odd)];
  }
  if (!/\bfilter=lfs\b/.test(new TextDecoder().decode(readIfPresent(path) ?? new Uint8Array()))) return [];
  if ((await git("lfs", "version")).exitCode === 0 && (await git("config", "filter.lfs.process")).stdout !== "")
    return [];
  return [
    {
      check: "LFS",
      severity: "warning",
      message: "files are kept with Git LFS, which is not set up here",
      why: "a worktree would hold pointers where those files belong",
      fix: "git lfs install (after installing git-lfs)",
    },
  ];
}

async function checkShallow(git: Git): Promise<Finding[]> {
  if ((await git("rev-parse", "--is-shallow-repository")).stdout !== "true") return [];
  return [
    {
      check: "shallow clone",
      severity: "warning",
      message: "this clone holds only the newest part of the history",
      why: "a merge may not find where two branches parted, and fail",
      fix: "git fetch --unshallow",
    },
  ];
}

/** What in the repository at `root` would stop or spoil a run. Nothing when git is missing: that is said elsewhere. */
export async function checkRepository(env: Env, root: string, mergeTarget: string | null): Promise<Finding[]> {
  if (!existsSync(join(root, ".git"))) {
    return [
      {
        check: "top level",
        severity: "error",
        message: `${root} is not the top level of a Git work tree`,
        why: "the daemon does not run without a `.git` beside `.agents`",
        fix: "git init (or move .agents to the top level of the repository around it)",
      },
    ];
  }
  const odd = oddAt(join(root, ".git"), "file or directory");
  if (odd !== null) {
    const why = "the daemon does not run without a repository";
    return [oddFinding({ check: "top level", severity: "error", why }, join(root, ".git"), odd)];
  }
  return await unlessSilent(root, async () => {
    const git = await gitIn(root, env);
    if (git === null) return [];
    return [
      ...(await checkHead(git, mergeTarget)),
      ...(await checkBranchName(git)),
      ...(await checkHooks(git)),
      ...(await checkMergeHooks(git, root)),
      ...checkSubmodules(root),
      ...(await checkLfs(git, root)),
      ...(await checkShallow(git)),
    ];
  });
}

// What `sloop doctor` asks git: the program, the identity, and what in a repository does not reach a worktree.

import { existsSync, readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { runCommand } from "../system/detached.ts";
import type { Finding } from "./finding.ts";
import { quoteWord } from "./quote.ts";
import type { Session } from "./session.ts";

type Env = Session["env"];
type Git = (...args: string[]) => { exitCode: number; stdout: string };

/** Asks git in `cwd`; takes no lock there. Null when git cannot be started. */
function gitIn(cwd: string, env: Env): Git | null {
  const kept = Object.entries(env).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, value]],
  );
  const environment = { ...Object.fromEntries(kept), GIT_OPTIONAL_LOCKS: "0", LC_ALL: "C" };
  const git: Git = (...args) => {
    const done = runCommand(["git", ...args], { cwd, env: environment });
    return { exitCode: done.exitCode, stdout: done.stdout.trim() };
  };
  try {
    return git("--version").exitCode === 0 ? git : null;
  } catch {
    return null;
  }
}

function checkVersion(git: Git): Finding[] {
  const version = /([0-9]+)\.([0-9]+)/.exec(git("--version").stdout);
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

function checkIdentity(git: Git): Finding[] {
  if (git("var", "GIT_AUTHOR_IDENT").exitCode === 0 && git("var", "GIT_COMMITTER_IDENT").exitCode === 0) return [];
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

/** The program and the identity, which need no repository. */
export function checkGit(env: Env, cwd: string): Finding[] {
  const git = gitIn(cwd, env);
  if (git !== null) return [...checkVersion(git), ...checkIdentity(git)];
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

function checkHead(git: Git, mergeTarget: string | null): Finding[] {
  if (git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").exitCode !== 0) {
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
  if (mergeTarget !== null || git("symbolic-ref", "--quiet", "HEAD").exitCode === 0) return [];
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

function checkBranchName(git: Git): Finding[] {
  if (git("show-ref", "--verify", "--quiet", "refs/heads/sloop").exitCode !== 0) return [];
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
function checkHooks(git: Git): Finding[] {
  const path = git("config", "core.hooksPath").stdout;
  if (path === "" || isAbsolute(path) || path.startsWith("~") || path.startsWith("%")) return [];
  if (git("ls-tree", "-r", "--name-only", "HEAD", "--", path).stdout !== "") return [];
  return [
    {
      check: "hooks",
      severity: "warning",
      message: `core.hooksPath is \`${path}\`, which is not committed`,
      why: "a worktree does not have it, so an agent's commits pass no hook",
      fix: `git config core.hooksPath "$(git rev-parse --show-toplevel)"/${quoteWord(path)}`,
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

function usesLfs(root: string): boolean {
  try {
    return /\bfilter=lfs\b/.test(readFileSync(join(root, ".gitattributes"), "utf8"));
  } catch {
    return false;
  }
}

function checkLfs(git: Git, root: string): Finding[] {
  if (!usesLfs(root)) return [];
  if (git("lfs", "version").exitCode === 0 && git("config", "filter.lfs.process").stdout !== "") return [];
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

function checkShallow(git: Git): Finding[] {
  if (git("rev-parse", "--is-shallow-repository").stdout !== "true") return [];
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
export function checkRepository(env: Env, root: string, mergeTarget: string | null): Finding[] {
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
  const git = gitIn(root, env);
  if (git === null) return [];
  return [
    ...checkHead(git, mergeTarget),
    ...checkBranchName(git),
    ...checkHooks(git),
    ...checkSubmodules(root),
    ...checkLfs(git, root),
    ...checkShallow(git),
  ];
}

// How `sloop doctor` asks git: no locks, no waiting for ever, and one finding when it does not answer.

import { join } from "node:path";
import { answerMs, askCommand } from "../system/detached.ts";
import { oddAt } from "./doctor-files.ts";
import type { Finding } from "./finding.ts";
import type { Session } from "./session.ts";

export type Env = Session["env"];
/** Rejects with GitSilentError when git does not end within `answerMs`. */
export type Git = (...args: string[]) => Promise<{ exitCode: number; stdout: string }>;

/** A git was ended because it did not answer. */
class GitSilentError extends Error {}

/** Asks git in `cwd`; takes no lock there. Null when git cannot be started. Rejects with GitSilentError. */
export async function gitIn(cwd: string, env: Env): Promise<Git | null> {
  const kept = Object.entries(env).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, value]],
  );
  const environment = { ...Object.fromEntries(kept), GIT_OPTIONAL_LOCKS: "0", LC_ALL: "C" };
  const git: Git = async (...args) => {
    const done = await askCommand(["git", ...args], { cwd, env: environment });
    if (!done.answered) throw new GitSilentError(`\`git ${args.join(" ")}\``);
    return { exitCode: done.exitCode, stdout: done.stdout.trim() };
  };
  try {
    return (await git("--version")).exitCode === 0 ? git : null;
  } catch (error) {
    if (error instanceof GitSilentError) throw error;
    return null;
  }
}

/** Files git reads whatever it is asked. */
const alwaysRead = [".git", ".git/HEAD", ".git/config", ".git/packed-refs", ".git/index"] as const;

/** What stands where git reads, and is nothing to be read. */
function oddOfGit(root: string): string[] {
  return alwaysRead.flatMap((name) => {
    const path = join(root, name);
    const odd = oddAt(path, name === ".git" ? "file or directory" : "file");
    return odd === null || odd.tooLarge ? [] : [`${path} ${odd.what}`];
  });
}

/** What `check` finds in `root`; a git that falls silent ends it and is what was found. */
export async function unlessSilent(root: string, check: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof GitSilentError)) throw error;
    const odd = oddOfGit(root);
    return [
      {
        check: "git answer",
        severity: "error",
        message: [`${error.message} did not answer within ${answerMs / 1000} s in ${root}`, ...odd].join("; "),
        why: "every run asks git, and would wait there",
        fix:
          odd.length > 0
            ? "put back what belongs there, or clone the repository anew"
            : "git status (and see what it waits for)",
      },
    ];
  }
}

// `sloop doctor`: looks for what would stop or spoil a run here, starts nothing, changes nothing (cli.md 3.17).

import { join } from "node:path";
import { SloopError } from "../core/errors.ts";
import { checkAgents, checkConfig } from "./doctor-config.ts";
import { checkDaemon } from "./doctor-daemon.ts";
import { checkConfigFile, checkOddFiles, oddAt } from "./doctor-files.ts";
import { checkGit, checkRepository } from "./doctor-git.ts";
import { checkPlaces } from "./doctor-places.ts";
import { oneLine } from "./doctor-text.ts";
import type { Finding } from "./finding.ts";
import { currentDirectory, openRepository, type Repository } from "./repository.ts";
import { sayLocal } from "./say.ts";
import type { Session } from "./session.ts";
import type { Style } from "./style.ts";

/** The repository around the current directory; null where there is none. A broken one is a finding. */
async function repositoryHere(session: Session, findings: Finding[]): Promise<Repository | null> {
  try {
    const repository = await openRepository(currentDirectory(), session.env);
    await repository.check();
    return repository;
  } catch (error) {
    if (!(error instanceof SloopError)) throw error;
    if (/^no `/.test(error.message)) return null;
    findings.push({
      check: "repository",
      severity: "error",
      message: error.message,
      why: "no command works here before this is mended",
      fix: error.hint ?? "sloop help paths",
    });
    return null;
  }
}

function lines(finding: Finding, style: Style): string[] {
  const word = style.paint(finding.severity === "error" ? "red" : "yellow", finding.severity);
  return ["", `${word}  ${finding.check}: ${finding.message}`, `  why: ${finding.why}`, `  fix: ${finding.fix}`];
}

function text(findings: readonly Finding[], root: string | null, style: Style): string {
  const where = root === null ? "no repository here: checked the machine alone" : `checked ${oneLine(root)}`;
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  const result =
    findings.length === 0
      ? "nothing found that would stop or spoil a run"
      : `${count(errors, "error")}, ${count(findings.length - errors, "warning")}`;
  return [`${where}; ${result}`, ...findings.flatMap((finding) => lines(finding, style))].join("\n");
}

/** What is found in a repository; a git that fell silent before is not asked again. */
async function checkHere(repository: Repository, session: Session, findings: Finding[]): Promise<void> {
  const { root, paths } = repository;
  const { env } = session;
  const silent = findings.some(({ check }) => check === "git answer");
  const config = checkConfig(root, env, findings)?.config ?? null;
  if (config !== null) findings.push(...checkAgents(config, root, env));
  findings.push(...checkOddFiles(root, config, findings));
  if (!silent) findings.push(...(await checkRepository(env, root, config?.mergeTarget ?? null)));
  const worktreeDir = join(root, config?.worktreeDir ?? ".worktrees");
  findings.push(...checkPlaces(paths, worktreeDir), ...(await checkDaemon(repository, session)));
}

/** Gives exit code 1 when something found is an error. */
export async function doctor(session: Session): Promise<number> {
  const found: Finding[] = [];
  const repository = await repositoryHere(session, found);
  const root = repository?.root ?? null;
  const directory = root ?? currentDirectory();
  const odd = oddAt(join(directory, ".git"), "file or directory") !== null;
  found.push(...checkConfigFile(currentDirectory(), root));
  // Whoever commits may be written in the repository: beside a `.git` that is none, that is not known.
  const git = await checkGit(session.env, odd ? "/" : directory);
  found.push(...git.filter(({ check }) => !odd || check !== "git identity"));
  if (repository !== null) await checkHere(repository, session, found);
  const findings = found.map((finding) => ({
    ...finding,
    message: oneLine(finding.message),
    why: oneLine(finding.why),
    fix: oneLine(finding.fix),
  }));
  await sayLocal(session.json, { findings }, text(findings, root, session.style));
  return findings.some(({ severity }) => severity === "error") ? 1 : 0;
}

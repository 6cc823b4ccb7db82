// What `sloop doctor` makes of the configuration: whether it loads, and whether each agent target can be started.

import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { Config } from "../core/config.ts";
import { SloopError } from "../core/errors.ts";
import type { Loaded } from "../parse/load.ts";
import { loadConfiguration } from "./configuration.ts";
import type { Finding } from "./finding.ts";
import type { Session } from "./session.ts";

/** Loads everything as a daemon would; what is wrong with it is added to `findings`, and null is given. */
export function checkConfig(root: string, env: Session["env"], findings: Finding[]): Loaded | null {
  try {
    const loaded = loadConfiguration(root, env);
    for (const message of loaded.warnings) {
      findings.push({
        check: "configuration",
        severity: "warning",
        message,
        why: "what nothing reads has no effect",
        fix: "sloop template config (prints every key)",
      });
    }
    return loaded;
  } catch (error) {
    if (!(error instanceof SloopError)) throw error;
    findings.push({
      check: "configuration",
      severity: "error",
      message: error.message,
      why: "no daemon starts and no ticket can be posted with it",
      fix: error.hint ?? "sloop template config (prints a working one)",
    });
    return null;
  }
}

/** Whether what a target starts is there: by name on PATH, absolutely, or relative to a worktree as it is committed. */
function canStart(program: string, root: string, env: Session["env"]): boolean {
  if (program.includes("{")) return true;
  if (program.includes("/") && !isAbsolute(program)) return existsSync(join(root, program));
  return Bun.which(program, { PATH: env["PATH"] ?? "" }) !== null;
}

/** Each target's program; the default one is an error, others only matter to tickets that name them. */
export function checkAgents(config: Config, root: string, env: Session["env"]): Finding[] {
  if (config.agent === null) {
    return [
      {
        check: "agent",
        severity: "warning",
        message: "no agent target is configured",
        why: "a flow with an `agent` stage waits until there is one",
        fix: "add `agent:` to .agents/sloop/config.yaml; `sloop template config` shows how",
      },
    ];
  }
  const { defaultTarget, targets } = config.agent;
  return Object.values(targets).flatMap(({ name, cmd: [program = ""] }): Finding[] => {
    if (canStart(program, root, env)) return [];
    const isDefault = name === defaultTarget;
    return [
      {
        check: "agent",
        severity: isDefault ? "error" : "warning",
        message: `target \`${name}\` starts \`${program}\`, which is not there or not executable`,
        why: isDefault
          ? "it is the default target: a ticket that names no other cannot run"
          : `a ticket that says \`target: ${name}\` cannot run`,
        fix: `install \`${program}\`, or change \`agent.targets.${name}.cmd\` in .agents/sloop/config.yaml`,
      },
    ];
  });
}

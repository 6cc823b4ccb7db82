// Which agent target a ticket uses, and whether its command can be filled in for that ticket.

import { expandCommand } from "./command.ts";
import type { Config } from "./config.ts";

type Wanted = { target: string | null; model: string | null; effort: string | null };

export type ChosenTarget = { ok: true; target: string | null } | { ok: false; problem: string; missing: string | null };

/**
 * The ticket's own target, else the default one; null when there is neither. `missing` names the value that the target's
 * command wants and nobody gives.
 */
export function chooseTarget(agent: Config["agent"], { target: own, model, effort }: Wanted): ChosenTarget {
  const name = own ?? agent?.defaultTarget ?? null;
  if (name === null) return { ok: true, target: null };
  const target = agent !== null && Object.hasOwn(agent.targets, name) ? agent.targets[name] : undefined;
  if (target === undefined) {
    return { ok: false, problem: `agent target \`${name}\` is not configured`, missing: null };
  }
  const command = expandCommand(target, { model, effort, prompt: "" });
  if (command.ok) return { ok: true, target: name };
  const { missing } = command;
  const problem = `agent target \`${name}\` wants a ${missing}, and the ticket does not specify \`${missing}\``;
  return { ok: false, problem, missing };
}

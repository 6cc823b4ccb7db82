// Which agent target a ticket uses, and whether its command can be filled in for that ticket.

import { expandCommand } from "./command.ts";
import type { Config } from "./config.ts";

type Wanted = { target: string | null; model: string | null; effort: string | null };

export type ChosenTarget = { ok: true; target: string | null } | { ok: false; problem: string };

/**
 * The ticket's own target, else the default one; null when there is neither. A problem names the value that the target's
 * command wants and nobody gives.
 */
export function chooseTarget(agent: Config["agent"], { target: own, model, effort }: Wanted): ChosenTarget {
  const name = own ?? agent?.defaultTarget ?? null;
  if (name === null) return { ok: true, target: null };
  const target = agent !== null && Object.hasOwn(agent.targets, name) ? agent.targets[name] : undefined;
  if (target === undefined) {
    const known = Object.keys(agent?.targets ?? {}).map((target) => `\`${target}\``);
    const configured =
      known.length === 0 ? "config.yaml has no agent.targets" : `agent.targets has ${known.join(", ")}`;
    return { ok: false, problem: `agent target \`${name}\` is not configured; ${configured}` };
  }
  const command = expandCommand(target, { model, effort, prompt: "" });
  if (command.ok) return { ok: true, target: name };
  const { missing } = command;
  const problem = `agent target \`${name}\` wants a ${missing}, and the ticket does not specify \`${missing}\`; add it to the ticket, or a default to the target in config.yaml`;
  return { ok: false, problem };
}

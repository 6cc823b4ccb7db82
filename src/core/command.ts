// Turns a target's command into the argv of one launch.

import { isBlank } from "./blank.ts";
import type { Target } from "./config.ts";

export type CommandValues = { model: string | null; effort: string | null; prompt: string };
export type ExpandedCommand = { ok: true; argv: string[] } | { ok: false; missing: "model" | "effort" };

function given(own: string | null, fallback: string | null): string | null {
  return own === null || isBlank(own) ? fallback : own;
}

/** Fills the placeholders in one pass (files.md 4), so that no value is itself expanded; names the first one without a value. */
export function expandCommand(target: Target, values: CommandValues): ExpandedCommand {
  const model = given(values.model, target.model);
  const effort = given(values.effort, target.effort);
  const wants = (name: string) => target.cmd.some((argument) => argument.includes(`{${name}}`));
  if (model === null && wants("model")) return { ok: false, missing: "model" };
  if (effort === null && wants("effort")) return { ok: false, missing: "effort" };
  const byName: Record<string, string> = {
    "{model}": model ?? "",
    "{effort}": effort ?? "",
    "{prompt}": values.prompt,
  };
  const fill = (argument: string) => argument.replace(/\{(?:model|effort|prompt)\}/g, (name) => byName[name] ?? name);
  return { ok: true, argv: target.cmd.map(fill) };
}

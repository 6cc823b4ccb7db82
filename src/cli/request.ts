// Arguments -> the wire's arguments (cli.md 2, protocol.md 12); what was not given is left out. Pure.

import type { Params } from "../protocol/verbs.ts";
import type { Values } from "./args.ts";

function text<K extends string>(values: Values, option: string, key: K): { [P in K]?: string } {
  const value = values.texts.get(option);
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: string };
}

function number<K extends string>(values: Values, option: string, key: K): { [P in K]?: number } {
  const value = values.numbers.get(option);
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: number };
}

function word<K extends string>(values: Values, key: K): { [P in K]?: string } {
  const value = values.words[0];
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: string };
}

/** `file` is the path as it is to be sent. */
export function postArgs(values: Values, file: string): Params<"post"> {
  const time = values.texts.get("at");
  const kind = values.switches.has("manual") ? "manual" : values.switches.has("hold") ? "hold" : "auto";
  return {
    file,
    ...text(values, "project", "project"),
    ...text(values, "flow", "flow"),
    trigger: time === undefined ? { kind } : { kind: "at", time },
  };
}

function runTrigger(values: Values): Params<"run">["trigger"] {
  const time = values.texts.get("at");
  if (time !== undefined) return { kind: "at", local_time: time };
  const every = values.numbers.get("every");
  if (every !== undefined) return { kind: "every", interval_ms: every };
  return values.switches.has("overnight") ? { kind: "overnight" } : { kind: "now" };
}

export function runArgs(values: Values): Params<"run"> {
  return {
    ...word(values, "ticket"),
    ...text(values, "project", "project"),
    trigger: runTrigger(values),
    only: [...(values.lists.get("only") ?? [])],
  };
}

export function showArgs(values: Values): Params<"show"> {
  return { ...word(values, "ref"), ...number(values, "limit", "limit") };
}

export function listArgs(values: Values): Params<"list"> {
  const states = values.lists.get("state");
  return {
    ...number(values, "limit", "limit"),
    ...text(values, "project", "project"),
    ...(states === undefined ? {} : { states: [...states] }),
  };
}

const bareTail = 64;

/** A bare read asks for the last entries; following reads forward from the first. */
export function logsArgs(values: Values): Params<"logs"> {
  const tail = values.numbers.get("tail") ?? (values.switches.has("follow") ? undefined : bareTail);
  return {
    run: values.words[0] ?? "",
    ...text(values, "stage", "stage"),
    ...(tail === undefined ? {} : { tail }),
  };
}

/** Events before the newest that a reader of the feed is shown first. */
export const usualHistory = 20;

export function eventsArgs(values: Values): Params<"events"> {
  const after = values.numbers.get("after");
  return {
    ...(after === undefined ? { tail: values.numbers.get("tail") ?? usualHistory } : { after }),
    ...number(values, "limit", "limit"),
    ...word(values, "scope"),
  };
}

export function verdictArgs(values: Values): Record<string, unknown> {
  return {
    verdict: values.words[0] ?? "",
    ...text(values, "reason", "reason"),
    ...text(values, "confidence", "confidence"),
  };
}

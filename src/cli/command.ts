// What a row of the command table is made of: words, positionals, options and what their values may be.

export const groups = ["Set up", "Reading", "Steering", "Service", "Worker", "Shell"] as const;
export type Group = (typeof groups)[number];

/**
 * How an option's value is read (cli.md 4). `text` must not look like a flag; `prose` may begin with a dash;
 * `time` is HH:MM; `every` and `timeout` become milliseconds; `states` and `ids` are comma lists and may repeat.
 */
export type ValueForm =
  | { kind: "text" }
  | { kind: "prose" }
  | { kind: "choice"; choices: readonly string[] }
  | { kind: "count"; min: number; max: number }
  | { kind: "time" }
  | { kind: "every" }
  | { kind: "timeout" }
  | { kind: "states" }
  | { kind: "ids" };

export type Option = {
  /** Without its dashes. */
  name: string;
  short?: string;
  /** Absent: a switch. */
  value?: { label: string; form: ValueForm };
  summary: string;
  /** This option means nothing without that other one. */
  needs?: string;
};

export type Positional = {
  label: string;
  required: boolean;
  /** Takes every word that is left. */
  rest?: boolean;
  choices?: readonly string[];
};

export type Command = {
  name: string;
  group: Group;
  /** Who answers: nobody but this process, the repository's daemon, or the run's own socket. */
  kind: "local" | "operator" | "worker";
  /** One line of the full help. */
  summary: string;
  /** What its first word may make of it, each with a line of the full help. */
  actions?: readonly { name: string; summary: string }[];
  positionals: readonly Positional[];
  options: readonly Option[];
  /** Sets of options (and positional labels) of which at most one may be given. */
  exclusive?: readonly (readonly string[])[];
  /** `-5` means `--limit=5`. */
  digits?: boolean;
};

/** The usage line of a command: `sloop show [OPTIONS] [REF]`. */
export function usageLine(command: Command): string {
  const parts = command.positionals.map((positional) => {
    const label = positional.choices?.join("|") ?? positional.label;
    const text = positional.rest === true ? `${label}...` : label;
    return positional.required ? `<${text}>` : `[${text}]`;
  });
  return ["sloop", command.name, "[OPTIONS]", ...parts].join(" ");
}

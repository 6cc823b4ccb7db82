// argv -> what is to be done, by the command table; every usage error is decided here, before anything is looked up.

import type { Command, Option, Positional, ValueForm } from "./command.ts";
import { commands, completionRefs, findCommand, globalOptions, rootOptions } from "./commands.ts";
import type { HelpPage } from "./help.ts";
import { type Refusal, usageError } from "./refusal.ts";
import { commandTip, likelyTip } from "./suggest.ts";
import { tokenize } from "./token.ts";
import { readValue } from "./value.ts";

export type Values = {
  switches: ReadonlySet<string>;
  texts: ReadonlyMap<string, string>;
  /** Counts as they are, durations in milliseconds. */
  numbers: ReadonlyMap<string, number>;
  lists: ReadonlyMap<string, readonly string[]>;
  /** The positionals. */
  words: readonly string[];
};

export type Colour = "auto" | "always" | "never";

export type Parsed =
  | { kind: "help"; page: HelpPage; json: boolean }
  | { kind: "version"; json: boolean }
  | { kind: "command"; command: Command; values: Values; json: boolean; colour: Colour };

type Found = Values & { help: boolean };

type Gathered = {
  command: Command | null;
  options: readonly Option[];
  switches: Set<string>;
  texts: Map<string, string>;
  numbers: Map<string, number>;
  lists: Map<string, string[]>;
};

const harmlessTwice = new Set(["json", "help", "no-color"]);

/** Whether an unparsable command line asked for JSON errors: the exact token anywhere. */
export function wantsJson(argv: readonly string[]): boolean {
  return argv.includes("--json");
}

function flagNames(options: readonly Option[]): string[] {
  return options.map((option) => `--${option.name}`);
}

function addSwitch(into: Gathered, option: Option, value: string | undefined): void {
  if (value !== undefined) throw usageError(`\`--${option.name}\` takes no value, got \`${value}\``, into.command);
  if (into.switches.has(option.name) && !harmlessTwice.has(option.name)) {
    throw usageError(`\`--${option.name}\` was given twice`, into.command);
  }
  into.switches.add(option.name);
}

/** A value that looks like a flag was most likely forgotten; `--name=-x` says that it is meant. */
function missingValue(into: Gathered, option: Option, value: string, inline: boolean): boolean {
  if (inline || !value.startsWith("-") || value === "-") return false;
  if (option.value?.form.kind !== "prose") return true;
  return flagNames(into.options).includes(value) || value === "--";
}

function store(into: Gathered, option: Option, value: string | number | string[]): void {
  if (Array.isArray(value)) {
    into.lists.set(option.name, [...(into.lists.get(option.name) ?? []), ...value]);
    return;
  }
  if (into.texts.has(option.name) || into.numbers.has(option.name)) {
    throw usageError(`\`--${option.name}\` was given twice`, into.command);
  }
  if (typeof value === "number") into.numbers.set(option.name, value);
  else into.texts.set(option.name, value);
}

function valueMissing(into: Gathered, label: string, form: ValueForm, got: string | undefined): Refusal {
  const wanted = form.kind === "choice" ? `: one of ${form.choices.join(", ")}` : "";
  const instead = got === undefined ? "" : `, got \`${got}\``;
  return usageError(`\`${label}\` needs a value${wanted}${instead}`, into.command);
}

function addOption(into: Gathered, option: Option, value: string | undefined, inline: boolean): void {
  if (option.value === undefined) {
    addSwitch(into, option, value);
    return;
  }
  const { form } = option.value;
  const label = `--${option.name} <${option.value.label}>`;
  if (value === undefined || missingValue(into, option, value, inline)) throw valueMissing(into, label, form, value);
  const reading = readValue(value, form);
  if (!reading.ok) {
    throw usageError(`invalid value \`${value}\` for \`${label}\`: it ${reading.problem}`, into.command, reading.tip);
  }
  store(into, option, reading.value);
}

/** Options and positionals of `args`, each checked by itself. */
function gather(args: readonly string[], options: readonly Option[], command: Command | null): Found {
  const into: Gathered = {
    command,
    options,
    switches: new Set(),
    texts: new Map(),
    numbers: new Map(),
    lists: new Map(),
  };
  const tokens = tokenize(args, options);
  const words: string[] = [];
  const help = tokens.some((token) => token.kind === "option" && token.option?.name === "help");
  for (const token of tokens) {
    if (token.kind === "word") words.push(token.text);
    if (token.kind !== "option" || help) continue;
    if (token.option === null) {
      throw usageError(`unexpected argument \`${token.raw}\``, command, likelyTip(token.raw, flagNames(options)));
    }
    addOption(into, token.option, token.value, token.inline);
  }
  return { ...into, words, help };
}

function checkWord(command: Command, positional: Positional | undefined, word: string): void {
  if (positional === undefined) throw usageError(`unexpected argument \`${word}\``, command);
  if (positional.choices === undefined || positional.choices.includes(word)) return;
  const list = positional.choices.join(", ");
  throw usageError(
    `invalid value \`${word}\` for \`<${positional.label}>\`: it is not one of ${list}`,
    command,
    likelyTip(word, positional.choices),
  );
}

function checkWords(command: Command, words: readonly string[]): void {
  const missing = command.positionals.find((positional, index) => positional.required && words[index] === undefined);
  if (missing !== undefined) {
    const choices = missing.choices === undefined ? "" : `: one of ${missing.choices.join(", ")}`;
    throw usageError(`the argument \`<${missing.label}>\` is missing${choices}`, command);
  }
  const rest = command.positionals.find((positional) => positional.rest);
  words.forEach((word, index) => {
    checkWord(command, command.positionals[index] ?? rest, word);
  });
}

function given(command: Command, found: Found, name: string): boolean {
  if (!name.startsWith("--")) return found.words.length > command.positionals.findIndex((word) => word.label === name);
  const bare = name.slice(2);
  return found.switches.has(bare) || found.texts.has(bare) || found.numbers.has(bare) || found.lists.has(bare);
}

function checkTogether(command: Command, found: Found): void {
  for (const set of command.exclusive ?? []) {
    const present = set.filter((name) => given(command, found, name));
    if (present.length > 1) {
      const [first, second] = present.map((name) => `\`${name.startsWith("--") ? name : `<${name}>`}\``);
      throw usageError(`${first} cannot be used with ${second}`, command);
    }
  }
  for (const option of command.options) {
    if (option.needs === undefined || !given(command, found, `--${option.name}`)) continue;
    if (!given(command, found, `--${option.needs}`)) {
      throw usageError(`\`--${option.name}\` needs \`--${option.needs}\``, command);
    }
  }
  const only = found.lists.get("only");
  if (only?.length === 0) throw usageError("`--only <T1,T2>` names no ticket", command);
}

/** Where the command word stands: after the global options and their values. */
function commandIndex(argv: readonly string[]): number {
  let index = 0;
  while (index < argv.length) {
    const word = argv[index] ?? "";
    if (!word.startsWith("-") || word === "-" || word === "--") return index;
    index += word === "--color" ? 2 : 1;
  }
  return argv.length;
}

/** `-5` is `--limit=5` for the commands that say so; what follows `--` is left alone. */
function expandDigits(command: Command, args: readonly string[]): readonly string[] {
  if (command.digits !== true) return args;
  const end = args.indexOf("--");
  return args.map((word, index) =>
    (end < 0 || index < end) && /^-[0-9]+$/.test(word) ? `--limit=${word.slice(1)}` : word,
  );
}

/** In `note`, everything from the first text word on is text, whatever it looks like. */
function splitText(args: readonly string[]): { options: readonly string[]; words: readonly string[] } {
  const start = commandIndex(args);
  const words = args.slice(args[start] === "--" ? start + 1 : start);
  return { options: args.slice(0, start), words };
}

function readCommand(command: Command, args: readonly string[]): Found {
  const options = [...command.options, ...globalOptions];
  if (command.positionals[0]?.rest !== true) return gather(expandDigits(command, args), options, command);
  const split = splitText(args);
  return { ...gather(split.options, options, command), words: split.words };
}

function colourOf(...found: Found[]): Colour {
  if (found.some((part) => part.switches.has("no-color"))) return "never";
  const chosen = found.map((part) => part.texts.get("color")).findLast((text) => text !== undefined);
  return chosen === "always" || chosen === "never" ? chosen : "auto";
}

function checkRoot(root: Found): void {
  if (root.switches.has("all") && !root.help) throw usageError("`--all` needs `--help`", null);
}

function helpCommand(found: Found, json: boolean): Parsed {
  const [name] = found.words;
  if (found.switches.has("all")) return { kind: "help", page: { kind: "full" }, json };
  return { kind: "help", page: name === undefined ? { kind: "compact" } : { kind: "topic", name }, json };
}

/** The row a command line is read by, and what stands behind its word or words. */
function rowOf(command: Command, args: readonly string[]): { command: Command; args: readonly string[] } {
  const asksRefs = command.name === "completions" && args[0] === "refs";
  return asksRefs ? { command: completionRefs, args: args.slice(1) } : { command, args };
}

/** Reads what stands behind the command's word: its help, or the command with its values. */
function parseCommand(first: Command, rest: readonly string[], root: Found, rootJson: boolean): Parsed {
  const { command, args } = rowOf(first, rest);
  const found = readCommand(command, args);
  if (found.help) return { kind: "help", page: { kind: "topic", name: first.name }, json: rootJson || wantsJson(rest) };
  const json = rootJson || found.switches.has("json");
  checkWords(command, found.words);
  checkTogether(command, found);
  if (command.name === "help") return helpCommand(found, json);
  return { kind: "command", command, values: found, json, colour: colourOf(root, found) };
}

/** Reads a whole command line (without the program's own name). Throws the usage error (exit 2) of cli.md 5. */
export function parseCommandLine(argv: readonly string[]): Parsed {
  const at = commandIndex(argv);
  const head = argv.slice(0, at);
  const root = gather(head, rootOptions, null);
  const rootJson = head.includes("--json");
  const name = argv[at];
  if (root.help)
    return { kind: "help", page: { kind: argv.includes("--all") ? "full" : "compact" }, json: wantsJson(argv) };
  if (root.switches.has("version")) return { kind: "version", json: wantsJson(argv) };
  checkRoot(root);
  if (name === undefined) return { kind: "help", page: { kind: "compact" }, json: rootJson };
  const command = findCommand(name);
  if (command === null) {
    const tip = commandTip(
      name,
      commands.map((row) => row.name),
    );
    throw usageError(`unknown command \`${name}\``, null, tip);
  }
  return parseCommand(command, argv.slice(at + 1), root, rootJson);
}

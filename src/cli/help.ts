// Help pages as text: compact, full, one per command, one per topic (cli.md 15). Never coloured, always offline.

import { cac } from "cac";
import { type Command, groups, type Option, usageLine } from "./command.ts";
import { commands, findCommand, globalOptions, rootOptions } from "./commands.ts";
import { manual } from "./manual.ts";
import { usageError } from "./refusal.ts";
import { likelyTip } from "./suggest.ts";
import { ticketStates, topics } from "./topics.ts";

const everyday: readonly (readonly [name: string, summary: string])[] = [
  ["init", "Set up .agents/sloop in this directory"],
  ["template", "Print an annotated starter file"],
  ["daemon", "Start the scheduler, or report the one already up"],
  ["post", "Register a ticket file and queue it"],
  ["show", "Look at anything: dashboard, ticket, run, project, search"],
  ["logs", "Read what a run's processes printed"],
];

/** cac only prints; this is where its pages become text. */
function printed(print: () => void): string {
  const held = console.info;
  let text = "";
  console.info = (line: string) => {
    text = line;
  };
  try {
    print();
  } finally {
    console.info = held;
  }
  return text;
}

function optionSyntax(option: Option): string {
  const value = option.value === undefined ? "" : ` <${option.value.label}>`;
  return `${option.short === undefined ? "    " : `-${option.short}, `}--${option.name}${value}`;
}

/** The lines of an `Options:` block. */
function optionLines(options: readonly Option[]): string {
  const program = cac("sloop");
  let body = "";
  program.help((sections) => {
    body = sections.find((section) => section.title === "Options")?.body ?? "";
    return [];
  });
  const page = program.globalCommand;
  page.options = [];
  for (const option of options) page.option(optionSyntax(option), option.summary);
  // cac takes `--no-x` for the negation of a `--x` that is on by default, and would say so.
  for (const option of page.options) delete option.config.default;
  printed(() => page.outputHelp());
  return trimmed(body);
}

function trimmed(text: string): string {
  return text
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n")
    .trimEnd();
}

function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join("\n");
}

/** Everything that is not in the everyday table, by group. Names are single-spaced: only everyday ones stand out. */
function moreCommands(): string {
  const listed = new Set(everyday.map(([name]) => name));
  return groups
    .flatMap((group) => {
      const names = commands.filter((row) => row.group === group && !listed.has(row.name)).map((row) => row.name);
      return names.length === 0 ? [] : [`  ${group}: ${names.join(", ")}`];
    })
    .join("\n");
}

function compactHelp(): string {
  return `sloop - coding agents, scheduled

Usage: sloop [OPTIONS] [COMMAND]

Everyday commands:
${table(everyday)}

More commands:
${moreCommands()}

Options:
${optionLines(rootOptions.filter((option) => option.name !== "all"))}

\`sloop --help --all\` lists every command; \`sloop help <topic>\` explains one subject.`;
}

/** A command of two words has a line of its own. */
function fullRows({ name, summary, actions = [] }: Command): (readonly [string, string])[] {
  return [[name, summary], ...actions.map((action) => [`${name} ${action.name}`, action.summary] as const)];
}

function fullHelp(): string {
  const sections = groups.map((group) => {
    const rows = commands.filter((row) => row.group === group).flatMap(fullRows);
    return `${group}:\n${table(rows)}`;
  });
  return `sloop - coding agents, scheduled

Usage: sloop [OPTIONS] [COMMAND]

${sections.join("\n\n")}

Ticket states:
${ticketStates}`;
}

function startLine(command: Command): string {
  if (command.name === "stop") return "Never starts a daemon.";
  if (command.name === "doctor") return "Starts no daemon; one that runs is asked for its version.";
  if (command.name === "demo") return "Starts a daemon of its own and stops it again.";
  switch (command.kind) {
    case "operator":
      return "Starts this repository's daemon if none answers.";
    case "worker":
      return "Talks to the run's own socket; never starts a daemon.";
    case "local":
      return "Talks to no daemon.";
  }
}

/** The long help of one command. */
export function commandHelp(command: Command): string {
  const page = manual[command.name];
  const exits = (page?.exits ?? []).map(([code, meaning]) => `  ${code}  ${meaning}`);
  return `sloop ${command.name} - ${command.summary}

Usage: ${usageLine(command)}

${page?.about ?? ""}

Options:
${optionLines([...command.options, ...globalOptions])}

${startLine(command)}

EXIT CODES
${exits.join("\n")}

Examples:
${(page?.examples ?? []).map((example) => `  ${example}`).join("\n")}`;
}

function topicList(): string {
  const rows = Object.entries(topics).map(([name, topic]) => [name, topic.summary] as const);
  return `Topics:\n${table(rows)}\n\n\`sloop help <topic>\` or \`sloop help <command>\` explains one.`;
}

function topicHelp(name: string, realPaths: string | null): string {
  if (name === "topics") return topicList();
  const command = findCommand(name);
  if (command !== null) return commandHelp(command);
  const topic = Object.hasOwn(topics, name) ? topics[name] : undefined;
  if (topic === undefined) {
    const names = [...Object.keys(topics), "topics", ...commands.map((row) => row.name)];
    const known = `topics are ${Object.keys(topics).join(", ")}`;
    throw usageError(`unknown help topic \`${name}\`: ${known}`, findCommand("help"), likelyTip(name, names));
  }
  const more = name === "paths" ? realPaths : null;
  return more === null ? topic.text : `${topic.text}\n\n${more}`;
}

export type HelpPage = { kind: "compact" } | { kind: "full" } | { kind: "topic"; name: string };

/** A whole page, without a newline at its end; `realPaths` completes the topic `paths`. Throws the usage error for an unknown topic. */
export function renderHelp(page: HelpPage, realPaths: string | null): string {
  switch (page.kind) {
    case "compact":
      return trimmed(compactHelp());
    case "full":
      return trimmed(fullHelp());
    case "topic":
      return trimmed(topicHelp(page.name, realPaths));
  }
}

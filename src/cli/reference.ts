// docs/reference/cli.md, generated from the command table: `bun build.ts docs` writes it, a test compares it.

import { groups } from "./command.ts";
import { commands } from "./commands.ts";
import { commandHelp } from "./help.ts";

/** The whole page as Markdown, ending in one newline. */
export function renderReference(): string {
  const sections = groups.flatMap((group) => [
    `## ${group}`,
    ...commands
      .filter((command) => command.group === group)
      .flatMap((command) => [`### sloop ${command.name}`, `\`\`\`text\n${commandHelp(command)}\n\`\`\``]),
  ]);
  return [
    "# Command reference",
    "Generated from the command table by `bun build.ts docs`; the same text is what `sloop help <command>` prints.",
    ...sections,
    "",
  ]
    .join("\n\n")
    .replace(/\n+$/, "\n");
}

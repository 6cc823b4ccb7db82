// Long help of the commands that look at things.

import type { ManualPage } from "./manual.ts";

const readExits = [
  ["0", "shown"],
  ["1", "no such run, no daemon, broken configuration"],
  ["2", "bad arguments"],
] as const;

export const manualReading: Readonly<Record<string, ManualPage>> = {
  show: {
    about: `Without an argument: the dashboard. With one, whatever it names. A reference is
resolved in this order, and an exact match always wins over a pattern:

  1. an exact ticket id
  2. an exact run id (32 hexadecimal digits)
  3. an exact ticket name
  4. a run alias: <ticket>-r<attempt>
  5. a run-id prefix: 4 to 32 hexadecimal digits, any case
  6. an exact project id
  7. a pattern, matched case-insensitively against ticket ids and names:
     plain text is a substring; text that holds regex metacharacters
     . ^ $ * + ? ( ) [ ] { } | \\ is a regular expression

A pattern always gives a list, also for one ticket or none.

With --follow, events are printed as they happen (20 of history first). Following
a ticket or a run ends with it, and the exit code says how; the
dashboard, a project or a pattern is followed until interrupted. Inside a run,
\`sloop show TICKET\` shows the run's own ticket and nothing else.`,
    exits: [
      ["0", "shown, also with no match; followed: it ended merged"],
      ["1", "no daemon, broken configuration; followed: it ended any other way"],
      ["2", "bad arguments, bad pattern, ambiguous prefix; --timeout ran out"],
    ],
    examples: [
      "sloop show                      the dashboard",
      "sloop show -5                   the same, 5 recent tickets",
      "sloop show TICK-12              one ticket, its runs and its text",
      "sloop show TICK-12-r1           one run, stage by stage",
      "sloop show TICK-12 --follow     watch it until it has ended",
      "sloop show TICK-12 -f -q        only the exit code",
    ],
  },
  status: {
    about: "The dashboard: exactly what `sloop show` prints without an argument.",
    exits: [
      ["0", "shown"],
      ["1", "no daemon, broken configuration"],
      ["2", "bad arguments"],
    ],
    examples: ["sloop status", "sloop --json status | jq .data.tickets"],
  },
  list: {
    about: `Tickets, newest first, each with its state and the reason it is not running.
The states are ready, held, blocked, claimed, merged, failed and needs_review;
\`blocked\` is a ready ticket that waits for others to be merged, and --state ready
leaves those out. \`sloop help states\` explains each.`,
    exits: [
      ["0", "listed, also when none match"],
      ["1", "unknown project, no daemon, broken configuration"],
      ["2", "bad arguments"],
    ],
    examples: ["sloop list -20", "sloop list --state failed,needs_review", "sloop list --project api --state ready"],
  },
  logs: {
    about: `What a run's processes printed. RUN is a run id, an alias like TICK-20-r1, a
ticket id or name (its newest run), or a run-id prefix.

An entry is one captured chunk, not a line: it may hold several lines or part of
one. Without --tail and --follow the last 64 entries are shown; a last line says
so when there are more. --stage NAME narrows to one stage, --stage NAME#N to its
Nth execution (a stage runs again after a \`return_to\`).`,
    exits: [
      ["0", "printed; followed: the run is over, whatever its outcome"],
      ["1", "no such run or stage, no daemon, broken configuration"],
      ["2", "bad arguments; --timeout ran out"],
    ],
    examples: ["sloop logs TICK-12", "sloop logs TICK-12-r2 --stage 'test#2'", "sloop logs TICK-12 --follow"],
  },
  events: {
    about: `One page of the activity feed: claims, starts, endings. A reference narrows it
to one ticket, run, project or pattern. With more to read, the last line is the
command for the next page. --follow streams until interrupted; unlike \`watch\` it
does not end because something has ended.`,
    exits: [
      ["0", "printed"],
      ["1", "no daemon, broken configuration, refused scope"],
      ["2", "bad arguments; --timeout ran out"],
    ],
    examples: ["sloop events", "sloop events TICK-12 --tail 5", "sloop --json events --after 120 --follow"],
  },
  watch: {
    about: `Streams activity: \`sloop show REF --follow\` with the history of your choice.
Ends when a watched ticket or run has ended; everything else, also a pattern that
nothing matches yet, is watched until interrupted or --timeout.`,
    exits: [
      ["0", "it ended merged"],
      ["1", "it ended any other way; an error while following"],
      ["2", "bad arguments, ambiguous prefix; --timeout ran out"],
    ],
    examples: ["sloop watch", "sloop watch TICK-12 --tail 0", "sloop watch TICK-12 --timeout 30m"],
  },
  wait: {
    about: `Blocks until what RUN names has ended, printing nothing: the exit code is the
outcome. RUN is a run id, an alias, a ticket that is queued or has run, or a run-id
prefix. A ticket is followed through all its runs. On a terminal a progress line
stands on standard error meanwhile.`,
    exits: [
      ["0", "merged"],
      ["1", "ended any other way; no such run"],
      ["2", "bad arguments; --timeout ran out"],
    ],
    examples: [
      "sloop wait TICK-12",
      "sloop wait TICK-12-r1 --timeout 2h && git push",
      "sloop wait TICK-12 --timeout 0   look once",
    ],
  },
  completions: {
    about: `Prints a script that completes commands, flags, values and ids in your shell. To
have it in every new shell:

  bash  echo 'eval "$(sloop completions bash)"' >> ~/.bashrc
  zsh   echo 'eval "$(sloop completions zsh)"' >> ~/.zshrc    (after compinit)
  fish  sloop completions fish > ~/.config/fish/completions/sloop.fish

Ids come from the daemon that runs; without one there are none, and none is started.`,
    exits: [
      ["0", "printed"],
      ["1", "standard output could not be written"],
      ["2", "bad arguments, unknown shell"],
    ],
    examples: ['eval "$(sloop completions bash)"', "sloop completions fish | source"],
  },
  help: {
    about: `The long help of a command, or an explanation of one subject. \`sloop help topics\`
lists the subjects. Works anywhere, without a daemon.`,
    exits: [readExits[0], readExits[2]],
    examples: ["sloop help show", "sloop help states", "sloop help --all"],
  },
};

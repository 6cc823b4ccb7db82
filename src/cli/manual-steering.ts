// Long help of the commands that set up, queue and steer work.

import type { ManualPage } from "./manual.ts";

const changed = (done: string, refused: string) =>
  [
    ["0", done],
    ["1", refused],
    ["2", "bad arguments"],
  ] as const;

export const manualSteering: Readonly<Record<string, ManualPage>> = {
  init: {
    about: `Makes \`.agents/sloop\` in the current directory: a configuration with three agent
targets, two flows, the project \`default\`, a review prompt and an empty ticket
directory. Creates what is missing and never changes what is there. Look at
\`.agents/sloop/config.yaml\` next, then write a ticket.`,
    exits: changed("set up, or already there", "a file stands where a directory belongs, or cannot be written"),
    examples: ["sloop init", "sloop init && sloop template ticket > .agents/sloop/tickets/first.md"],
  },
  template: {
    about: `Prints a working, annotated starter file; redirect it to where it belongs.

  ticket: what to do, a Markdown file in .agents/sloop/tickets
  flow: how it is done and judged, a YAML file in .agents/sloop/flows
  project: a name for a group of tickets, a Markdown file in .agents/sloop/projects
  config: every key of .agents/sloop/config.yaml with its default`,
    exits: changed("printed", "standard output could not be written"),
    examples: [
      "sloop template ticket > .agents/sloop/tickets/add-logging.md",
      "sloop template flow > .agents/sloop/flows/careful.yaml",
    ],
  },
  post: {
    about: `Registers a ticket file and queues it. Missing \`id\`, \`project\`, \`worktree\` and
\`flow\` keys are written into its frontmatter: commit the file afterwards. Posting
a known file again refreshes it and never changes its state; a merged, failed or
needs_review ticket is refreshed but not queued.

FILE must lie in the ticket directory. \`sloop template ticket\` prints a ticket to
start from, \`sloop template flow\` a flow. The whole configuration is checked
first, so a broken flow file stops a post.`,
    exits: changed("registered", "the file or the configuration is wrong; no daemon"),
    examples: [
      "sloop post .agents/sloop/tickets/add-logging.md",
      "sloop post .agents/sloop/tickets/add-logging.md --flow train --at 03:00",
      "sloop post .agents/sloop/tickets/add-logging.md --manual",
    ],
  },
  demo: {
    about: `Shows the main job with nothing but git: makes a repository in a temporary
directory, sets it up with a small built-in agent, posts two tickets of which the
second waits for the first, and shows every stage as it happens. One test fails
the first time and goes back to the agent. At the end both are merged; the
daemon is stopped and everything is removed. Touches no repository of yours.`,
    exits: changed("both tickets merged", "anything else"),
    examples: ["sloop demo", "sloop demo --keep"],
  },
  doctor: {
    about: `Looks for what would stop or spoil a run here: git and who commits, the repository
(a detached HEAD, hooks, submodules, LFS, a shallow clone, a branch named sloop),
the configuration and each agent's program, permissions, disk space, the length of
socket paths, and the version of a daemon that runs. Each finding says why it
matters and what mends it. Starts nothing and changes nothing; outside a repository
it checks the machine alone.`,
    exits: [
      ["0", "nothing found, or only warnings"],
      ["1", "an error was found"],
      ["2", "bad arguments"],
    ],
    examples: ["sloop doctor", "sloop --json doctor | jq -r '.data.findings[].fix'"],
  },
  run: {
    about: `Queues one trigger: for TICKET, for one project, or for whatever is ready. Replies
at once; a run starts when nothing holds it back, and \`sloop list\` says what does.
Blocked, failed and claimed tickets are accepted and wait; held, merged and
needs_review ones are refused. Tickets are named by exact id here.`,
    exits: changed("queued", "no such ticket or project, wrong state, no daemon"),
    examples: [
      "sloop run TICK-12",
      "sloop run --project api --overnight",
      "sloop run --only TICK-1,TICK-2 --every 30m",
    ],
  },
  hold: {
    about: "Keeps a ready ticket from being started until `sloop ready`. TICKET is an exact id.",
    exits: changed("held, or was already", "no such ticket, or it is in another state"),
    examples: ["sloop hold TICK-12", "sloop list --state held       what is held"],
  },
  ready: {
    about: `Releases a held ticket. A trigger is needed too before it runs: \`sloop run\` queues
one if \`sloop show TICKET\` lists none. TICKET is an exact id.`,
    exits: changed("ready, or was already", "no such ticket, or it is in another state"),
    examples: ["sloop ready TICK-12", "sloop ready TICK-12 && sloop run TICK-12"],
  },
  retry: {
    about: `Puts a failed ticket back to ready and starts its attempt count anew. Queues
nothing: \`sloop run TICKET\` must follow. TICKET is an exact id.`,
    exits: changed("ready again", "no such ticket, or it has not failed"),
    examples: [
      "sloop logs TICK-12              why it failed, before you try again",
      "sloop retry TICK-12 && sloop run TICK-12",
    ],
  },
  cancel: {
    about: `Ends a run: its processes are asked to stop, then killed. Branch, worktree and
output are kept, the ticket goes back to ready with nothing queued. RUN is an
alias, a run id or a prefix of one, or a ticket.`,
    exits: changed("being cancelled", "no such run, or it cannot be cancelled now"),
    examples: ["sloop cancel TICK-12-r1", "sloop cancel TICK-12           its newest run"],
  },
};

// Long help of the commands about the daemon itself, and of those an agent calls inside a run.

import type { ManualPage } from "./manual.ts";

const served = [
  ["0", "done"],
  ["1", "no daemon, broken configuration"],
  ["2", "bad arguments"],
] as const;

const worker = [
  ["0", "accepted"],
  ["1", "refused, not inside a run, or the run's socket is gone"],
  ["2", "bad arguments"],
] as const;

export const manualService: Readonly<Record<string, ManualPage>> = {
  daemon: {
    about: `Starts this repository's scheduler, or reports the one that answers: its process,
socket and log. Most commands start it by themselves; it goes on until \`sloop stop\`, and what it
runs outlives it. With --foreground this process becomes the daemon, in this
terminal, until it is stopped.

\`sloop daemon restart\` lets the runs that are going finish all their stages, starts
nothing new meanwhile, and then becomes the program that stands at its path by now,
with the same pid: an upgrade, or a changed configuration, takes effect.
\`sloop resume\` calls it off.`,
    exits: [
      ["0", "answering; --foreground: stopped cleanly, or another daemon serves already"],
      ["1", "it could not start; broken configuration"],
      ["2", "bad arguments"],
    ],
    examples: ["sloop daemon", "sloop daemon --foreground", "sloop daemon restart"],
  },
  pause: {
    about: "Starts nothing new until `sloop resume`, also after a restart. Runs already going finish.",
    exits: served,
    examples: ["sloop pause", "sloop pause && sloop show     look at what still runs"],
  },
  resume: {
    about: "Starts runs again after `sloop pause`, and calls off a restart that is pending.",
    exits: served,
    examples: ["sloop resume", "sloop --json resume | jq .data.restart_cancelled"],
  },
  stop: {
    about: `Shuts the daemon down. Refuses while runs are active, unless --force cancels
them first. Replies before the process is gone.`,
    exits: [
      ["0", "stopping, or none was running"],
      ["1", "refused: runs are active; no repository, broken configuration"],
      ["2", "bad arguments"],
    ],
    examples: ["sloop stop", "sloop stop --force"],
  },
  reindex: {
    about: `Rebuilds the index from project files, ticket files (or the external source) and
git: files changed, renamed or deleted since they were posted, branches merged or
squashed by hand. A ticket that is wrong by itself is held with a reason; one whose
branch carries work is merged or needs_review; holds, attempts and history of the
rest stay. Refused while runs are active; --wait tries again until none is.`,
    exits: [
      ["0", "rebuilt"],
      ["1", "runs are active (with --wait: still, when the time was up); files or git contradict each other"],
      ["2", "bad arguments"],
    ],
    examples: ["sloop reindex", "sloop reindex --wait --timeout 10m"],
  },
  brief: {
    about: `For an agent inside a run: its assignment as JSON. The ticket as it was when the
run was claimed, the worktree and branch, the stage, and what counts as done. May
be read any number of times.`,
    exits: worker,
    examples: ["sloop brief", "sloop brief | jq -r .data.ticket.body"],
  },
  note: {
    about: `For an agent inside a run: leaves a remark that people see in \`sloop show PROJECT\`.
It changes no state. From the first word on, everything is text, flags included.`,
    exits: worker,
    examples: ["sloop note gift cards are rounded elsewhere", "sloop note 'the suite needs TZ=UTC'"],
  },
  verdict: {
    about: `For an agent in a stage with \`result_check: reported\`, or a reviewer of a panel:
says whether the work passes. It may be called once per execution or seat, and
the first report is final; ending without one fails the stage. Confidence is
shown and never weighted.`,
    exits: worker,
    examples: [
      'sloop verdict pass --reason "tests cover the change"',
      'sloop verdict fail --reason "no test for the purge" --confidence high',
    ],
  },
};

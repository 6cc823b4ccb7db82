// THE command table: what may be typed after `sloop`. Parsing, help, suggestions and docs/reference/cli.md follow from it.

import type { Command, Option, Positional, ValueForm } from "./command.ts";

const largestCount = 0xffff_ffff;
const count = (min: number, max = largestCount): ValueForm => ({ kind: "count", min, max });
const text: ValueForm = { kind: "text" };

const valued = (name: string, label: string, form: ValueForm, summary: string): Option => ({
  name,
  value: { label, form },
  summary,
});
const flag = (name: string, summary: string, short?: string): Option => ({
  name,
  summary,
  ...(short === undefined ? {} : { short }),
});
const needed = (label: string): Positional => ({ label, required: true });
const maybe = (label: string): Positional => ({ label, required: false });

const limit = (summary: string): Option => ({ ...valued("limit", "N", count(1), summary), short: "n" });
const timeout = (summary: string): Option => valued("timeout", "T", { kind: "timeout" }, summary);
const whileFollowing = (option: Option): Option => ({ ...option, needs: "follow" });
const follow = (summary: string): Option => flag("follow", summary, "f");

export const completionShells = ["bash", "zsh", "fish"] as const;
export const completionKinds = ["tickets", "runs", "projects", "flows"] as const;
const templateKinds = ["ticket", "flow", "project", "config"] as const;
const confidences = ["low", "medium", "high"] as const;

const at = valued("at", "HH:MM", { kind: "time" }, "Not before the next local time that reads so");

/** A command that takes nothing. */
const bare = (name: string, group: Command["group"], kind: Command["kind"], summary: string): Command => ({
  name,
  group,
  kind,
  summary,
  positionals: [],
  options: [],
});

export const commands: readonly Command[] = [
  bare("init", "Set up", "local", "set up this directory"),
  {
    name: "template",
    group: "Set up",
    kind: "local",
    summary: "print an annotated starter file",
    positionals: [{ label: "KIND", required: false, choices: templateKinds }],
    options: [],
  },
  {
    name: "post",
    group: "Set up",
    kind: "operator",
    summary: "register a ticket and queue it",
    positionals: [needed("FILE")],
    options: [
      valued("project", "P", text, "Project id (default: the file's own, else `default`)"),
      valued("flow", "F", text, "Flow name (default: the file's own, else the default flow)"),
      flag("auto", "Queue it to run as soon as nothing holds it back (default)"),
      at,
      flag("manual", "Register it, queue nothing"),
      flag("hold", "Register it held"),
    ],
    exclusive: [["--auto", "--at", "--manual", "--hold"]],
  },
  {
    name: "demo",
    group: "Set up",
    kind: "local",
    summary: "watch two tickets merge in a scratch repository",
    positionals: [],
    options: [flag("keep", "Leave the scratch repository and print its path")],
  },
  bare("doctor", "Set up", "local", "find what would stop a run here"),
  {
    name: "show",
    group: "Reading",
    kind: "operator",
    summary: "dashboard, detail or search",
    positionals: [maybe("REF_OR_PATTERN")],
    options: [
      follow("Stream events until the ticket or run named has ended"),
      whileFollowing(flag("quiet", "Print nothing; the exit code is the answer", "q")),
      limit("At most N rows; `-N` for short (dashboard default: 10)"),
      whileFollowing(timeout("Give up after T: seconds, or a duration (default: never)")),
    ],
    digits: true,
  },
  bare("status", "Reading", "operator", "the dashboard"),
  {
    name: "list",
    group: "Reading",
    kind: "operator",
    summary: "tickets and why each is not running",
    positionals: [],
    options: [
      valued("project", "P", text, "Only tickets of this project"),
      valued("state", "S", { kind: "states" }, "Only tickets in these states; comma list, may repeat"),
      limit("At most N rows, after the filters; `-N` for short (default: all)"),
    ],
    digits: true,
  },
  {
    name: "logs",
    group: "Reading",
    kind: "operator",
    summary: "captured output",
    positionals: [needed("RUN")],
    options: [
      valued("stage", "NAME", text, "One stage, or one execution of it: `test#2`"),
      valued("tail", "N", count(1), "The last N entries (default: 64, without --follow)"),
      follow("Stream from the first entry until the run is over"),
      whileFollowing(timeout("Give up after T: seconds, or a duration (default: never)")),
    ],
  },
  {
    name: "events",
    group: "Reading",
    kind: "operator",
    summary: "a page of the activity feed",
    positionals: [maybe("REF")],
    options: [
      valued("tail", "N", count(0), "Start N events before the newest (default: 20)"),
      valued("after", "CURSOR", count(0, Number.MAX_SAFE_INTEGER), "Only what came after this cursor"),
      valued("limit", "N", count(1, 256), "Scan at most N events a page (default: 64)"),
      follow("Stream until interrupted"),
      whileFollowing(timeout("Give up after T: seconds, or a duration (default: never)")),
    ],
    exclusive: [["--tail", "--after"]],
  },
  {
    name: "watch",
    group: "Reading",
    kind: "operator",
    summary: "stream activity",
    positionals: [maybe("REF")],
    options: [
      valued("tail", "N", count(0), "Begin N events before the newest; 0: no history (default: 20)"),
      timeout("Give up after T: seconds, or a duration (default: never)"),
    ],
  },
  {
    name: "wait",
    group: "Reading",
    kind: "operator",
    summary: "block until a run ends; the exit code is the outcome",
    positionals: [needed("RUN")],
    options: [timeout("Give up after T: seconds, or a duration; 0 looks once (default: 3600)")],
  },
  {
    name: "run",
    group: "Steering",
    kind: "operator",
    summary: "queue a run",
    positionals: [maybe("TICKET")],
    options: [
      valued("project", "P", text, "Pick only from this project"),
      valued("only", "T1,T2", { kind: "ids" }, "Pick only from these tickets; comma list, may repeat"),
      at,
      valued("every", "DUR", { kind: "every" }, "Again and again at this distance: 30m, 2h, 1d"),
      flag("overnight", "At the next opening of the running hours"),
    ],
    exclusive: [
      ["--at", "--every", "--overnight"],
      ["TICKET", "--project"],
    ],
  },
  ...(
    [
      ["hold", "keep a ticket from running", "TICKET"],
      ["ready", "release it", "TICKET"],
      ["retry", "put a failed ticket back to ready", "TICKET"],
      ["cancel", "end a run, keep its worktree", "RUN"],
    ] as const
  ).map(
    ([name, summary, label]): Command => ({
      name,
      group: "Steering",
      kind: "operator",
      summary,
      positionals: [needed(label)],
      options: [],
    }),
  ),
  {
    name: "daemon",
    group: "Service",
    kind: "operator",
    summary: "start or report the scheduler",
    actions: [{ name: "restart", summary: "finish runs, then reload the binary" }],
    positionals: [{ label: "ACTION", required: false, choices: ["restart"] }],
    options: [flag("foreground", "Be the daemon, in this terminal")],
  },
  bare("pause", "Service", "operator", "start nothing new"),
  bare("resume", "Service", "operator", "start again"),
  {
    name: "stop",
    group: "Service",
    kind: "operator",
    summary: "shut down",
    positionals: [],
    options: [flag("force", "Cancel active runs first")],
  },
  {
    name: "reindex",
    group: "Service",
    kind: "operator",
    summary: "rebuild state from files and Git",
    positionals: [],
    options: [
      flag("wait", "Try again every 2 s while runs are active"),
      {
        ...valued("timeout", "T", { kind: "timeout" }, "Give up after T: seconds, or a duration (default: 3600)"),
        needs: "wait",
      },
    ],
  },
  bare("brief", "Worker", "worker", "my assignment"),
  {
    name: "note",
    group: "Worker",
    kind: "worker",
    summary: "leave a remark",
    positionals: [{ label: "TEXT", required: true, rest: true }],
    options: [],
  },
  {
    name: "verdict",
    group: "Worker",
    kind: "worker",
    summary: "report on my stage",
    positionals: [{ label: "VERDICT", required: true, choices: ["pass", "fail"] }],
    options: [
      valued("reason", "TEXT", { kind: "prose" }, "Why; a panel reviewer must give one"),
      valued(
        "confidence",
        "LEVEL",
        { kind: "choice", choices: confidences },
        `One of ${confidences.join(", ")} (default: medium)`,
      ),
    ],
  },
  {
    name: "completions",
    group: "Shell",
    kind: "local",
    summary: "shell completion script",
    positionals: [{ label: "SHELL", required: true, choices: completionShells }],
    options: [],
  },
  {
    name: "help",
    group: "Shell",
    kind: "local",
    summary: "a command or topic",
    positionals: [maybe("TOPIC")],
    options: [flag("all", "Every command and the ticket states")],
  },
];

/** The options that may stand before or after any command. */
export const globalOptions: readonly Option[] = [
  { name: "json", summary: "Print JSON envelopes" },
  {
    name: "color",
    value: { label: "WHEN", form: { kind: "choice", choices: ["auto", "always", "never"] } },
    summary: "auto, always or never (default: auto)",
  },
  { name: "no-color", summary: "The same as --color never" },
  { name: "help", short: "h", summary: "This text" },
];

/** Those that may only stand before a command. */
export const rootOptions: readonly Option[] = [
  ...globalOptions,
  { name: "version", short: "V", summary: "Version" },
  { name: "all", summary: "With --help: every command" },
];

/** `completions refs`: what the completion scripts ask; for them, so it stands in no help and no usage line. */
export const completionRefs: Command = {
  name: "completions refs",
  group: "Shell",
  kind: "local",
  summary: "what a completion script asks",
  positionals: [{ label: "KIND", required: true, choices: completionKinds }, maybe("PREFIX")],
  options: [],
};

/** The row of `name`, or null when there is no such command. */
export function findCommand(name: string): Command | null {
  return commands.find((command) => command.name === name) ?? null;
}

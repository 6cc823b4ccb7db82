// files.md 15 A through the real loader, and what the sections behind it add.

import { describe, expect, test } from "bun:test";
import type { Config } from "../../src/core/config.ts";
import { parseConfig, parseEssentials } from "../../src/parse/config.ts";
import { refusal } from "./refusal.ts";

const path = "/repo/.agents/sloop/config.yaml";
const userPath = "/home/me/.config/sloop/config.yaml";

function load(text: string, user: string | null = null) {
  return parseConfig({
    repository: { path, text },
    user: user === null ? null : { path: userPath, text: user },
  });
}

const config = (body: string, user: string | null = null): Config => load(`version: 1\n${body}`, user).config;
const refused = (body: string): string | null => refusal(() => load(`version: 1\n${body}`));

const defaults: Config = {
  worktreeDir: ".worktrees",
  projectDir: ".agents/sloop/projects",
  ticketDir: ".agents/sloop/tickets",
  worktreeRetentionMs: 604_800_000,
  evidenceRetentionMs: 2_592_000_000,
  deleteMissingAfterMs: 2_592_000_000,
  maxParallelTasks: 1,
  stallReportAfterMs: 600_000,
  stallAfterMs: 7_200_000,
  cancelGraceMs: 2_000,
  runningHours: null,
  agent: null,
  ticketSource: null,
  testCmd: null,
  mergeTarget: null,
  ticketPrefix: "TICK",
  projectPrefix: "PROJ",
};

describe("whole files", () => {
  const cases: [string, string, string[]][] = [
    ["A2 empty", "", ["missing `version`"]],
    ["A3", "version: 2", ["unsupported config version 2"]],
    ["A4", 'version: "1"', ["version", "string"]],
    ["A4 1.0", "version: 1.0", ["version"]],
    ["A4 01", "version: 01", ["version"]],
    ["A5", "[1, 2]", ["mapping"]],
    ["A6", "versoin: 1", ["missing `version`"]],
    ["two documents", "version: 1\n---\nversion: 1", ["more than one document"]],
    ["not YAML", "version: [1", ["line 1"]],
    ["version first", "version: 3\nscheduler: 3", ["unsupported config version 3"]],
    ["control", "version: 1\ncontrol: {listen: {}}", ["`control`", "user-level"]],
  ];
  test.each(cases)("%s", (_name, text, fragments) => {
    const message = refusal(() => load(text));
    expect(message).toStartWith(`${path}: `);
    for (const fragment of fragments) expect(message).toContain(fragment);
  });
});

describe("refused", () => {
  const agent = (target: string) => `agent: {default_target: x, targets: {x: ${target}}}`;
  const cases: [string, string, string[]][] = [
    ["A9", "scheduler: 3", ["scheduler", "mapping", "3", "line 2, column 12"]],
    ["A10", "scheduler: {}\nscheduler: {}", ["duplicate", "`scheduler`"]],
    ["A10 unknown key", "x: {a: {b: 1, b: 2}}", ["duplicate", "`b`"]],
    ["A11", "scheduler: {max_parallel_tasks: 0}", ["scheduler.max_parallel_tasks", "greater than zero"]],
    ["A12 -1", "scheduler: {max_parallel_tasks: -1}", ["scheduler.max_parallel_tasks", "-1"]],
    ["A12 string", 'scheduler: {max_parallel_tasks: "3"}', ["scheduler.max_parallel_tasks", '"3"']],
    ["A12 1.0", "scheduler: {max_parallel_tasks: 1.0}", ["scheduler.max_parallel_tasks", "1.0"]],
    ["A12 huge", "scheduler: {max_parallel_tasks: 99999999999999999999}", ["scheduler.max_parallel_tasks"]],
    ["A13", "scheduler: {stall_report_after: 0m}", ["scheduler.stall_report_after", "positive duration"]],
    ["A14", "scheduler: {stall_after: -1m}", ["scheduler.stall_after", "positive duration"]],
    [
      "A15",
      "scheduler: {stall_report_after: 30m, stall_after: 30m}",
      ["scheduler.stall_after must be greater than scheduler.stall_report_after"],
    ],
    [
      "A16",
      "scheduler: {stall_report_after: 3h}",
      ["scheduler.stall_after must be greater than scheduler.stall_report_after", "`2h`"],
    ],
    ["A17", "scheduler: {stall_after: 90}", ["scheduler.stall_after", "30d, 12h, 30m, 45s, or 2w"]],
    ["cancel_grace", "scheduler: {cancel_grace: soon}", ["scheduler.cancel_grace", "`soon`"]],
    [
      "A19",
      'scheduler: {running_hours: {start: "09:00", end: "09:00"}}',
      ["scheduler.running_hours", "start and end must differ"],
    ],
    ["A20", 'scheduler: {running_hours: {start: "9:00", end: "17:00"}}', ["scheduler.running_hours", "HH:MM"]],
    ["A21", 'scheduler: {running_hours: {start: "22:00"}}', ["scheduler.running_hours", "missing `end`"]],
    ["A22", 'scheduler: {running_hours: {start: "24:00", end: "01:00"}}', ["scheduler.running_hours", "HH:MM"]],
    ["A23", "worktree_dir: /tmp/w", ["worktree_dir", "repository-relative"]],
    ["A24", "worktree_dir: ../w", ["worktree_dir", "repository root"]],
    ["A25", "ticket_dir: a/../../t", ["ticket_dir", "repository root"]],
    ["A26", "project_dir: .", ["project_dir", "below the repository root"]],
    ["A26 empty", 'ticket_dir: ""', ["ticket_dir", "repository root"]],
    ["A28", "ticket_dir: ../t\nproject_dir: /tmp/p", ["project_dir"]],
    ["A30 Never", "worktree_retention: Never", ["worktree_retention", "use a positive duration", "`never`"]],
    ["A30 tomorrow", "worktree_retention: tomorrow", ["worktree_retention", "use a positive duration", "`never`"]],
    ["A30 0d", "worktree_retention: 0d", ["worktree_retention", "use a positive duration", "`never`"]],
    ["A31", "delete_missing_after: never", ["delete_missing_after"]],
    ["A32", "worktree_retention: 1.5h", ["worktree_retention", "use a positive duration", "`never`"]],
    ["evidence", "evidence_retention: x", ["evidence_retention", "use a positive duration", "`never`"]],
    ["A33", "agent: {cmd: [x]}", ["agent.cmd", "agent.targets", "agent.default_target"]],
    ["A34", "agent: {}", ["agent.default_target", "required"]],
    ["A35", "agent: {default_target: a}", ["agent.targets", "required"]],
    [
      "A36",
      "agent: {default_target: missing, targets: {x: {cmd: ['a{prompt}']}}}",
      ["agent.default_target `missing`", "agent.targets"],
    ],
    ["A37", agent("{cmd: []}"), ["agent.targets.x.cmd must name a command"]],
    ["A37 blank", agent("{cmd: [' ', '{prompt}']}"), ["agent.targets.x.cmd must name a command"]],
    ["A38", agent("{model: m}"), ["agent.targets.x", "missing field `cmd`"]],
    ["A39", agent("{cmd: [agent]}"), ["agent.targets.x.cmd", "`{prompt}` exactly once", "found 0"]],
    ["A40", agent('{cmd: [agent, "{prompt}", "again={prompt}"]}'), ["`{prompt}` exactly once", "found 2"]],
    ["A43", agent('{cmd: ["{prompt}"], model: "  "}'), ["agent.targets.x.model must not be empty"]],
    ["A43 effort", agent('{cmd: ["{prompt}"], effort: ""}'), ["agent.targets.x.effort must not be empty"]],
    ["A45", agent('{cmd: "agent {prompt}"}'), ["agent.targets.x.cmd", "list"]],
    ["null in cmd", agent("{cmd: [a, ~]}"), ["agent.targets.x.cmd", "null"]],
    ["targets not a map", "agent: {default_target: x, targets: [x]}", ["agent.targets", "mapping"]],
    ["A46", "sources: {tickets: {exec: []}}", ["sources.tickets.exec must name a command"]],
    ["A48", "sources: {projects: {}}", ["unknown field `projects`", "`tickets`"]],
    ["A49", "sources: {tickets: {cmd: [x]}}", ["unknown field `cmd`", "`exec`"]],
    ["A50", 'ids: {ticket_prefix: ""}', ["ids.ticket_prefix", "non-empty"]],
    ["A51", 'ids: {project_prefix: "not valid"}', ["ids.project_prefix"]],
    ["A53", "flow: {test_cmd: []}", ["flow.test_cmd must name a command"]],
    ["merge.target", "merge: {target: 'a b'}", ["merge.target"]],
    ["merge.target blank", "merge: {target: ' '}", ["merge.target"]],
    ["defaults are typed", "defaults: {scheduler: 3}", ["defaults.scheduler"]],
  ];
  test.each(cases)("%s: %s", (_name, body, fragments) => {
    const message = refused(body);
    expect(message).toStartWith(`${path}: `);
    expect(message).toMatch(/\(line \d+, column \d+\)$/);
    for (const fragment of fragments) expect(message).toContain(fragment);
  });

  test("in the order of files.md 3.7, whatever the order in the file", () => {
    const faults = [
      ["worktree_dir: /a", "worktree_dir"],
      ["project_dir: /a", "project_dir"],
      ["ticket_dir: /a", "ticket_dir"],
      ["sources: {tickets: {exec: []}}", "sources.tickets.exec"],
      ["scheduler: {max_parallel_tasks: 0, stall_after: 0m}", "scheduler.max_parallel_tasks"],
      ["agent: {}", "agent.default_target"],
      ["flow: {test_cmd: []}", "flow.test_cmd"],
      ["ids: {ticket_prefix: '-', project_prefix: '-'}", "ids.ticket_prefix"],
      ["merge: {target: '..'}", "merge.target"],
      ["delete_missing_after: x", "delete_missing_after"],
      ["worktree_retention: x", "worktree_retention"],
    ] as const;
    for (const [index, [, key]] of faults.entries()) {
      const rest = faults.slice(index).map(([line]) => line);
      expect(refused(rest.reverse().join("\n"))).toStartWith(`${path}: ${key}`);
    }
  });
});

describe("accepted", () => {
  const cases: [string, string, Partial<Config>][] = [
    ["A1", "", {}],
    ["A7", "color: blue", {}],
    ["A8", "scheduler:", {}],
    [
      "A18",
      "scheduler: {running_hours: {start: 22:00, end: 06:00}}",
      {
        runningHours: { start: "22:00", end: "06:00", startMinute: 1320, endMinute: 360 },
      },
    ],
    ["A27", "ticket_dir: ./plan//tickets/", { ticketDir: "plan/tickets" }],
    ["normalised", "ticket_dir: a/../b", { ticketDir: "b" }],
    ["A29", "worktree_retention: never", { worktreeRetentionMs: null }],
    ["evidence", "evidence_retention: never", { evidenceRetentionMs: null }],
    ["A47", "sources: {tickets: {}}", { ticketSource: null }],
    ["sources", "sources: {tickets: {exec: [x, 1]}}", { ticketSource: ["x", "1"] }],
    ["A52", "ids: {ticket_prefix: 7}", { ticketPrefix: "7" }],
    ["A55", "defaults: {scheduler: {max_parallel_tasks: 9}}", {}],
    ["test_cmd", "flow: {test_cmd: [true]}", { testCmd: ["true"] }],
    ["merge", "merge: {target: release/1}", { mergeTarget: "release/1" }],
    ["grace", "scheduler: {cancel_grace: 5s}", { cancelGraceMs: 5000 }],
    ["merge key", "x: &x {worktree_dir: a}\n<<: *x", {}],
    ["alias", "worktree_dir: &x a\nticket_dir: *x", { worktreeDir: "a", ticketDir: "a" }],
    ["CRLF", "worktree_dir: a\r\nticket_dir: b\r\n", { worktreeDir: "a", ticketDir: "b" }],
  ];
  test.each(cases)("%s: %s", (_name, body, expected) => {
    expect(config(body)).toEqual({ ...defaults, ...expected });
  });

  test("a byte-order mark and a document start", () => {
    expect(load("\ufeff---\nversion: 1\n").config).toEqual(defaults);
  });

  test("targets: A41, A42, A44, and names that a plain object already has", () => {
    const agent = config(
      'agent: {default_target: a, targets: {a: {cmd: [agent, "p={prompt}"]}, b: {cmd: [agent, "{model}", "{prompt}"]}, constructor: {cmd: [true, 5, "{prompt}"], model: 4.10}}}',
    ).agent;
    expect(agent?.defaultTarget).toBe("a");
    expect(Object.keys(agent?.targets ?? {}).sort()).toEqual(["a", "b", "constructor"]);
    expect(agent?.targets["constructor"]).toEqual({
      name: "constructor",
      cmd: ["true", "5", "{prompt}"],
      model: "4.10",
      effort: null,
    });
    expect(agent?.targets["toString"]).toBeUndefined();
  });

  test("ignored keys are listed with the nearest known one", () => {
    const { warnings } = load("version: 1\nschedulers: {}\nscheduler: {stal_after: 1h}\nagent:\n");
    expect(warnings).toEqual([
      `${path}: ignored unknown keys: \`schedulers\` (nearest: \`scheduler\`), \`scheduler.stal_after\` (nearest: \`stall_after\`)`,
    ]);
  });
});

describe("the user-level file", () => {
  const refusedUser = (user: string, body = "") => refusal(() => load(`version: 1\n${body}`, user));

  test.each([
    ["A56", "version: 1\nagent: {default_target: x}", ["repository-scoped", "agent.default_target", "agent.targets"]],
    ["A56 defaults", "version: 1\ndefaults: {agent: {}}", ["repository-scoped", "agent.targets"]],
    ["sources", "version: 1\ndefaults: {sources: {}}", ["repository-scoped", "sources"]],
    ["A57", "defaults: {}", ["version"]],
    ["typed", "version: 1\nscheduler: 3", ["scheduler"]],
    ["bad default", "version: 1\ndefaults: {scheduler: {stall_after: x}}", ["scheduler.stall_after"]],
    ["bad test_cmd", "version: 1\ndefaults: {flow: {test_cmd: []}}", ["flow.test_cmd must name a command"]],
    [
      "bad pair",
      "version: 1\ndefaults: {scheduler: {stall_report_after: 3h}}",
      ["scheduler.stall_after must be greater than scheduler.stall_report_after"],
    ],
    ["control member", "version: 1\ncontrol: {lisen: {}}", ["control", "unknown field `lisen`"]],
    ["listen member", "version: 1\ncontrol: {listen: {/repo: {bind: '127.0.0.1:1', worker: true}}}", ["`worker`"]],
    ["no bind", "version: 1\ncontrol: {listen: {/other: {}}}", ["missing field `bind`"]],
    ["own bind", "version: 1\ncontrol: {listen: {/repo: {bind: ':80'}}}", ["`:80`", "ADDR:PORT"]],
    ["remote", "version: 1\ncontrol: {remotes: {'h:1': {token: x}}}", ["unknown field `token`"]],
  ])("%s is refused by its path", (_name, user, fragments) => {
    const message = refusedUser(user);
    expect(message).toStartWith(`${userPath}: `);
    for (const fragment of fragments) expect(message).toContain(fragment);
  });

  test("a broken user file comes before a broken repository file, agent after directories", () => {
    expect(refusedUser("version: 2", "scheduler: 3")).toStartWith(userPath);
    expect(refusedUser("version: 1\nagent: {x: 1}", "ticket_dir: /x")).toStartWith(`${path}: ticket_dir`);
    expect(refusedUser("version: 1\nagent: {x: 1}", "flow: {test_cmd: []}")).toStartWith(userPath);
  });

  test("a pair split over both files is the repository's fault", () => {
    const user = "version: 1\ndefaults: {scheduler: {stall_after: 20m}}";
    expect(refusedUser(user, "scheduler: {stall_report_after: 30m}")).toStartWith(path);
  });

  test.each<[string, string, string, Partial<Config>]>([
    ["A58", "", "version: 1\nids: {ticket_prefix: '-'}\nworktree_dir: /x\nscheduler: {max_parallel_tasks: 5}", {}],
    ["A59", "flow: {}", "version: 1\ndefaults: {flow: {test_cmd: [x]}}", { testCmd: null }],
    ["flow null", "flow:", "version: 1\ndefaults: {flow: {test_cmd: [x]}}", { testCmd: ["x"] }],
    ["A60", "", "version: 1\ndefaults: {scheduler: {max_parallel_tasks: 4}}", { maxParallelTasks: 4 }],
    [
      "key by key",
      "scheduler: {stall_after: 4h}",
      "version: 1\ndefaults: {scheduler: {stall_after: 3h, cancel_grace: 9s}}",
      { stallAfterMs: 14_400_000, cancelGraceMs: 9000 },
    ],
    ["null agent", "", "version: 1\nagent:\ndefaults:\n  agent: ~", {}],
  ])("%s", (_name, body, user, expected) => {
    expect(config(body, user)).toEqual({ ...defaults, ...expected });
  });

  test("control", () => {
    const text =
      'version: 1\ncontrol:\n  listen:\n    /repo: { bind: "127.0.0.1:7420", advertise: "h:7420", workers: true }\n    /else: { bind: "nonsense" }\n  remotes:\n    "h:7420": { token_file: ~/t }\n';
    const { control } = load("version: 1", text);
    expect(control.listen.get("/repo")).toEqual({ bind: "127.0.0.1:7420", advertise: "h:7420", workers: true });
    expect(control.listen.get("/else")).toEqual({ bind: "nonsense", advertise: null, workers: false });
    expect(control.remotes.get("h:7420")).toEqual({ tokenFile: "~/t" });
  });
});

describe("the light check", () => {
  test("A61: looks at nothing but the version and worktree_dir", () => {
    const text = "version: 1\nworktree_dir: ./w/\nagent: {targets: not-a-map}\nscheduler: 3\n";
    expect(parseEssentials(path, text)).toEqual({ worktreeDir: "w" });
    expect(parseEssentials(path, "version: 1")).toEqual({ worktreeDir: ".worktrees" });
    expect(refusal(() => load(text))).toContain("scheduler");
  });

  test.each(["version: 2", "", "version: [", "version: 1\nworktree_dir: /x", "version: 1\nworktree_dir: [a]"])(
    "refuses %j",
    (text) => {
      expect(refusal(() => parseEssentials(path, text))).toStartWith(`${path}: `);
    },
  );
});

// files.md 15 A through the compiled binary: each configuration as a daemon would start with it.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { loadConfiguration } from "../../src/cli/configuration.ts";
import { newWorld, type World } from "../support/repo.ts";
import { expectGist, refusal } from "./refusal.ts";

setDefaultTimeout(60_000);

const file = ".agents/sloop/config.yaml";

const target = (inner: string) => `agent:\n  default_target: x\n  targets:\n    x: ${inner}`;
const scheduler = (inner: string) => `scheduler: {${inner}}`;
const userFile = (world: World) => join(world.dir, "home/.config/sloop/config.yaml");

async function configured(text: string): Promise<World> {
  const world = await newWorld();
  world.write(file, text);
  world.write(".agents/sloop/projects/default.md", "---\nid: default\n---\n");
  return world;
}

type Row = [number: string, text: string, gist: string[]];

/** What follows `version: 1`, unless the text begins with `=`. */
const refusedRows: Row[] = [
  ["A2", "=", ["missing `version`"]],
  ["A3", "=version: 2", ["unsupported config version 2"]],
  ["A4", '=version: "1"', ["version", "whole number"]],
  ["A5", "=[1, 2]", ["must be a mapping"]],
  ["A6", "=versoin: 1", ["missing `version`"]],
  ["A9", "scheduler: 3", ["scheduler must be a mapping", "`3`"]],
  ["A10", "scheduler: {}\nscheduler: {}", ["duplicate", "`scheduler`"]],
  ["A11", scheduler("max_parallel_tasks: 0"), ["scheduler.max_parallel_tasks", "greater than zero"]],
  ["A12", scheduler("max_parallel_tasks: -1"), ["scheduler.max_parallel_tasks", "whole number", "`-1`"]],
  ["A12", scheduler('max_parallel_tasks: "3"'), ["scheduler.max_parallel_tasks", "whole number", '"3"']],
  ["A12", scheduler("max_parallel_tasks: 1.0"), ["scheduler.max_parallel_tasks", "whole number", "`1.0`"]],
  ["A13", scheduler("stall_report_after: 0m"), ["scheduler.stall_report_after", "positive duration"]],
  ["A14", scheduler("stall_after: -1m"), ["scheduler.stall_after", "positive duration"]],
  [
    "A15",
    scheduler("stall_report_after: 30m, stall_after: 30m"),
    ["scheduler.stall_after must be greater than scheduler.stall_report_after"],
  ],
  [
    "A16",
    scheduler("stall_report_after: 3h"),
    ["scheduler.stall_after must be greater than scheduler.stall_report_after"],
  ],
  ["A17", scheduler("stall_after: 90"), ["scheduler.stall_after", "`90`", "30d, 12h, 30m, 45s, or 2w"]],
  ["A19", scheduler('running_hours: {start: "09:00", end: "09:00"}'), ["start and end must differ"]],
  ["A20", scheduler('running_hours: {start: "9:00", end: "17:00"}'), ["scheduler.running_hours", "HH:MM", "9:00"]],
  ["A21", scheduler('running_hours: {start: "22:00"}'), ["scheduler.running_hours", "missing", "`end`"]],
  ["A22", scheduler('running_hours: {start: "24:00", end: "01:00"}'), ["scheduler.running_hours", "HH:MM", "24:00"]],
  ["A23", "worktree_dir: /tmp/w", ["worktree_dir", "/tmp/w", "repository-relative"]],
  ["A24", "worktree_dir: ../w", ["worktree_dir", "../w", "repository root"]],
  ["A25", "ticket_dir: a/../../t", ["ticket_dir", "a/../../t", "repository root"]],
  ["A26", "project_dir: .", ["project_dir", "below the repository root"]],
  ["A28", "project_dir: /tmp/p\nticket_dir: ../t", ["project_dir", "repository-relative"]],
  ...["Never", "tomorrow", "0d"].map((value): Row => ["A30", `worktree_retention: ${value}`, retention(value)]),
  ["A31", "delete_missing_after: never", ["delete_missing_after", "`never`"]],
  ["A32", "worktree_retention: 1.5h", retention("1.5h")],
  ["A33", "agent: {cmd: [x]}", ["agent.cmd", "agent.targets", "agent.default_target"]],
  ["A34", "agent: {}", ["agent.default_target", "required"]],
  ["A35", "agent: {default_target: a}", ["agent.targets", "required"]],
  [
    "A36",
    'agent: {default_target: missing, targets: {a: {cmd: [x, "{prompt}"]}}}',
    ["agent.default_target `missing`", "agent.targets"],
  ],
  ["A37", target("{cmd: []}"), ["agent.targets.x.cmd", "must name a command"]],
  ["A38", target("{model: m}"), ["agent.targets.x", "missing field `cmd`"]],
  ["A39", target("{cmd: [agent]}"), ["agent.targets.x.cmd", "`{prompt}` exactly once", "found 0"]],
  [
    "A40",
    target('{cmd: [agent, "{prompt}", "again={prompt}"]}'),
    ["agent.targets.x.cmd", "`{prompt}` exactly once", "found 2"],
  ],
  ["A43", target('{cmd: [agent, "{prompt}"], model: "  "}'), ["agent.targets.x.model must not be empty"]],
  ["A45", target('{cmd: "agent {prompt}"}'), ["agent.targets.x.cmd", "list", "agent {prompt}"]],
  ["A46", "sources: {tickets: {exec: []}}", ["sources.tickets.exec", "must name a command"]],
  ["A48", "sources: {projects: {}}", ["unknown field `projects`", "tickets"]],
  ["A49", "sources: {tickets: {cmd: [x]}}", ["unknown field `cmd`", "exec"]],
  ["A50", 'ids: {ticket_prefix: ""}', ["ids.ticket_prefix", "non-empty"]],
  ["A51", 'ids: {project_prefix: "not valid"}', ["ids.project_prefix", "not valid"]],
  ["A53", "flow: {test_cmd: []}", ["flow.test_cmd", "must name a command"]],
];

function retention(value: string): string[] {
  return ["worktree_retention", "use a positive duration", "`never`", value];
}

describe("refused", () => {
  let world: World;
  beforeAll(async () => {
    world = await newWorld();
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  test.each(refusedRows)("%s %j", async (_number, text, gist) => {
    world.write(file, text.startsWith("=") ? text.slice(1) : `version: 1\n${text}\n`);
    const { code, message } = await refusal(world, ["daemon"]);
    expect(code).toBe("invalid_arguments");
    expect(message).toStartWith(`${join(world.root, file)}: `);
    expectGist(message, gist);
    expect(message).toMatch(/line \d+, column \d+/);
    expect(existsSync(join(world.dir, "state/sloop"))).toBe(false);
  });
});

test("A54: flow.test_cmd and a flow with a stage named test", async () => {
  await using world = await configured("version: 1\nflow: {test_cmd: [x]}\n");
  world.write(".agents/sloop/flows/checked.yaml", "- { name: test, action: { exec: ['true'] } }\n");
  const { code, message } = await refusal(world, ["daemon"]);
  expect(code).toBe("invalid_arguments");
  expectGist(message, ["flow.test_cmd conflicts", "stage `test`", "`checked`"]);
});

describe("the user-level file", () => {
  test.each<Row>([
    ["A56", "version: 1\nagent: {default_target: x}", ["`agent` is repository-scoped", "agent.targets"]],
    ["A56", "version: 1\ndefaults: {agent: {default_target: x}}", ["`agent` is repository-scoped", "agent.targets"]],
    ["A57", "worktree_dir: .w", ["missing `version`"]],
  ])("%s %j", async (_number, text, gist) => {
    await using world = await configured("version: 1\n");
    await Bun.write(userFile(world), text);
    const { code, message } = await refusal(world, ["daemon"]);
    expect(code).toBe("invalid_arguments");
    expect(message).toStartWith(`${userFile(world)}: `);
    expectGist(message, gist);
  });
});

type Gate = { max_agents: number; running_hours?: { start: string; end: string } };

async function start(text: string, user?: string): Promise<World & { gate: () => Promise<Gate>; stderr: string }> {
  const world = await configured(text);
  if (user !== undefined) await Bun.write(userFile(world), user);
  const ran = await world.sloop(["daemon"]);
  expect([ran.code, ran.stdout.split(" (pid")[0]]).toEqual([0, "daemon started"]);
  const gate = async () => {
    const shown = await world.sloop(["--json", "status"]);
    return (JSON.parse(shown.stdout) as { data: { gate: Gate } }).data.gate;
  };
  return { ...world, [Symbol.asyncDispose]: world[Symbol.asyncDispose], gate, stderr: ran.stderr };
}

const ticket = "---\nname: One\nblocked_by: []\n---\nDo it.\n";

async function post(world: World, path = ".agents/sloop/tickets/one.md", flags: string[] = ["--manual"]) {
  world.write(path, ticket);
  const ran = await world.sloop(["--json", "post", path, ...flags]);
  if (ran.code !== 0) throw new Error(ran.stderr);
  return (JSON.parse(ran.stdout) as { data: { ticket: { id: string; target: string | null; file: string } } }).data
    .ticket;
}

describe("accepted", () => {
  test.each([
    ["A1", ""],
    ["A8", "scheduler:"],
    ["A29", "worktree_retention: never"],
    ["A47", "sources: {tickets: {}}"],
  ])("%s %j: as if nothing were set", async (_number, text) => {
    await using world = await start(`version: 1\n${text}\n`);
    expect(world.stderr).toBe("");
    const gate = await world.gate();
    expect([gate.max_agents, gate.running_hours]).toEqual([1, undefined]);
    expect(await post(world)).toMatchObject({ id: "TICK-1", target: null });
  });

  test("A7: an unknown key is ignored, and people are told", async () => {
    await using world = await start("version: 1\nschedulers: {max_parallel_tasks: 3}\ncolor: blue\n");
    const warning = `warning: ${join(world.root, file)}: ignored unknown keys: \`schedulers\` (nearest: \`scheduler\`), \`color\``;
    expect(world.stderr).toStartWith(warning);
    expect(world.stderr.split("\n")).toHaveLength(2);
    expect((await world.gate()).max_agents).toBe(1);
    world.write(".agents/sloop/tickets/one.md", ticket);
    const posted = await world.sloop(["post", ".agents/sloop/tickets/one.md"]);
    expect([posted.code, posted.stderr]).toEqual([0, world.stderr]);
    const quiet = await world.sloop(["--json", "post", ".agents/sloop/tickets/one.md"]);
    expect([quiet.code, quiet.stderr]).toEqual([0, ""]);
    const log = await Bun.file((await world.sloop(["daemon"])).stdout.match(/^log: (.*)$/m)![1]!).text();
    expect(log.split("\n").filter((line) => line.includes("ignored unknown keys"))).toHaveLength(1);
  });

  test("A18: unquoted times, overnight", async () => {
    await using world = await start("version: 1\nscheduler: {running_hours: {start: 22:00, end: 06:00}}\n");
    expect((await world.gate()).running_hours).toMatchObject({ start: "22:00", end: "06:00" });
  });

  test("A27: a directory is normalised", async () => {
    await using world = await start("version: 1\nticket_dir: ./plan//tickets/\n");
    expect((await post(world, "plan/tickets/one.md")).file).toBe("plan/tickets/one.md");
    const { message } = await refusal(world, ["post", "README.md"]);
    expect(message).toBe("`README.md` is outside the plan/tickets directory");
  });

  test("A41: {prompt} inside an argument", async () => {
    await using world = await start(`version: 1\n${target('{cmd: [agent, "p={prompt}"]}')}\n`);
    expect((await post(world)).target).toBe("x");
  });

  test("A42: a placeholder without a value; only a ticket can fail on it", async () => {
    await using world = await start(`version: 1\n${target('{cmd: [agent, "{model}", "{prompt}"]}')}\n`);
    const { code, message } = await refusal(world, ["post", putTicket(world)]);
    expect([code, message]).toEqual(["invalid_arguments", expect.stringContaining("does not specify `model`")]);
  });

  test("A44: items of a command are their text", async () => {
    await using world = await start(
      `version: 1\nagent:\n  default_target: x\n  targets:\n    x: {cmd: [true, 5, "{prompt}"]}\n`,
    );
    await post(world, undefined, []);
    const ran = await world.sloop(["wait", "TICK-1", "--timeout", "20"]);
    // `true` ran, and left no commit behind.
    expect(ran.code).toBe(1);
    const shown = await world.sloop(["show", "TICK-1-r1"]);
    expect(shown.stdout).toContain("agent exit: 0");
  });

  test("A52: a number as a prefix", async () => {
    await using world = await start("version: 1\nids: {ticket_prefix: 7}\n");
    expect((await post(world)).id).toBe("7-1");
    expect((await post(world, ".agents/sloop/tickets/two.md")).id).toBe("7-2");
  });

  test("A55: defaults in the repository's file have no effect", async () => {
    await using world = await start("version: 1\ndefaults: {scheduler: {max_parallel_tasks: 9}}\n");
    expect((await world.gate()).max_agents).toBe(1);
  });

  test("A58: repository keys in the user's file are ignored", async () => {
    const user = "version: 1\nids: {ticket_prefix: MINE}\nworktree_dir: /x\nscheduler: {max_parallel_tasks: 9}\n";
    await using world = await start("version: 1\n", user);
    expect((await world.gate()).max_agents).toBe(1);
    expect((await post(world)).id).toBe("TICK-1");
  });

  test("A60: a user default where the repository is silent", async () => {
    await using world = await start("version: 1\n", "version: 1\ndefaults: {scheduler: {max_parallel_tasks: 4}}\n");
    expect((await world.gate()).max_agents).toBe(4);
  });
});

function putTicket(world: World): string {
  world.write(".agents/sloop/tickets/one.md", ticket);
  return ".agents/sloop/tickets/one.md";
}

test.each([
  ["A59: flow: {} switches the user's test_cmd off", "flow: {}", ["build", "merge"]],
  ["A59, the other way round: without a section it applies", "", ["build", "test", "merge"]],
])("%s", async (_name, section, stages) => {
  const agent = 'sh: {cmd: [sh, -c, "echo a > a; git add a; git commit -qm a", "{prompt}"]}';
  const text = `version: 1\nagent:\n  default_target: sh\n  targets:\n    ${agent}\n${section}\n`;
  await using world = await start(text, "version: 1\ndefaults: {flow: {test_cmd: ['true']}}\n");
  await post(world, undefined, []);
  expect((await world.sloop(["wait", "TICK-1", "--timeout", "30"])).code).toBe(0);
  const shown = await world.sloop(["--json", "show", "TICK-1-r1"]);
  const { data } = JSON.parse(shown.stdout) as { data: { value: { stages: { stage: string }[] } } };
  expect(data.value.stages.map((row) => row.stage)).toEqual(stages);
});

test("one command looks at the configuration once, however often it needs it", async () => {
  await using world = await configured("version: 1\nscheduler: {max_parallel_tasks: 3}\n");
  const first = loadConfiguration(world.root, {});
  world.write(file, "version: 2\n");
  expect(loadConfiguration(world.root, {})).toBe(first);
  expect(first.config.maxParallelTasks).toBe(3);
});

test("A61 and A62: a broken section does not block `show` on a running daemon, but does block `post`", async () => {
  await using world = await start("version: 1\n");
  const path = putTicket(world);
  world.write(file, "version: 1\nagent: {targets: not-a-map}\n");
  expect((await world.sloop(["show"])).code).toBe(0);
  expect((await world.sloop(["daemon"])).code).toBe(0);
  const { code, message } = await refusal(world, ["post", path]);
  expect([code, message]).toEqual(["invalid_arguments", expect.stringContaining(`${join(world.root, file)}: agent`)]);
  expect(world.read(path)).toBe(ticket);
});

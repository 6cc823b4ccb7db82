// What `sloop template` prints and `sloop init` writes passes the loaders and says what it must.

import { describe, expect, test } from "bun:test";
import type { Config } from "../../src/core/config.ts";
import { parseConfig } from "../../src/parse/config.ts";
import { parseFlow } from "../../src/parse/flow.ts";
import { loadAll } from "../../src/parse/load.ts";
import { parseProject } from "../../src/parse/project.ts";
import { parseYaml } from "../../src/parse/source.ts";
import { stampTicket } from "../../src/parse/stamp.ts";
import { rawTestCommand, scaffold, templates } from "../../src/parse/templates.ts";
import { parseTicket } from "../../src/parse/ticket.ts";
import { unknownKeys } from "../../src/parse/unknown.ts";

const written = new Map(scaffold(["bun", "test"]).map((file) => [file.path, file.text]));
const text = (path: string) => written.get(`.agents/sloop/${path}`) ?? "";
const config = (content: string) => parseConfig({ repository: { path: "/c.yaml", text: content }, user: null });
const count = (content: string, part: string) => content.split(part).length - 1;

describe("templates", () => {
  test.each(Object.entries(templates))("%s ends in exactly one newline", (_kind, content) => {
    expect(content).toMatch(/[^\n]\n$/);
  });

  test("ticket", () => {
    const ticket = parseTicket(templates.ticket, "t.md");
    expect(ticket).toMatchObject({
      name: "Add request logging",
      blockedBy: [],
      id: null,
      project: null,
      worktree: null,
    });
    expect(ticket).toMatchObject({ flow: null, target: null, model: null, effort: null });
    for (const key of ["title", "target", "model", "effort", "flow", "id", "project", "worktree"]) {
      expect(templates.ticket).toMatch(new RegExp(`^# ${key}: `, "m"));
    }
    for (const heading of ["Context", "Required change", "Acceptance criteria"]) {
      expect(ticket.body).toContain(`## ${heading}\n`);
    }
    const values = { id: "T1", project: "default", worktree: "sloop/x", flow: "default" };
    expect(parseTicket(stampTicket(templates.ticket, "t.md", values) ?? "", "t.md")).toMatchObject(values);
  });

  test("flow", () => {
    const { stages } = parseFlow("f", "/f.yaml", templates.flow);
    expect(stages.map((stage) => stage.name)).toEqual(["build", "test", "lint", "review", "sync", "merge"]);
    expect(stages.map((stage) => stage.action.kind)).toEqual(["agent", "exec", "exec", "exec", "sync", "merge"]);
    expect(stages.map((stage) => stage.resultCheck.kind)).toEqual([
      "commits",
      "none",
      "exec",
      "reported",
      "none",
      "none",
    ]);
    expect(stages.map((stage) => stage.failAction.kind)).toEqual([
      "fail",
      "return_to",
      "continue",
      "fail",
      "fail",
      "fail",
    ]);
    expect(count(templates.flow, "fail_action:")).toBe(stages.length);
    expect(templates.flow).toMatch(/^ +# +panel:$/m);
  });

  test("flow, with the panel of its comments in the place of the reviewer", () => {
    const lines = templates.flow.split("\n");
    const from = lines.findIndex((line) => line.includes("# action: { exec: [git, diff"));
    const length = lines.slice(from).findIndex((line) => !line.startsWith("    # "));
    const panel = lines.slice(from, from + length).map((line) => line.replace("# ", ""));
    const review = lines.indexOf("  - name: review");
    const next = lines.indexOf("", review);
    const text = [...lines.slice(0, review + 1), ...panel, "    fail_action: fail", ...lines.slice(next)].join("\n");
    const stage = parseFlow("f", "/f.yaml", text).stages[3];
    expect(stage?.resultCheck).toMatchObject({ kind: "panel", quorum: 2, reviewers: [{}, { effort: "high" }] });
  });

  test("flow, turned into the merge train of its comments", () => {
    const [head = "", ...stages] = templates.flow.split(/^(?= {2}- name:)/m);
    const [build = "", tests = "", , , sync = "", merge = ""] = stages;
    const train = [
      head,
      build,
      sync.replace("fail_action: fail", "fail_action: { return_to: build, attempts: 1 }"),
      tests,
      merge
        .replace("action: { builtin: merge }", "action: { builtin: merge, ff_only: true }")
        .replace("fail_action: fail", "fail_action: { return_to: sync, attempts: 10 }"),
    ].join("");
    for (const told of ["{ builtin: merge, ff_only: true }", "{ return_to: sync, attempts: 10 }"]) {
      expect(templates.flow).toContain(`\`${told}\``);
    }
    expect(parseFlow("f", "/f.yaml", train).stages.map(({ name }) => name)).toEqual(["build", "sync", "test", "merge"]);
  });

  test("project", () => {
    expect(parseProject(templates.project, "p.md")).toEqual({ id: "web", title: "Web frontend" });
  });

  test("config holds every key, and none that nothing reads", () => {
    expect(config(templates.config).warnings).toEqual([]);
    const keys =
      "version worktree_dir project_dir ticket_dir worktree_retention evidence_retention delete_missing_after scheduler max_parallel_tasks stall_report_after stall_after cancel_grace running_hours agent default_target targets cmd model effort sources tickets exec flow test_cmd merge target ids ticket_prefix project_prefix defaults";
    for (const key of keys.split(" ")) expect(templates.config).toMatch(new RegExp(`^[# ]*${key}:`, "m"));
    expect(templates.config).toMatch(/^# +test_cmd:/m);
  });

  test("config writes the defaults", () => {
    const { agent: _, ...loaded } = config(templates.config).config;
    const { agent: __, ...bare } = config("version: 1").config;
    expect(loaded).toEqual(bare);
  });

  test("config with its comments uncommented still loads", () => {
    const lines = templates.config.split("\n");
    const from = lines.indexOf("version: 1");
    const live = lines.map((line, at) =>
      at > from ? line.replace(/^( *)# (?=(?: *[a-z_]+:(?: [[{a-z]|$)))/, "$1") : line,
    );
    const { config: loaded, warnings } = config(live.join("\n"));
    expect(warnings).toEqual([]);
    expect(loaded).toMatchObject({ testCmd: ["make", "test"], mergeTarget: "main" });
    expect(loaded.ticketSource).toEqual(["./scripts/tickets", "--json"]);
    expect(loaded.runningHours?.start).toBe("22:00");
  });

  test("config and flow load together", () => {
    const bytes = new Map([
      ["/r/.agents/sloop/config.yaml", templates.config],
      ["/r/.agents/sloop/flows/f.yaml", templates.flow],
    ]);
    const read = (path: string) => (bytes.has(path) ? new TextEncoder().encode(bytes.get(path)) : null);
    const loaded = loadAll({ read, list: () => ["f.yaml"] }, "/r", null);
    expect([...loaded.flows.keys()]).toEqual(["f", "default"]);
    expect(loaded.warnings).toEqual([]);
  });
});

describe("scaffold", () => {
  test("its files, in the order they are reported", () => {
    expect([...written.keys()]).toEqual(
      ["config.yaml", "projects/default.md", "flows/default.yaml", "flows/train.yaml", "prompts/review.md"].map(
        (name) => `.agents/sloop/${name}`,
      ),
    );
  });

  test("config", () => {
    const { config: loaded, warnings } = config(text("config.yaml"));
    expect(warnings).toEqual([]);
    expect<Config>({ ...loaded, agent: null }).toEqual(config("version: 1").config);
    expect(loaded.agent?.defaultTarget).toBe("claude");
    expect(loaded.agent?.targets["claude"]).toEqual({
      name: "claude",
      model: "opus",
      effort: "high",
      cmd: ["claude", "--print", "--model", "{model}", "--effort", "{effort}", "{prompt}"],
    });
    expect(loaded.agent?.targets["codex"]?.cmd).toContain('model_reasoning_effort="{effort}"');
    expect(loaded.agent?.targets["opencode"]).toMatchObject({ model: null, effort: null });
    for (const line of ["worktree_dir: .worktrees", "worktree_retention: 7d", "stall_after: 2h"]) {
      expect(text("config.yaml")).toContain(line);
    }
    for (const name of ["claude", "codex", "opencode"])
      expect(text("config.yaml")).toMatch(new RegExp(`^ +- ${name}$`, "m"));
    const root = parseYaml(text("config.yaml"));
    expect(unknownKeys("c", root.ok ? root.root : null)).toBeNull();
  });

  test("default flow", () => {
    const content = text("flows/default.yaml");
    const { stages } = parseFlow("default", "/d.yaml", content);
    expect(stages.map(({ name, resultCheck }) => [name, resultCheck.kind])).toEqual([
      ["build", "commits"],
      ["review", "reported"],
      ["merge", "none"],
    ]);
    const [, review] = stages;
    const cmd = review?.action.kind === "exec" ? review.action.cmd : [];
    expect(cmd.slice(0, 5)).toEqual(["claude", "--print", "--allowedTools", "Bash", "--"]);
    expect(cmd).toHaveLength(6);
    expect(cmd[5]).toContain(".agents/sloop/prompts/review.md");
    for (const part of ["action: agent", "exec:", "builtin: merge"]) expect(content).toContain(part);
  });

  test("train flow", () => {
    const content = text("flows/train.yaml");
    expect(parseFlow("train", "/t.yaml", content).stages.map((stage) => stage.failAction)).toEqual([
      { kind: "fail" },
      { kind: "return_to", stage: "build", attempts: 1 },
      { kind: "return_to", stage: "build", attempts: 1 },
      { kind: "return_to", stage: "sync", attempts: 10 },
    ]);
    for (const part of ["builtin: sync", "ff_only: true", "return_to: sync", '["bun","test"]']) {
      expect(content).toContain(part);
    }
    expect(content.indexOf("# - name: review")).toBeLessThan(content.indexOf("- name: sync"));
  });

  test.each([[["just", "test all"]], [["sh", "-c", 'a && "b" $& $1']], [["true", "5", "é\u2028"]]])(
    "the test command %j reads back",
    (command) => {
      const content = scaffold(command)[3]?.text ?? "";
      expect(content).toContain(JSON.stringify(command));
      expect(parseFlow("train", "/t.yaml", content).stages[2]?.action).toEqual({ kind: "exec", cmd: command });
    },
  );

  test("project and review prompt", () => {
    expect(parseProject(text("projects/default.md"), "p.md")).toEqual({ id: "default", title: "Default" });
    for (const part of [
      "sloop verdict pass --reason",
      "sloop verdict fail --reason",
      "exactly once",
      "no verdict reported",
    ]) {
      expect(text("prompts/review.md")).toContain(part);
    }
  });
});

describe("flow.test_cmd read leniently", () => {
  test.each<[string, string, string[] | null]>([
    ["a good file", "version: 1\nflow: {test_cmd: [just, test all]}", ["just", "test all"]],
    ["a wrong version", "version: 9\nscheduler: 3\nflow:\n  test_cmd: [x]", ["x"]],
    ["scalars as text", "flow: {test_cmd: [true, 5]}", ["true", "5"]],
    ["an unparsable file", "agent: [oops\nflow:\n  # why\n  test_cmd:\n  - a\n  - b\nids: }", ["a", "b"]],
    ["CRLF and BOM", "\ufeffversion: 1\r\nx: [\r\nflow:\r\n  test_cmd: [x]\r\n", ["x"]],
    ["duplicate keys elsewhere", "a: 1\na: 2\nflow: {test_cmd: [x]}", ["x"]],
    ["no flow", "version: 1", null],
    ["empty", "flow: {test_cmd: []}", null],
    ["blank command", "flow: {test_cmd: ['']}", null],
    ["not a list", "flow: {test_cmd: bun test}", null],
    ["not strings", "flow: {test_cmd: [a, [b]]}", null],
    ["broken itself", "x: [\nflow: {test_cmd: [x", null],
    ["an empty file", "", null],
  ])("%s", (_name, content, expected) => {
    expect(rawTestCommand(content)).toEqual(expected as string[]);
  });
});

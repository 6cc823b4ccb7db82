// Configuration and flows together, from files in memory.

import { describe, expect, test } from "bun:test";
import { builtInFlow } from "../../src/core/flow.ts";
import { type FileSource, loadAll } from "../../src/parse/load.ts";
import { refusal } from "./refusal.ts";

const root = "/repo";
const configFile = `${root}/.agents/sloop/config.yaml`;
const flow = (name: string) => `${root}/.agents/sloop/flows/${name}`;
const agent = "agent: {default_target: t, targets: {t: {cmd: ['{prompt}']}, m: {cmd: [x, '{model}', '{prompt}']}}}\n";
const panel = (seat: string) =>
  `- name: p\n  action: { exec: [x] }\n  result_check: { panel: { prompt: p, reviewers: [{ target: t }, ${seat}] } }\n`;

function files(contents: Record<string, string | Uint8Array>): FileSource {
  const encoder = new TextEncoder();
  const entries = new Map(Object.entries(contents));
  return {
    read: (path) => {
      const content = entries.get(path);
      return content === undefined ? null : typeof content === "string" ? encoder.encode(content) : content;
    },
    list: (directory) => {
      const inside = [...entries.keys()].filter((path) => path.startsWith(`${directory}/`));
      const names = inside.map((path) => path.slice(directory.length + 1).split("/")[0] as string);
      return names.length === 0 ? null : [...new Set(names)].reverse();
    },
  };
}

const load = (contents: Record<string, string | Uint8Array>, home: string | null = null) =>
  loadAll(files({ [configFile]: "version: 1\n", ...contents }), root, home);
const broken = "- { name: a }\n";
const good = "- { name: a, action: agent }\n";

describe("flows", () => {
  test("none: the built-in one", () => {
    expect([...load({}).flows]).toEqual([["default", builtInFlow]]);
  });

  test("a file replaces the built-in one; names are stems", () => {
    const { flows } = load({ [flow("default.yaml")]: good, [flow("release 1.yaml")]: good });
    expect([...flows.keys()]).toEqual(["default", "release 1"]);
    expect(flows.get("default")?.stages.map((stage) => stage.name)).toEqual(["a"]);
  });

  test("C65: other extensions and nested files are not read, .yml is warned about", () => {
    const { flows, warnings } = load({
      [flow("a.yml")]: broken,
      [flow("b.YAML")]: broken,
      [flow(".yaml")]: broken,
      [flow("deep/c.yaml")]: broken,
    });
    expect([...flows.keys()]).toEqual(["default"]);
    expect(warnings).toEqual([`${flow("a.yml")}: not read; flow files end in \`.yaml\``]);
  });

  test("C66: one bad file fails the load, the first in name order", () => {
    const message = refusal(() => load({ [flow("z.yaml")]: broken, [flow("b.yaml")]: broken, [flow("a.yaml")]: good }));
    expect(message).toStartWith(`${flow("b.yaml")}: `);
  });

  test("invalid UTF-8 names the file", () => {
    expect(refusal(() => load({ [flow("a.yaml")]: new Uint8Array([0xff]) }))).toStartWith(`${flow("a.yaml")}: `);
    expect(refusal(() => load({ [configFile]: new Uint8Array([0xff]) }))).toStartWith(`${configFile}: `);
  });

  test("A54: test_cmd and a stage named test", () => {
    const contents = {
      [configFile]: "version: 1\nflow: {test_cmd: [x]}\n",
      [flow("ci.yaml")]: good.replace("a,", "test,"),
    };
    const message = refusal(() => load(contents));
    expect(message).toStartWith(`${configFile}: `);
    for (const part of ["flow.test_cmd conflicts", "stage `test`", "`ci`"]) expect(message).toContain(part);
  });

  test("C57: an unknown panel target", () => {
    const contents = { [configFile]: `version: 1\n${agent}`, [flow("f.yaml")]: panel("{ target: nobody }") };
    const message = refusal(() => load(contents));
    expect(message).toStartWith(`${flow("f.yaml")}: `);
    for (const part of ["stage `p`", "panel reviewer", "unknown agent target `nobody`"])
      expect(message).toContain(part);
  });

  test("C57 without an agent section, and with a name every object has", () => {
    expect(refusal(() => load({ [flow("f.yaml")]: panel("{ target: t }") }))).toContain("unknown agent target `t`");
    const contents = { [configFile]: `version: 1\n${agent}`, [flow("f.yaml")]: panel("{ target: toString }") };
    expect(refusal(() => load(contents))).toContain("unknown agent target `toString`");
  });

  test("a seat without a value for a placeholder is warned about", () => {
    const contents = { [configFile]: `version: 1\n${agent}`, [flow("f.yaml")]: panel("{ target: m }") };
    const { warnings } = load(contents);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("panel reviewer 2: agent target `m` does not specify `model`");
    const given = { ...contents, [flow("f.yaml")]: panel("{ target: m, model: x }") };
    expect(load(given).warnings).toEqual([]);
  });
});

describe("order", () => {
  test("flows come after ids and before the retentions", () => {
    const bad = (line: string) => ({ [configFile]: `version: 1\n${line}\n`, [flow("f.yaml")]: broken });
    expect(refusal(() => load(bad("ids: {project_prefix: '-'}")))).toStartWith(configFile);
    expect(refusal(() => load(bad("delete_missing_after: x")))).toStartWith(flow("f.yaml"));
  });

  test("the user's file comes first, even before the repository's is read", () => {
    const user = { "/home/me/.config/sloop/config.yaml": "version: 2" };
    const message = refusal(() => loadAll(files({ ...user, [configFile]: new Uint8Array([0xff]) }), root, "/home/me"));
    expect(message).toStartWith("/home/me/.config/sloop/config.yaml: ");
  });
});

describe("the user's file", () => {
  const user = { "/home/me/.config/sloop/config.yaml": "version: 1\ndefaults: {scheduler: {max_parallel_tasks: 4}}" };

  test("is read below an absolute HOME only", () => {
    expect(load(user, "/home/me").config.maxParallelTasks).toBe(4);
    expect(load(user, null).config.maxParallelTasks).toBe(1);
    expect(load({ "me/.config/sloop/config.yaml": "version: 2" }, "me").config.maxParallelTasks).toBe(1);
  });
});

test("a missing or unreadable configuration names the file", () => {
  expect(refusal(() => loadAll(files({}), root, null))).toStartWith(`${configFile}: `);
  const denied: FileSource = {
    read: () => {
      throw new Error("permission denied");
    },
    list: () => null,
  };
  expect(refusal(() => loadAll(denied, root, null))).toBe(`${configFile}: cannot be read: permission denied`);
});

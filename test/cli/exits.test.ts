// The table of exit codes (cli.md 6), row by row, each in both modes: which stream speaks, and with which code.

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { bin, command } from "../support/bin.ts";
import { newPopulated } from "./populated.ts";

setDefaultTimeout(60_000);

const scene = await newPopulated();
afterAll(async () => await scene[Symbol.asyncDispose]());
const { merged, failed, review, held, ready, blocked } = scene.ids;
scene.ticket("fresh");
const ticket = (stem: string) => `.agents/sloop/tickets/${stem}.md`;

/** One compact envelope on one line, and nothing else. */
function envelope(text: string): Record<string, unknown> {
  expect(text).toMatch(/^\{"id":(null|"req-[0-9]+(-[0-9]+)?"),"ok":(true|false),"(data|error)":.*\}\n$/);
  return JSON.parse(text) as Record<string, unknown>;
}

async function both(args: string[]) {
  return { human: await scene.sloop(args), json: await scene.sloop(["--json", ...args]) };
}

const succeeds: string[][] = [
  ["daemon"],
  ["pause"],
  ["resume"],
  ["show"],
  ["status"],
  ["show", merged],
  ["show", `${review}-r1`],
  ["show", "default"],
  ["show", "nothing-like-it"],
  ["show", "^TICK-[12]$"],
  ["list"],
  ["list", "--state", "held,failed", "-1"],
  ["list", "--state", "claimed"],
  ["logs", merged],
  ["logs", merged, "--stage", "build#7"],
  ["events"],
  ["events", failed, "--tail", "200"],
  ["hold", held],
  ["ready", ready],
  ["post", ticket("split-table"), "--hold"],
  ["run", failed],
  ["run", blocked],
];

test.each(succeeds)("0: %s %s %s %s", async (...args) => {
  const { human, json } = await both(args);
  expect(human).toMatchObject({ code: 0, stderr: "" });
  expect(human.stdout).toMatch(/[^ \n]\n$/);
  expect(human.stdout).not.toContain("\x1b");
  expect(human.stdout).not.toMatch(/ \n/);
  expect(json).toMatchObject({ code: 0, stderr: "" });
  expect(envelope(json.stdout)).toMatchObject({ ok: true });
});

const followsTo: [number, string[]][] = [
  [0, ["wait", merged]],
  [0, ["show", merged, "-f", "-q"]],
  [0, ["watch", merged, "--tail", "0"]],
  [1, ["wait", review]],
  [1, ["wait", `${review}-r1`]],
  [1, ["show", review, "-fq"]],
  [1, ["watch", review, "--tail", "0"]],
];

test.each(followsTo)("%i, and silent in both modes: %p", async (code, args) => {
  const { human, json } = await both(args);
  expect(human).toEqual({ code, stdout: "", stderr: "" });
  expect(json).toEqual({ code, stdout: "", stderr: "" });
});

test("logs --follow is 0 whatever the outcome was, one envelope per page", async () => {
  for (const id of [merged, review]) {
    const { human, json } = await both(["logs", id, "--follow"]);
    expect(human).toMatchObject({ code: 0, stderr: "" });
    expect(json).toMatchObject({ code: 0, stderr: "" });
    for (const line of json.stdout.trimEnd().split("\n")) expect(envelope(`${line}\n`)).toMatchObject({ ok: true });
  }
});

const refused: [number, string, string[]][] = [
  [1, "not_found", ["hold", "TICK-99"]],
  [1, "not_found", ["ready", "TICK-99"]],
  [1, "not_found", ["retry", "TICK-99"]],
  [1, "not_found", ["run", "TICK-99"]],
  [1, "not_found", ["run", "--project", "nope"]],
  [1, "not_found", ["cancel", "TICK-99"]],
  [1, "not_found", ["logs", "TICK-99"]],
  [1, "not_found", ["wait", "TICK-99"]],
  [1, "not_found", ["wait", held]],
  [1, "not_found", ["list", "--project", "nope"]],
  [1, "not_found", ["post", ticket("nope")]],
  [1, "not_found", ["post", ticket("fresh"), "--flow", "nope"]],
  [1, "conflict", ["retry", merged]],
  [1, "conflict", ["hold", merged]],
  [1, "conflict", ["ready", review]],
  [1, "conflict", ["run", held]],
  [1, "conflict", ["run", merged]],
  [1, "conflict", ["run", review]],
  [1, "conflict", ["cancel", `${merged}-r1`]],
  [1, "invalid_arguments", ["logs", merged, "--stage", "nope"]],
  [1, "invalid_arguments", ["logs", merged, "--stage", "build#x"]],
  [1, "invalid_arguments", ["events", "["]],
  [1, "not_found", ["run", "--only", "TICK-99"]],
  [2, "invalid_arguments", ["show", "["]],
  [2, "invalid_arguments", ["show", "[", "-f"]],
  [2, "invalid_arguments", ["show", "[", "-f", "-q"]],
  [2, "invalid_arguments", ["watch", "["]],
  [2, "invalid_arguments", ["wait", review, "--timeout", "nope"]],
  [2, "invalid_arguments", ["watch", ready, "--tail", "0", "--timeout", "0"]],
  [2, "invalid_arguments", ["show", ready, "-f", "-q", "--timeout", "50ms"]],
  [2, "invalid_arguments", ["events", "nothing-like-it", "--follow", "--timeout", "50ms"]],
];

test.each(refused)("%i %s: %p", async (code, error, args) => {
  const { human, json } = await both(args);
  expect({ args, ...human }).toMatchObject({ code, stdout: "" });
  expect(human.stderr).toMatch(new RegExp(`^(note: .*\\n( {2}hint: .*\\n)?)?error \\(${error}\\): `));
  expect(json).toMatchObject({ code, stdout: "" });
  expect(json.stderr).toContain(`"code":"${error}"`);
  expect(envelope(json.stderr)).toMatchObject({ ok: false, error: { code: error } });
  expect(Object.keys(JSON.parse(json.stderr).error)).toEqual(["code", "message", "details"]);
});

test("a paused scheduler says so and nothing else", async () => {
  expect(await scene.sloop(["pause"])).toEqual({ code: 0, stdout: "scheduler paused\n", stderr: "" });
  expect(await scene.sloop(["resume"])).toEqual({ code: 0, stdout: "scheduler resumed\n", stderr: "" });
});

test("what was refused leaves a way out that exists", async () => {
  const hints: [string[], RegExp][] = [
    [["run", held], new RegExp(`hint: \`sloop ready ${held}\``)],
    [["hold", review], new RegExp(`hint: .*\`sloop show ${review}\``)],
    [["hold", "TICK-33"], /hint: did you mean `TICK-[0-9]+`/],
    [["show", "["], /hint: `sloop help refs`/],
    [["brief"], /hint: brief, note and verdict are how an agent/],
  ];
  for (const [args, hint] of hints) expect((await scene.sloop(args)).stderr).toMatch(hint);
});

test("--json is read before the command, after it and after its positionals, and twice", async () => {
  const placed = [
    ["--json", "show", merged],
    ["show", "--json", merged],
    ["show", merged, "--json"],
    ["--json", "show", merged, "--json"],
  ];
  for (const args of placed) expect(envelope((await scene.sloop(args)).stdout)).toMatchObject({ ok: true });
  const wrong = await scene.sloop(["show", merged, "--json=x"]);
  expect(wrong).toMatchObject({ code: 2, stdout: "" });
  expect(wrong.stderr).toContain("takes no value");
});

test("a bad pattern is named, and an unknown one is an empty list", async () => {
  expect((await scene.sloop(["show", "["])).stderr).toContain("invalid ticket pattern `[`");
  expect((await scene.sloop(["show", "nothing-like-it"])).stdout).toBe("no tickets\n");
  expect((await scene.sloop(["list", "--state", "claimed"])).stdout).toBe("no tickets match\n");
});

test("rows say why each is not running, newest first, the states aligned", async () => {
  // Other tests here queue runs of the failed and the blocked one; neither can start.
  expect((await scene.sloop(["list"])).stdout).toBe(`TICK-6  blocked       paginate-log  — blocked by unmerged TICK-5
TICK-5  ready         rotate-keys  — ready but no queued trigger; enqueue with \`sloop run\`
TICK-4  held          split-table  — held by operator; release with \`sloop ready\`
TICK-3  needs_review  trim-image
TICK-2  failed        fix-upload  — failed after 1 attempt(s); requeue with \`sloop retry\`
TICK-1  merged        drop-header
`);
});

test("-N is a limit for show and list alone, and only in digits", async () => {
  const rows = async (...args: string[]) => (await scene.sloop(args)).stdout.trimEnd().split("\n").length;
  expect(await rows("list", "-2")).toBe(2);
  expect(await rows("--color", "never", "list", "-2")).toBe(2);
  expect(await rows("show", "TICK-.", "-3")).toBe(3);
  for (const args of [
    ["show", "-0"],
    ["show", "-5x"],
    ["list", "--limit", "abc"],
    ["events", "-5"],
    ["note", "-5"],
  ]) {
    expect({ args, ...(await scene.sloop(args)) }).toMatchObject({ code: 2, stdout: "" });
  }
});

test("several commands written to one file stand there one after the other", async () => {
  const file = `${scene.outside}/all.txt`;
  const script = '"$1" list > "$2"; "$1" pause >> "$2"; "$1" events --tail 3 >> "$2"; "$1" resume >> "$2"';
  await command(["sh", "-c", script, "sh", await bin(), file], { cwd: scene.root, env: scene.env });
  const lines = (await Bun.file(file).text()).split("\n");
  expect(lines.filter((line) => /^TICK-[0-9]+ /.test(line))).toHaveLength(6);
  expect(lines).toContain("scheduler paused");
  expect(lines.at(-2)).toBe("scheduler resumed");
  const followed = `${scene.outside}/followed.txt`;
  const follow = '"$1" watch "$2" > "$3"; "$1" --json watch "$2" >> "$3"';
  await command(["sh", "-c", follow, "sh", await bin(), merged, followed], { cwd: scene.root, env: scene.env });
  expect((await Bun.file(followed).text()).trimEnd().split("\n")).toHaveLength(6);
});

test("a configuration that is broken by now exits 1 everywhere, nothing being done or shown", async () => {
  const path = ".agents/sloop/config.yaml";
  const before = scene.read(path);
  const broken = ["version: 1\nagent: [\n", "version: 2\n", "version: 1\nworktree_dir: ../out\n"];
  const asked: string[][] = [["show"], ["show", "["], ["hold", ready], ["stop"], ["logs", merged], ["wait", merged]];
  for (const text of broken) {
    scene.write(path, text);
    for (const args of asked) {
      const ran = await scene.sloop(args);
      expect({ text, args, ...ran }).toMatchObject({ code: 1, stdout: "" });
      expect(ran.stderr).toStartWith(`error (invalid_arguments): ${scene.root}/${path}`);
      expect(ran.stderr).toEndWith("\n  hint: `sloop template config` prints a working one\n");
    }
  }
  scene.write(path, before);
  expect(await scene.value(ready)).toMatchObject({ state: "ready" });
});

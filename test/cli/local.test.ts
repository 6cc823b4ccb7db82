// The binary without a daemon: help, version, usage errors, templates, streams, exit codes.

import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { bin, command, projectRoot, sloop } from "../support/bin.ts";
import { newWorld } from "../support/repo.ts";

setDefaultTimeout(60_000);

const nowhere = { cwd: "/", env: { HOME: "/nonexistent", XDG_STATE_HOME: undefined, XDG_RUNTIME_DIR: undefined } };
const run = (...args: string[]) => sloop(args, nowhere);

const compactOnly = /^ {2}(run|retry|pause|cancel|status|watch|wait|reindex|brief|note)\b/m;

test("compact help: the everyday commands stand out, the others are named", async () => {
  const help = await run("--help");
  expect(help).toMatchObject({ code: 0, stderr: "" });
  for (const name of ["init", "daemon", "post", "show", "logs"]) expect(help.stdout).toContain(`  ${name} `);
  expect(help.stdout).not.toMatch(compactOnly);
  expect(help.stdout).toContain("Usage: sloop");
  expect(help.stdout).toContain("sloop --help --all");
  expect(help.stdout).not.toContain("Ticket states:");
  expect(help.stdout).not.toMatch(/ $/m);
  for (const args of [[], ["-h"], ["help"]]) expect((await run(...args)).stdout).toBe(help.stdout);
});

test("full help: every command, every state", async () => {
  const full = await run("--help", "--all");
  expect(full.code).toBe(0);
  expect(full.stdout).toContain("Ticket states:");
  for (const state of ["ready", "held", "blocked", "claimed", "merged", "failed", "needs_review"]) {
    expect(full.stdout).toContain(`\n  ${state} `);
  }
  expect(full.stdout).toContain("Terminal: the run could not be merged; inspect manually.");
  for (const line of [
    "  completions  shell completion script",
    "  daemon restart  finish runs, then reload the binary",
    "  doctor    find what would stop a run here",
    "  reindex         rebuild state from files and Git",
  ]) {
    expect(full.stdout).toContain(`\n${line}\n`);
  }
  expect((await run("help", "--all")).stdout).toBe(full.stdout);
  expect((await run("--all", "--help")).stdout).toBe(full.stdout);
});

test("long help of show and of bare template", async () => {
  const show = await run("show", "--help");
  for (const text of [
    "resolved in this order",
    "exact match always wins",
    "run-id prefix",
    "case-insensitively",
    "regex metacharacters",
    "EXIT CODES",
    "sloop show TICK-12 --follow",
    "sloop show TICK-12 -f -q",
  ]) {
    expect(show.stdout).toContain(text);
  }
  const template = await run("template");
  expect(template.code).toBe(0);
  for (const text of ["Usage: sloop template", "ticket:", "flow:", "project:", "config:"]) {
    expect(template.stdout).toContain(text);
  }
  expect((await run("post", "--help")).stdout).toMatch(/sloop template ticket[\s\S]*sloop template flow/);
  const logs = (await run("logs", "--help")).stdout;
  expect(logs).toMatch(/chunk, not a line[\s\S]*64[\s\S]*#N/);
});

test("every command and topic has a page", async () => {
  const full = (await run("--help", "--all")).stdout;
  const commands = [...full.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map((match) => match[1]!);
  const topics = ["tickets", "flows", "triggers", "states", "refs", "exit-codes", "env", "paths", "json", "topics"];
  const states = new Set(["ready", "held", "blocked", "claimed", "merged", "failed"]);
  const names = [...new Set([...commands.filter((name) => !states.has(name) || name === "ready"), ...topics])];
  expect(names.length).toBeGreaterThan(30);
  const pages = await Promise.all(names.map((name) => run("help", name)));
  pages.forEach((page, index) => {
    expect({ name: names[index], code: page.code, empty: page.stdout.trim() === "" }).toMatchObject({
      code: 0,
      empty: false,
    });
  });
  for (const [index, { stdout }] of pages.entries()) {
    if (topics.includes(names[index]!)) continue;
    const examples = /\nExamples:\n((?: {2}.*\n)+)$/.exec(stdout)?.[1] ?? "";
    expect({ name: names[index], enough: examples.split("\n").length > 2 }).toEqual({
      name: names[index],
      enough: true,
    });
  }
  const unknown = await run("help", "stats");
  expect(unknown).toMatchObject({ code: 2, stdout: "" });
  expect(unknown.stderr).toContain("did you mean `states`");
});

test("help, version and templates under --json are envelopes with a null id", async () => {
  const help = JSON.parse((await run("--json")).stdout);
  expect(help).toMatchObject({ id: null, ok: true, data: { kind: "help" } });
  expect(`${help.data.text}\n`).toBe((await run()).stdout);
  expect((await run("--version")).stdout).toBe(`sloop ${packageJson.version}\n`);
  expect((await run("-V", "--json")).stdout).toBe(
    `{"id":null,"ok":true,"data":{"kind":"version","version":"${packageJson.version}"}}\n`,
  );
  const template = JSON.parse((await run("--json", "template", "flow")).stdout);
  expect(template.data).toEqual({ kind: "flow", template: (await run("template", "flow")).stdout });
});

test.each(["ticket", "flow", "project", "config"])("template %s is the file, byte for byte", async (kind) => {
  const name = kind === "ticket" || kind === "project" ? `${kind}.md` : `${kind}.yaml`;
  const printed = await run("template", kind);
  expect(printed).toMatchObject({ code: 0, stderr: "" });
  expect(printed.stdout).toBe(await Bun.file(join(projectRoot, "templates", name)).text());
});

test("usage errors: standard error, exit 2, before any repository is looked for", async () => {
  const wrong = await run("shwo");
  expect(wrong).toEqual({
    code: 2,
    stdout: "",
    stderr: `error (invalid_arguments): unknown command \`shwo\`

  tip: did you mean \`show\`?

Usage: sloop [OPTIONS] [COMMAND]

For more information, try '--help'.
`,
  });
  const json = await run("show", "--quiet", "--json");
  expect(json).toMatchObject({ code: 2, stdout: "" });
  expect(json.stderr).toContain('"code":"invalid_arguments"');
  const envelope = JSON.parse(json.stderr);
  expect(Object.keys(envelope)).toEqual(["id", "ok", "error"]);
  expect(envelope).toMatchObject({ id: null, ok: false, error: { details: {} } });
  expect(json.stderr.split("\n")).toHaveLength(2);
});

test("a path that is not UTF-8 is a usage error", async () => {
  const ran = await command(["sh", "-c", `"$1" post "$(printf 'a\\377b')"`, "sh", await bin()], nowhere);
  expect(ran).toMatchObject({ code: 2, stdout: "" });
  expect(ran.stderr).toContain("not valid UTF-8");
});

test("outside a repository every operator command says how to make one", async () => {
  for (const name of ["show", "status", "list", "daemon", "stop", "pause", "events"]) {
    const ran = await run(name);
    expect({ name, ...ran }).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toStartWith("error (invalid_arguments): no `.agents/sloop/config.yaml` in / ");
    expect(ran.stderr).toEndWith("\n  hint: `sloop init` sets this directory up\n");
  }
  const json = JSON.parse((await run("--json", "show")).stderr);
  expect(Object.keys(json.error)).toEqual(["code", "message", "details"]);
});

test("a text larger than a pipe arrives whole, and a full disk ends quietly", async () => {
  const sloopBin = await bin();
  const slow = await command([
    "sh",
    "-c",
    `for i in 1 2 3; do "$1" help --all; done | { sleep 0.2; wc -c; }`,
    "sh",
    sloopBin,
  ]);
  expect(Number(slow.stdout)).toBe(3 * (await run("help", "--all")).stdout.length);
  const full = await command(["sh", "-c", `"$1" template config >/dev/full`, "sh", sloopBin]);
  expect(full).toEqual({ code: 1, stdout: "", stderr: "" });
});

test("a reader that has left is no error to talk about: exit 1, no word", async () => {
  await using world = await newWorld({ git: "none" });
  const script = `
    ( until [ -e gone ]; do sleep 0.01; done; "$1" template config 2>errors; echo $? >code ) |
      { exec 0<&-; : >gone; until [ -s code ]; do sleep 0.01; done; }`;
  await command(["sh", "-c", script, "sh", await bin()], { cwd: world.root });
  expect(world.read("code")).toBe("1\n");
  expect(world.read("errors")).toBe("");
});

test("neither .env nor bunfig.toml of the directory reaches the program", async () => {
  await using world = await newWorld({ git: "none" });
  world.write("bunfig.toml", 'preload = ["./evil.ts"]\n');
  world.write("evil.ts", 'require("node:fs").writeFileSync("evil-ran", "");\n');
  world.write(".env", "NO_COLOR=1\nSLOOP_TOKEN=x\nSLOOP_SOCKET=/x\n");
  const ran = await world.sloop(["show"]);
  expect(ran.stderr).toStartWith("error (invalid_arguments): no `.agents/sloop/config.yaml`");
  expect(await Bun.file(join(world.root, "evil-ran")).exists()).toBe(false);
});

// `sloop completions`: the scripts in the real shells, and the ids they ask for.

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { commands } from "../../src/cli/commands.ts";
import { bin, command, sloop } from "../support/bin.ts";
import { newWorld, processesIn } from "../support/repo.ts";
import { newScene } from "../support/scene.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(60_000);

const scene = await newScene({ flows: { careful: "stages:\n  - { name: build, action: agent }\n" } });
afterAll(async () => await scene[Symbol.asyncDispose]());
await scene.post("one", "", ["--manual"]);
await scene.post("two", "", ["--hold"]);
/** On PATH as `sloop`: the binary, but ids come at once, since how long a shell waits for them must not decide a test. */
const folder = join(scene.dir, "bin");
mkdirSync(folder);
writeFileSync(
  join(folder, "sloop"),
  `#!/bin/sh
case "$*" in
"completions refs tickets") printf 'TICK-2\\nTICK-1\\n' ;;
"completions refs runs") ;;
"completions refs projects") echo default ;;
"completions refs flows") printf 'careful\\ndefault\\n' ;;
*) exec '${await bin()}' "$@" ;;
esac
`,
  { mode: 0o755 },
);
const shellEnv = { ...scene.env, PATH: `${folder}:${process.env["PATH"]}` };

const refs = async (...args: string[]) => {
  const ran = await scene.sloop(["completions", "refs", ...args]);
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  return ran.stdout.split("\n").slice(0, -1);
};

/** The refs there are: a busy machine may take longer than the 300 ms after which nothing is said. */
const someRefs = async (...args: string[]) =>
  await until(
    async () => {
      const found = await refs(...args);
      return found.length > 0 && found;
    },
    `refs ${args.join(" ")}`,
  );

/** What each line, its last word unfinished, is completed with. `ask` prints one line of words for the arguments it gets. */
const lines: [string, string[] | RegExp][] = [
  ["sloop sho", ["show"]],
  ["sloop --json li", ["list"]],
  ["sloop --color never sta", ["status"]],
  ["sloop show TICK-", ["TICK-2", "TICK-1"]],
  ["sloop wait TICK-1", ["TICK-1"]],
  ["sloop show def", ["default"]],
  ["sloop list --state he", ["held"]],
  ["sloop list --project d", ["default"]],
  ["sloop post --flow c", ["careful"]],
  ["sloop --color a", ["auto", "always"]],
  ["sloop verdict ", ["pass", "fail"]],
  ["sloop template f", ["flow"]],
  ["sloop completions ", ["bash", "zsh", "fish"]],
  ["sloop help ex", ["exit-codes"]],
  ["sloop run --only TICK-2", ["TICK-2"]],
  ["sloop show --fo", ["--follow"]],
  ["sloop note TI", []],
  ["sloop post RE", ["README.md"]],
];

function words(line: string): string[] {
  return line.split(" ");
}

test("bash completes commands, flags, values, ids and files", async () => {
  const script = `eval "$(sloop completions bash)"
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _sloop; echo "\${COMPREPLY[*]}"; }
${lines
  .map(
    ([line]) =>
      `ask ${words(line)
        .map((word) => `'${word}'`)
        .join(" ")}`,
  )
  .join("\n")}
`;
  const ran = await command(["bash", "--norc", "-c", script], { cwd: scene.root, env: shellEnv });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const given = ran.stdout.split("\n").slice(0, -1);
  expect(given.map((line, at) => [lines[at]![0], line])).toEqual(
    lines.map(([line, want]) => [line, (want as string[]).join(" ")]),
  );
});

// Shells that not every machine has are tried where they are; what they are given is checked everywhere, below.
test("zsh and fish take the script and complete the same", async () => {
  const fish = `sloop completions fish | source
${lines.map(([line]) => `echo (complete -C '${line}' | string replace -r '\\t.*' '' | sort)`).join("\n")}
`;
  const zsh = `autoload -U compinit; compinit -u -D; eval "$(sloop completions zsh)"
[ "$_comps[sloop]" = _sloop ] || echo "not registered"
${lines.map(([line]) => `echo $(_sloop_candidates '${words(line).at(-1)}' ${words(line).slice(1, -1).join(" ")} | grep -- '^${words(line).at(-1)}')`).join("\n")}
`;
  const sorted = lines.map(([, want]) => [...(want as string[])].sort().join(" "));
  const scripts: [string, string[]][] = [
    ["fish", ["fish", "--no-config", "-c", fish]],
    ["zsh", ["zsh", "-f", "-c", zsh]],
  ];
  for (const [shell, argv] of scripts) {
    if (Bun.which(shell) === null) continue;
    const ran = await command(argv, { cwd: scene.root, env: shellEnv });
    expect({ shell, ...ran }).toMatchObject({ stderr: "" });
    const given = ran.stdout.split("\n").slice(0, lines.length - 1);
    expect(given.map((line) => line.split(" ").sort().join(" "))).toEqual(sorted.slice(0, -1));
  }
});

test("every script names every command and every flag", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const script = (await sloop(["completions", shell], { cwd: "/" })).stdout;
    for (const { name, options } of commands) {
      expect(script).toContain(name);
      for (const option of options)
        expect(script).toContain(shell === "fish" ? `-l ${option.name}` : `--${option.name}`);
    }
    expect(script).toContain("sloop completions refs");
    const json = JSON.parse((await sloop(["--json", "completions", shell], { cwd: "/" })).stdout);
    expect(json).toEqual({ id: null, ok: true, data: { kind: "completions", shell, script } });
    expect((await sloop(["completions", "--help"])).stdout).toContain(`sloop completions ${shell}`);
  }
});

test("refs: one per line, by prefix", async () => {
  expect(await someRefs("tickets")).toEqual(["TICK-2", "TICK-1"]);
  expect(await someRefs("tickets", "TICK-1")).toEqual(["TICK-1"]);
  expect(await refs("runs")).toEqual([]);
  expect(await someRefs("projects")).toEqual(["default"]);
  expect(await someRefs("flows")).toEqual(["careful", "default"]);
  expect(await refs("flows", "x")).toEqual([]);
});

test("without a daemon, a repository or permission there is nothing, and nothing is started", async () => {
  await using world = await newWorld();
  expect((await world.sloop(["init"])).code).toBe(0);
  const silent = { code: 0, stdout: "", stderr: "" };
  for (const kind of ["tickets", "runs", "projects"]) {
    expect(await world.sloop(["completions", "refs", kind])).toEqual(silent);
  }
  const flows = async () => (await world.sloop(["completions", "refs", "flows"])).stdout;
  expect(await until(flows, "the flows")).toBe("default\ntrain\n");
  expect(processesIn(world.dir)).toEqual([]);
  expect(existsSync(join(world.dir, "state/sloop"))).toBe(false);
  expect(await world.sloop(["completions", "refs", "tickets"], { cwd: "/" })).toEqual(silent);
  world.write(".agents/sloop/config.yaml", "version: [\n");
  expect(await world.sloop(["completions", "refs", "tickets"])).toEqual(silent);
  const inside = { env: { SLOOP_TOKEN: "x" } };
  expect(await scene.sloop(["completions", "refs", "tickets"], inside)).toEqual(silent);
});

test("a daemon that does not answer is given up on", async () => {
  await using world = await newWorld();
  expect((await world.sloop(["init"])).code).toBe(0);
  const paths = (await world.sloop(["help", "paths"])).stdout;
  const socket = /operator socket: (.*)/.exec(paths)![1]!;
  mkdirSync(join(socket, ".."), { recursive: true });
  const mute = Bun.listen({ unix: socket, socket: { data() {} } });
  try {
    expect(await world.sloop(["completions", "refs", "tickets"])).toEqual({ code: 0, stdout: "", stderr: "" });
  } finally {
    mute.stop(true);
  }
});

test.each([
  [["completions"], "the argument `<SHELL>` is missing: one of bash, zsh, fish"],
  [["completions", "tcsh"], "it is not one of bash, zsh, fish"],
  [["completions", "bash", "zsh"], "unexpected argument `zsh`"],
  [["completions", "refs"], "the argument `<KIND>` is missing"],
  [["completions", "refs", "users"], "it is not one of tickets, runs, projects, flows"],
])("%p is a usage error", async (args, message) => {
  const ran = await sloop(args, { cwd: "/" });
  expect(ran).toMatchObject({ code: 2, stdout: "" });
  expect(ran.stderr).toContain(message);
});

test("a flow that is a pipe, a folder or a dead link is not offered", async () => {
  await using other = await newScene({ flows: { real: "stages:\n  - { name: build, action: agent }\n" } });
  const flows = join(other.root, ".agents/sloop/flows");
  expect(Bun.spawnSync(["mkfifo", join(flows, "pipe.yaml")]).exitCode).toBe(0);
  mkdirSync(join(flows, "folder.yaml"));
  symlinkSync("nowhere", join(flows, "dead.yaml"));
  symlinkSync("real.yaml", join(flows, "linked.yaml"));
  const offered = await until(async () => (await other.sloop(["completions", "refs", "flows"])).stdout, "some flows");
  expect(offered).toBe("default\nlinked\nreal\n");
});

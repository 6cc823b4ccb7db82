// What a person at a terminal sees besides the pages: notes on what to do next, progress in one line, harmless text.

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openPty } from "../support/pty.ts";
import { until } from "../support/until.ts";
import { newPopulated } from "./populated.ts";

setDefaultTimeout(60_000);

const scene = await newPopulated();
afterAll(async () => await scene[Symbol.asyncDispose]());
const { merged, failed, review, held, ready, blocked } = scene.ids;

async function seen(args: string[], options: { columns?: number; env?: Record<string, string> } = {}) {
  const pty = await openPty(args, { cwd: scene.root, ...options, env: { ...scene.env, ...options.env } });
  const code = await pty.exited;
  return { code, text: pty.text().replaceAll("\r\n", "\n") };
}

/** The note at the end of what a terminal was shown; null without one. */
async function note(...args: string[]): Promise<string | null> {
  return /\nnote: (.*)\n$/.exec((await seen(args)).text)?.[1] ?? null;
}

test("a ticket's page ends with what a person can do about it", async () => {
  const step = await note("show", review);
  expect(step).toMatch(/^nothing merges this by itself; look at branch `sloop\/TICK-3-a1-[0-9a-f]{8}`/);
  expect(step).toContain(`(its files: ${scene.root}/.worktrees/`);
  expect(step).toMatch(/, and if it is good, `git merge --no-ff sloop\/\S+` on `main`: the daemon notices$/);
  expect(await note("show", `${review}-r1`)).toBe(step);
  expect(await note("show", failed)).toBe(
    `\`sloop logs ${failed}-r1\` shows what was printed; \`sloop retry ${failed}\`, then \`sloop run ${failed}\`, tries again`,
  );
  expect(await note("show", held)).toBe(`\`sloop ready ${held}\` releases it`);
  expect(await note("show", ready)).toBe(`nothing is queued for it; \`sloop run ${ready}\` does that`);
  expect(await note("show", blocked)).toBe(`nothing is queued for it; \`sloop run ${blocked}\` does that`);
  for (const args of [["show", merged], ["show"], ["list"]]) expect(await note(...args)).toBeNull();
});

test("the branch that the note names can be merged, and then the ticket is", async () => {
  const [, command = ""] = /`git (merge [^`]+)`/.exec((await note("show", review))!)!;
  scene.git(...command.split(" "), "--no-edit");
  await until(async () => (await scene.value(review))["state"] === "merged", "the daemon to notice the merge");
});

test("the page itself is the same in a pipe, where nobody is told anything", async () => {
  const piped = await scene.sloop(["show", failed]);
  expect(piped.stderr).toBe("");
  expect((await seen(["show", failed, "--no-color"])).text).toStartWith(piped.stdout);
});

test("a terminal of 40 columns gets the whole of every row, and its own colours", async () => {
  const piped = (await scene.sloop(["list"])).stdout;
  const narrow = (await seen(["list"], { columns: 40 })).text;
  expect(narrow).toContain(`\x1b[31mfailed\x1b[0m`);
  expect(Bun.stripANSI(narrow)).toBe(piped);
  const dashboard = (await seen(["status"], { columns: 40 })).text;
  expect(Bun.stripANSI(dashboard).split("\n").slice(1)).toEqual(
    (await scene.sloop(["status"])).stdout.split("\n").slice(1),
  );
});

test("progress stays on one line of 40 columns, colours and all", async () => {
  const gate = join(scene.outside, "open");
  scene.write(
    ".agents/sloop/flows/long.yaml",
    `stages:
  - { name: build, action: agent }
  - { name: wait-for-somebody-to-open, action: { exec: [sh, -c, 'until [ -e "${gate}" ]; do sleep 0.02; done'] } }
  - { name: merge, action: { builtin: merge } }
`,
  );
  expect((await scene.sloop(["stop"])).code).toBe(0);
  await until(async () => (await scene.sloop(["daemon"])).stdout.startsWith("daemon started"), "a daemon of its own");
  const { ticket } = (await scene.post("long", "flow: long")) as { ticket: { id: string } };
  const pty = await openPty(["wait", ticket.id], { cwd: scene.root, env: scene.env, columns: 40 });
  await pty.shows("build:\x1b[32mok");
  writeFileSync(gate, "");
  expect(await pty.exited).toBe(0);
  const draws = pty.text().split("\r\x1b[2K").slice(1);
  const [last] = draws.splice(-1);
  expect(last).toMatch(new RegExp(`^${ticket.id} merged after [0-9ms]+\r\n$`));
  for (const draw of draws) expect(Bun.stringWidth(draw)).toBeLessThan(40);
  expect(draws.map((draw) => Bun.stripANSI(draw))).toContainEqual(
    expect.stringMatching(new RegExp(`^${ticket.id} {2}claimed {2}build:ok → wait.*… {2}[0-9]+s$`)),
  );
  expect(pty.text()).not.toContain("\\x1b");
});

test("control characters of an agent are shown, not obeyed, 8-bit ones too", async () => {
  const path = scene.ticket("sneaky", "", "red \x1b[31m and \u009b31m and a tab\t.");
  expect((await scene.sloop(["post", path, "--manual"])).code).toBe(0);
  const { text } = await seen(["show", "sneaky"]);
  expect(text).toContain("red \\x1b[31m and \\x9b31m and a tab");
  expect((await scene.sloop(["show", "sneaky"])).stdout).toContain("red \x1b[31m and \u009b31m and a tab\t.");
});

test("a name that names nothing is followed as a pattern, and that is said", async () => {
  const pty = await openPty(["watch", "TICK-33"], { cwd: scene.root, env: scene.env });
  await pty.shows("note: no ticket, run or project is named `TICK-33`; following tickets that will match it, until");
  await pty.shows("hint: `sloop list` shows every ticket");
  pty.write("\x03");
  expect(await pty.exited).toBe(130);
  const matching = await openPty(["watch", "fix", "--tail", "0"], { cwd: scene.root, env: scene.env });
  await matching.shows("note: no ticket, run or project is named `fix`; following every ticket that matches it");
  matching.write("\x03");
  expect(await matching.exited).toBe(130);
});

test("in a pipe that is said on standard error; programs and -q are told nothing", async () => {
  const piped = await scene.sloop(["watch", "TICK-33", "--timeout", "50ms"]);
  expect(piped).toMatchObject({ code: 2, stdout: "" });
  expect(piped.stderr.split("\n")[0]).toBe(
    "note: no ticket, run or project is named `TICK-33`; following tickets that will match it, until interrupted",
  );
  const quiet = await scene.sloop(["show", "TICK-33", "-fq", "--timeout", "50ms"]);
  expect(quiet.stderr).toBe("error (invalid_arguments): timed out following `TICK-33`\n");
});

test("a daemon that is gone is waited for, and that is said once", async () => {
  const pty = await openPty(["watch", "--tail", "0"], { cwd: scene.root, env: scene.env });
  const lines = () => scene.events().filter(({ event }) => event === "request_handled").length;
  const before = lines();
  await until(() => lines() > before + 2, "the follower to have asked");
  expect((await scene.sloop(["stop"])).code).toBe(0);
  await pty.shows("note: the daemon does not answer; trying for 10 s");
  expect((await scene.sloop(["daemon"])).stdout).toStartWith("daemon started");
  const again = scene.daemonPid();
  const asked = lines();
  await until(() => lines() > asked + 2, "the follower to ask the new daemon");
  pty.write("\x03");
  expect(await pty.exited).toBe(130);
  expect(pty.text().match(/does not answer/g)).toHaveLength(1);
  expect(scene.daemonPid()).toBe(again);
  expect(existsSync(join(scene.stateDir(), "daemon.lock"))).toBe(true);
});

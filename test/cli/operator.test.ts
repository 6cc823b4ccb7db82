// The operator commands against a real daemon: replies, words, exit codes, hints.

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { newScene } from "../support/scene.ts";

setDefaultTimeout(60_000);

const scene = await newScene({
  agent:
    'case "$SLOOP_TICKET_ID" in TICK-3) exit 1;; esac; seq 1 100; echo x > "f-$SLOOP_TICKET_ID"; git add -A; git commit -qm work',
});
afterAll(async () => await scene[Symbol.asyncDispose]());

const run = (...args: string[]) => scene.sloop(args);
const json = async (...args: string[]) => {
  const ran = await scene.sloop(["--json", ...args]);
  return { code: ran.code, ...JSON.parse(ran.code === 0 ? ran.stdout : ran.stderr) };
};
const ticket = (stem: string) => `.agents/sloop/tickets/${stem}.md`;

test("post registers, says what it stamped, and what it queued", async () => {
  scene.ticket("one");
  const first = await run("post", ticket("one"), "--manual");
  expect(first.stdout.split("\n")).toEqual([
    `ticket TICK-1 registered from ${ticket("one")} (project default, ready)`,
    expect.stringContaining("commit it"),
    "",
  ]);
  expect(await run("post", ticket("one"), "--hold")).toEqual({
    code: 0,
    stdout: `ticket TICK-1 updated from ${ticket("one")} (project default, ready)\n`,
    stderr: "",
  });
  scene.ticket("two", "blocked_by: [TICK-1]");
  const second = await run("post", ticket("two"));
  expect(second.stdout.split("\n")[2]).toBe("trigger TR1 queued (auto, ticket TICK-2)");
});

test("post finds a file from where it was typed, and from the root", async () => {
  mkdirSync(join(scene.root, "deep"), { recursive: true });
  const up = await scene.sloop(["--json", "post", `../${ticket("one")}`, "--manual"], {
    cwd: join(scene.root, "deep"),
  });
  expect(JSON.parse(up.stdout).data.ticket.id).toBe("TICK-1");
  const fromRoot = await scene.sloop(["post", ticket("one"), "--manual"], { cwd: join(scene.root, "deep") });
  expect(fromRoot.code).toBe(0);
});

test.each([
  ["nope.md", "not_found", "not found"],
  ["../outside.md", "invalid_arguments", "is outside the repository"],
  ["README.md", "invalid_arguments", "is outside the .agents/sloop/tickets directory"],
])("post %s: %s", async (file, code, message) => {
  const ran = await run("post", file.includes("/") || file === "README.md" ? file : ticket("nope"));
  expect(ran).toMatchObject({ code: 1, stdout: "" });
  expect(ran.stderr).toStartWith(`error (${code}): `);
  expect(ran.stderr).toContain(message);
});

test("a bad ticket names every problem and where a good one is to be had", async () => {
  scene.write(ticket("bad"), "---\nname: ''\n---\n");
  const ran = await run("post", ticket("bad"));
  expect(ran.code).toBe(1);
  expect(ran.stderr).toContain("missing or empty `name`; add `name: Your ticket title`");
  expect(ran.stderr).toContain("missing `blocked_by`; add `blocked_by: []`");
  expect(ran.stderr).toContain("empty `body`; add a ticket description");
  expect(ran.stderr).toEndWith("  hint: `sloop template ticket` prints a working one\n");
});

test("rows say why each is not running; filters narrow them", async () => {
  const list = await run("list");
  expect(list.stdout).toBe(
    "TICK-2  blocked  two  — blocked by unmerged TICK-1\n" +
      "TICK-1  ready    one  — ready but no queued trigger; enqueue with `sloop run`\n",
  );
  expect((await run("show", "TICK-.*")).stdout).toBe(list.stdout);
  expect((await run("list", "-1")).stdout).toStartWith("TICK-2");
  expect((await run("list", "--state", "ready")).stdout).toStartWith("TICK-1");
  expect((await run("list", "--state", "merged")).stdout).toBe("no tickets match\n");
  expect(await json("list", "--project", "nope")).toMatchObject({ code: 1, error: { code: "not_found" } });
  expect((await json("list", "-1")).data.tickets).toHaveLength(1);
});

test("a refused reference of show is a usage error; of any other command it is not", async () => {
  expect(await run("show", "[")).toMatchObject({ code: 2, stdout: "" });
  expect((await run("show", "[")).stderr).toContain("invalid ticket pattern `[`");
  expect(await run("watch", "[")).toMatchObject({ code: 2, stdout: "" });
  expect((await run("events", "[")).code).toBe(1);
  expect(await run("show", "no such thing")).toEqual({ code: 0, stdout: "no tickets\n", stderr: "" });
});

test("hold, ready, retry: what moved, and what may not move", async () => {
  expect((await run("hold", "TICK-1")).stdout).toBe("ticket TICK-1: ready -> held\n");
  expect((await json("hold", "TICK-1")).data).toEqual({
    ticket: "TICK-1",
    previous_state: "held",
    state: "held",
    overridden: false,
  });
  const held = await run("run", "TICK-1");
  expect(held.code).toBe(1);
  expect(held.stderr).toMatch(/^error \(conflict\): .*held[\s\S]*sloop ready TICK-1/);
  expect((await run("ready", "TICK-1")).stdout).toBe("ticket TICK-1: held -> ready\n");
  expect(await run("retry", "TICK-1")).toMatchObject({ code: 1, stdout: "" });
  const unknown = await run("hold", "TICK-11");
  expect(unknown.stderr).toBe(
    "error (not_found): ticket `TICK-11` does not exist\n  hint: did you mean `TICK-1` or `TICK-2`?\n",
  );
  expect((await scene.sloop(["hold", "TICK-11", "--json"])).stderr).not.toContain("hint");
});

test("pause and resume", async () => {
  expect((await run("pause")).stdout).toBe("scheduler paused\n");
  expect((await run("status")).stdout).toMatch(/^daemon: pid [0-9]+ paused - 0\/1 agents active\n/);
  expect((await run("list")).stdout).toContain("scheduler is paused; resume with `sloop resume`");
  expect((await run("resume")).stdout).toBe("scheduler resumed\n");
});

test("runs: queue, wait, and what was printed", async () => {
  const none = await run("wait", "TICK-1");
  expect(none).toMatchObject({ code: 1, stdout: "" });
  expect(none.stderr).toContain("has no runs yet");
  expect((await run("run", "TICK-1")).stdout).toMatch(/^trigger TR[0-9]+ queued \(now, ticket TICK-1\)\n$/);
  expect(await scene.wait("TICK-1").catch(() => scene.wait("TICK-1"))).toBe(0);
  expect(await run("wait", "TICK-1-r1")).toEqual({ code: 0, stdout: "", stderr: "" });
  expect((await run("show", "TICK-1")).stdout).toMatch(
    /^TICK-1 {2}one {2}\(merged\)\n[\s\S]*\n {2}TICK-1-r1 {2}merged /,
  );
  const detail = (await run("show", "TICK-1-r1")).stdout;
  expect(detail).toContain("\nagent exit: 0\n");
  expect(detail).toContain("\ntimeline: claimed ");
  expect(detail).toMatch(/\n {2}build {2}passed {3}\S+ {2}\S+ {2}exit 0 {2}verdict from exit_code\n/);
  const logs = await run("logs", "TICK-1");
  expect(logs.stdout).toMatch(/^\[\S+Z\] \[agent:build\] 1\n/);
  expect(logs.stdout.trimEnd().split("\n").at(-1)).toMatch(/\[agent:build\] 100$/);
  expect(await run("logs", "TICK-1", "--follow")).toEqual(logs);
  const stages = await run("logs", "TICK-1", "--stage", "nope");
  expect(stages.code).toBe(1);
  expect(stages.stderr).toContain("`build`");
  expect((await run("post", ticket("one"))).stdout).toContain("no trigger queued: TICK-1 is merged");
});

test("an unknown run names every form a reference may have", async () => {
  for (const args of [
    ["logs", "nope"],
    ["wait", "nope"],
    ["cancel", "nope"],
  ]) {
    const ran = await run(...args);
    expect({ args, ...ran }).toMatchObject({ code: 1, stdout: "" });
    for (const text of ["`TICK-20-r1`", "an alias like", "a ticket id or name", "4 characters", "sloop show"]) {
      expect(ran.stderr).toContain(text);
    }
  }
});

test("followers print the same events and end by how it ended", async () => {
  await scene.wait("TICK-2");
  const shown = await run("show", "TICK-2", "--follow");
  expect(shown.code).toBe(0);
  expect(shown.stdout).toMatch(
    /^\S+Z {2}TICK-2 claimed by TICK-2-r1 \(attempt 1\)\n.*started.*\n.*finished: merged.*\n$/,
  );
  expect(await run("watch", "TICK-2")).toEqual(shown);
  expect(await run("watch", "TICK-2", "--tail", "0")).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await run("show", "TICK-2", "-f", "-q")).toEqual({ code: 0, stdout: "", stderr: "" });
  const bare = (await run("--json", "watch", "TICK-2-r1")).stdout.trimEnd().split("\n");
  expect(bare.map((line) => JSON.parse(line).kind)).toEqual(["run_claimed", "run_started", "run_finished"]);
  const pages = (await run("--json", "logs", "TICK-2", "--follow")).stdout.trimEnd().split("\n");
  expect(JSON.parse(pages[0]!)).toMatchObject({
    ok: true,
    data: { alias: "TICK-2-r1", complete: true, terminal: true },
  });
});

test("what failed ends a follower with 1, and retry says that nothing is queued yet only to a terminal", async () => {
  await scene.post("three");
  expect(await scene.wait("TICK-3")).toBe(1);
  expect((await run("watch", "TICK-3")).code).toBe(1);
  expect((await run("status")).stdout).toMatch(
    /\nattention:\n {2}TICK-3 {2}failed {2}three {2}— failed after 1 attempt\(s\); requeue with `sloop retry`\n/,
  );
  expect(await run("hold", "TICK-3")).toMatchObject({ code: 1 });
  expect((await run("hold", "TICK-3")).stderr).toContain("hint: `sloop retry TICK-3`, then `sloop run TICK-3`");
  expect(await run("retry", "TICK-3")).toEqual({ code: 0, stdout: "ticket TICK-3: failed -> ready\n", stderr: "" });
});

test("events: pages with a way on, bare objects when followed, time runs out with 2", async () => {
  const page = await run("events", "--tail", "5", "--limit", "2");
  const last = page.stdout.trimEnd().split("\n").at(-1)!;
  expect(last).toMatch(/^more: sloop events --after [0-9]+$/);
  const more = await run(...last.split(" ").slice(2));
  expect(more.stdout.split("\n").length).toBeGreaterThanOrEqual(3);
  const followed = await run("--json", "events", "TICK-1", "--follow", "--timeout", "100ms");
  expect(followed.code).toBe(2);
  expect(
    followed.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).kind),
  ).toEqual(["run_claimed", "run_started", "run_finished"]);
  expect(JSON.parse(followed.stderr)).toMatchObject({
    id: null,
    error: { code: "invalid_arguments", message: "timed out following `TICK-1`" },
  });
});

test("time runs out: exit 2, naming what was followed", async () => {
  const dashboard = await run("watch", "--tail", "0", "--timeout", "50ms");
  expect(dashboard).toMatchObject({ code: 2, stdout: "" });
  expect(dashboard.stderr).toBe("error (invalid_arguments): timed out following `dashboard`\n");
});

test("a run that is not live cannot be cancelled", async () => {
  const ran = await run("cancel", "TICK-1-r1");
  expect(ran).toMatchObject({ code: 1, stdout: "" });
  expect(ran.stderr).toMatch(/^error \(conflict\): .*`merged`.*cannot be cancelled/);
});

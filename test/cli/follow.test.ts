// Followers while things happen: a run that ends, one that is cancelled, a daemon that goes away, a terminal that watches.

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openPty } from "../support/pty.ts";
import { newScene } from "../support/scene.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(60_000);

const scene = await newScene({
  agent: `echo begun; : > "$COUNT/begun-$SLOOP_TICKET_ID"; until [ -e "$COUNT/go-$SLOOP_TICKET_ID" ]; do sleep 0.02; done
echo ended; echo x > "f-$SLOOP_TICKET_ID"; git add -A; git commit -qm work`,
  config: "scheduler: { max_parallel_tasks: 4, cancel_grace: 100ms }".replace("100ms", "1s"),
});
afterAll(async () => await scene[Symbol.asyncDispose]());

async function begin(stem: string): Promise<string> {
  const { ticket } = (await scene.post(stem)) as { ticket: { id: string } };
  await until(() => existsSync(join(scene.outside, `begun-${ticket.id}`)), "the agent to begin");
  return ticket.id;
}

const letGo = (id: string) => writeFileSync(join(scene.outside, `go-${id}`), "");

test("everyone who waits hears of the same end; the last event is not lost", async () => {
  const id = await begin("first");
  const all = [
    scene.sloop(["wait", id]),
    scene.sloop(["show", id, "--follow"]),
    scene.sloop(["--json", "watch", `${id}-r1`]),
    scene.sloop(["logs", id, "--follow"]),
    scene.sloop(["wait", `${id}-r1`, "--timeout", "0"]),
  ];
  const timedOut = await all[4]!;
  expect(timedOut).toMatchObject({ code: 2, stdout: "" });
  expect(timedOut.stderr).toContain(`timed out following \`${id}-r1\``);
  letGo(id);
  const [wait, show, watch, logs] = await Promise.all(all);
  expect(wait).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(show!.code).toBe(0);
  expect(show!.stdout).toMatch(/claimed by[\s\S]*started on[\s\S]*finished: merged/);
  expect(
    watch!.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).kind)
      .at(-1),
  ).toBe("run_finished");
  expect(logs!.code).toBe(0);
  expect(logs!.stdout).toMatch(/\] begun\n[\s\S]*\] ended\n/);
});

test("a cancelled run ends its followers with 1, and those of its ticket, which nothing would settle", async () => {
  const id = await begin("second");
  const followers = [scene.sloop(["wait", id]), scene.sloop(["show", `${id}-r1`, "-f", "-q"])];
  const cancel = await scene.sloop(["cancel", id]);
  expect(cancel.stdout).toMatch(new RegExp(`^run ${id}-r1 cancelling\\nworktree preserved at /.*\\n$`));
  for (const ran of await Promise.all(followers)) expect(ran).toEqual({ code: 1, stdout: "", stderr: "" });
});

test("stop refuses while a run is active, and names it", async () => {
  const id = await begin("third");
  const refused = await scene.sloop(["stop"]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toContain(`${id}-r1`);
  expect(refused.stderr).toContain("stop --force");
  expect(refused.stderr).toContain("hint: ");
  letGo(id);
  expect(await scene.wait(id)).toBe(0);
});

test("a follower outlives its daemon's replacement and starts none itself", async () => {
  const id = await begin("fourth");
  const waiting = scene.sloop(["wait", id]);
  await scene.killDaemon();
  const state = scene.daemonPid();
  await scene.data(["daemon"]);
  expect(scene.daemonPid()).not.toBe(state);
  letGo(id);
  expect(await waiting).toEqual({ code: 0, stdout: "", stderr: "" });
});

test("on a terminal wait shows one line that is gone at the end, and says how it ended", async () => {
  const id = await begin("fifth");
  const pty = await openPty(["wait", id], { cwd: scene.root, env: scene.env });
  await pty.shows(`${id}  claimed  build:.. → merge:-  `);
  letGo(id);
  expect(await pty.exited).toBe(0);
  const shown = pty.text();
  expect(shown).toMatch(new RegExp(`\\r\\x1b\\[2K${id} merged after [0-9]+s\\r\\n$`));
  expect(shown.match(/\n/g)).toHaveLength(1);
});

test("Ctrl-C leaves a clean line and exits 130", async () => {
  const id = await begin("sixth");
  const pty = await openPty(["wait", id], { cwd: scene.root, env: scene.env });
  await pty.shows(`${id}  claimed`);
  pty.write("\x03");
  expect(await pty.exited).toBe(130);
  expect(pty.text()).toEndWith("\r\x1b[2K");
  expect(pty.text()).not.toContain("error");
  letGo(id);
  expect(await scene.wait(id)).toBe(0);
});

test("colour: on a terminal, not with NO_COLOR, not in a pipe unless asked for", async () => {
  const seen = async (args: string[], env: Record<string, string | undefined> = {}) => {
    const pty = await openPty(args, { cwd: scene.root, env: { ...scene.env, ...env } });
    await pty.exited;
    return pty.text();
  };
  expect(await seen(["list"])).toContain("\x1b[2mmerged\x1b[0m");
  expect(await seen(["list"], { NO_COLOR: "" })).not.toContain("\x1b");
  expect(await seen(["list", "--no-color"])).not.toContain("\x1b");
  expect(await seen(["--json", "list"])).not.toContain("\x1b");
  expect((await scene.sloop(["list"])).stdout).not.toContain("\x1b");
  const forced = (await scene.sloop(["list", "--color", "always"], { env: { NO_COLOR: "1" } })).stdout;
  expect(forced).toContain("\x1b[2mmerged\x1b[0m");
});

test("after post --manual a terminal is told that nothing is queued", async () => {
  const path = scene.ticket("seventh");
  const pty = await openPty(["post", path, "--manual"], { cwd: scene.root, env: scene.env });
  expect(await pty.exited).toBe(0);
  expect(pty.text()).toMatch(/note: nothing is queued yet; `sloop run TICK-[0-9]+` queues it\r\n$/);
});

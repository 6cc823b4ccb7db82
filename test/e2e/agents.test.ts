// Agents that misbehave: each gives a clear ending, and the daemon goes on.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { newScene } from "../support/scene.ts";
import { until } from "../support/until.ts";

type Row = Record<string, unknown>;

describe("an agent", () => {
  test("whose program does not exist: aborted, backed off, never a spin", async () => {
    await using scene = await newScene();
    scene.write(
      ".agents/sloop/config.yaml",
      'version: 1\nagent: { default_target: x, targets: { x: { cmd: [no-such-agent-program, "{prompt}"] } } }\n',
    );
    await scene.post("first");
    await until(() => scene.query("select 1 from runs where state = 'aborted'").length >= 2, "a second try");
    const runs = scene.query<{ created_at_ms: number }>("select created_at_ms from runs order by rowid");
    expect(runs[1]!.created_at_ms - runs[0]!.created_at_ms).toBeGreaterThanOrEqual(1000);
    const failed = scene.events().find((line) => line.event === "run_launch_failed")!;
    expect(failed.fields!["error"]).toContain("no-such-agent-program");
    await until(async () => {
      const { tickets } = (await scene.data(["list"])) as { tickets: { reason: string | null }[] };
      return /^its launch failed and is tried again at .*no-such-agent-program/.test(tickets[0]?.reason ?? "");
    }, "the reason to be shown");
    expect(scene.git("worktree", "list").split("\n")).toHaveLength(1);
    expect(scene.git("branch", "--list", "sloop/*")).toBe("");
    expect(scene.query("select kind from events order by sequence limit 2")).toEqual([
      { kind: "run_claimed" },
      { kind: "run_started" },
    ]);
    await scene.data(["pause"]);
  }, 60_000);

  test("that backgrounds a child holding its output open does not hang the run", async () => {
    await using scene = await newScene({
      agent: "sleep 311 & setsid sleep 312 & echo w >> w; git add -A; git commit -qm work; echo done",
    });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
    for (const name of ["sleep 311", "sleep 312"]) expect(Bun.spawnSync(["pgrep", "-x", "-f", name]).exitCode).toBe(1);
    expect(scene.events().map((line) => line.event)).toContain("stragglers_killed");
  }, 60_000);

  test("that prints bytes which are no UTF-8: nothing is lost", async () => {
    await using scene = await newScene({ agent: "printf 'a\\377\\376b\\n'; sleep 0.2; printf 'plain\\n'; exit 1" });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(1);
    const [run] = scene.query<{ id: string }>("select id from runs");
    const bytes = scene
      .records(run!.id)
      .map((record) =>
        record["encoding"] === "base64"
          ? Buffer.from(record["data"] as string, "base64")
          : Buffer.from(record["text"] as string),
      );
    expect(Buffer.concat(bytes)).toEqual(Buffer.from([0x61, 0xff, 0xfe, 0x62, 0x0a, ...Buffer.from("plain\n")]));
    expect((await scene.sloop(["logs", "TICK-1"])).stdout).toContain("<binary output>");
  }, 60_000);

  test("gets what the page promises in its environment, and an exec stage gets no token", async () => {
    const flow = `
stages:
  - name: build
    action: agent
  - name: look
    action: { exec: [sh, -c, 'env > OUTSIDE/exec-env; cat > OUTSIDE/exec-stdin'] }
`;
    const agent = `env > "$COUNT/agent-env"; command -v sloop > "$COUNT/which"; cat > "$COUNT/stdin"; tty > "$COUNT/tty"; ps -o pgid= -p $$ > "$COUNT/pgid"; echo $$ >> "$COUNT/pgid"; echo w > w; git add -A; git commit -qm w`;
    await using scene = await newScene({ agent, flows: { default: flow } });
    await scene.data(["post", scene.ticket("first")], { SLOOP_REMOTE: "", BUN_OPTIONS: "--smol" });
    expect(await scene.wait("TICK-1")).toBe(1);
    const read = (name: string) => readFileSync(join(scene.outside, name), "utf8");
    const env = (name: string) =>
      Object.fromEntries(
        read(name)
          .split("\n")
          .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
      );
    const run = await scene.value("TICK-1-r1");
    const agentEnv = env("agent-env");
    expect(agentEnv).toMatchObject({
      SLOOP_RUN_ID: run["id"] as string,
      SLOOP_TICKET_ID: "TICK-1",
      SLOOP_STAGE: "build",
      SLOOP_ATTEMPT: "1",
    });
    expect(agentEnv["SLOOP_TOKEN"]).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(agentEnv["PWD"]).toBe(run["worktree"] as string);
    expect(read("which").trim()).toBe(agentEnv["SLOOP_BIN"]!);
    expect([read("stdin"), read("exec-stdin"), read("tty").trim()]).toEqual(["", "", "not a tty"]);
    const [group, pid] = read("pgid")
      .split("\n")
      .map((line) => line.trim());
    expect(group).toBe(pid!);
    for (const name of ["BUN_OPTIONS", "SLOOP_REMOTE"]) expect(agentEnv[name]).toBeUndefined();
    const execEnv = env("exec-env");
    expect(execEnv).toMatchObject({ SLOOP_RUN_ID: run["id"] as string, SLOOP_STAGE: "look" });
    for (const name of ["SLOOP_SOCKET", "SLOOP_TOKEN"]) expect(execEnv[name]).toBeUndefined();
  }, 60_000);

  test("may call brief, show, note and verdict, and nothing else", async () => {
    const agent = `
{ sloop brief; sloop show TICK-1; sloop show TICK-2; sloop note "half way" --json; sloop verdict pass; sloop stop; sloop list; } > "$COUNT/said" 2>&1
echo w > w; git add -A; git commit -qm w`;
    await using scene = await newScene({ agent });
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
    const said = readFileSync(join(scene.outside, "said"), "utf8").trim().split("\n");
    const replies = said.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Row);
    expect(replies[0]).toMatchObject({
      ok: true,
      data: {
        ticket: { id: "TICK-1", body: "Do it.\n" },
        stage: { name: "build", attempt: 1, result_check: "commits" },
        definition_of_done: ["Commit your work to the run branch"],
      },
    });
    expect(replies[1]).toMatchObject({ ok: true, data: { id: "TICK-1", state: "claimed" } });
    expect(Object.keys(replies[1]!["data"] as Row)).not.toContain("body");
    expect(replies[2]).toMatchObject({ ok: false, error: { code: "unauthorized" } });
    expect(replies[3]).toMatchObject({ ok: true, data: { note: { id: "N1", text: "half way --json" } } });
    expect(replies[4]).toMatchObject({ ok: false, error: { code: "unauthorized" } });
    expect(said.join("\n").match(/unauthorized/g)!.length).toBeGreaterThanOrEqual(4);
    const project = await scene.value("default");
    expect(project["tickets"]).toMatchObject([
      {
        notes: [{ id: "N1", run: "TICK-1-r1", text: "half way --json" }],
        commits: [{ run: "TICK-1-r1", message: "w" }],
      },
    ]);
  }, 60_000);
});

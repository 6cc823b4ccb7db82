// What an attacker found: each as the whole kind of thing it was.

import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { arm, hookEnv, newScene, put, reached, release } from "../support/scene.ts";
import { until } from "../support/until.ts";

describe("a repository's hooks", () => {
  test("a post-checkout hook that fails keeps no run from starting", async () => {
    await using scene = await newScene();
    const hook = join(scene.root, ".git/hooks/post-checkout");
    put(hook, "#!/bin/sh\nexit 1\n");
    chmodSync(hook, 0o755);
    await scene.post("first");
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(scene.query("select state from runs")).toEqual([{ state: "merged" }]);
  }, 60_000);
});

describe("a checkout that is busy for a moment", () => {
  test("an index.lock that goes away, and a staged change that is committed, are waited for", async () => {
    await using scene = await newScene();
    arm(scene, "after-stage-build");
    await scene.data(["post", scene.ticket("first")], hookEnv(scene));
    await reached(scene, "after-stage-build");
    const lock = join(scene.root, ".git/index.lock");
    writeFileSync(lock, "");
    release(scene, "after-stage-build");
    await until(() => scene.query("select 1 from stage_runs where stage = 'build'").length > 0, "the merge to begin");
    setTimeout(() => rmSync(lock), 300);
    expect(await scene.wait("TICK-1")).toBe(0);
  }, 60_000);
});

describe("a client that floods", () => {
  test("does not keep the others waiting, nor does what it left behind when it is gone", async () => {
    await using scene = await newScene();
    for (let n = 0; n < 20; n += 1) await scene.post(`t-${n}`, "", ["--manual"]);
    const { socket: path } = (await scene.data(["daemon"])) as { socket: string };
    const line = '{"v":1,"id":"x","verb":"list","args":{}}\n';
    const flood = connect(path);
    flood.on("error", () => undefined);
    flood.write(line.repeat(5000));
    const answered = await new Promise<number>((resolve, reject) => {
      const began = performance.now();
      const other = connect(path);
      other.on("error", reject);
      other.on("data", () => resolve(performance.now() - began));
      other.write('{"v":1,"id":"y","verb":"status","args":{}}\n');
    });
    const all = new Promise<number>((resolve) => {
      let replies = 0;
      flood.on("data", (bytes) => {
        replies += bytes.toString().split("\n").length - 1;
        if (replies >= 5000) resolve(replies);
      });
    });
    expect(await all).toBe(5000);
    flood.destroy();
    // It came between the flood's replies, not behind all of them.
    expect(answered).toBeGreaterThan(0);
    expect((await scene.data(["status"]))["tickets"]).toMatchObject({ ready: 20 });
  }, 60_000);
});

describe("a full state disk", () => {
  test("does not keep a forced stop from ending the agent and the daemon", async () => {
    const agent = 'echo run >> "$COUNT/agent"; while :; do sleep 0.02; done';
    await using scene = await newScene({ agent, config: "scheduler: { cancel_grace: 1s }" });
    const small = join(scene.dir, "small");
    mkdirSync(small);
    const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", small]);
    if (mounted.exitCode !== 0) {
      expect(process.geteuid?.()).not.toBe(0);
      return;
    }
    try {
      const env = { XDG_STATE_HOME: small };
      await scene.data(["post", scene.ticket("first")], env);
      await until(() => scene.count("agent") === 1, "the agent");
      const { pid } = (await scene.data(["daemon"], env)) as { pid: number };
      for (const size of [1 << 18, 4096]) {
        for (let n = 0; n < 1000; n += 1) {
          try {
            writeFileSync(join(small, `fill-${size}-${n}`), Buffer.alloc(size));
          } catch {
            break;
          }
        }
      }
      await scene.sloop(["stop", "--force"], { env });
      await until(() => Bun.spawnSync(["pgrep", "-f", `${scene.outside}/agent.sh`]).exitCode === 1, "the agent to end");
      await until(() => Bun.spawnSync(["kill", "-0", String(pid)]).exitCode !== 0, "the daemon to end");
      Bun.spawnSync(["sh", "-c", `rm -f "${small}"/fill-*`]);
      await scene.data(["status"], env);
      await scene.data(["stop", "--force"], env);
    } finally {
      Bun.spawnSync(["umount", "-l", small]);
    }
  }, 60_000);
});

describe("reindex", () => {
  test("neither reads nor stamps what a link outside the repository leads to", async () => {
    await using scene = await newScene();
    const outside = join(scene.dir, "elsewhere");
    put(join(outside, "o.md"), "---\nname: outside\nblocked_by: []\n---\nText.\n");
    symlinkSync(join(outside, "o.md"), join(scene.root, ".agents/sloop/tickets/link.md"));
    symlinkSync(outside, join(scene.root, ".agents/sloop/tickets/folder"));
    scene.ticket("inside");
    const before = readFileSync(join(outside, "o.md"), "utf8");
    expect(await scene.data(["reindex"])).toMatchObject({ tickets_indexed: 1 });
    expect(readFileSync(join(outside, "o.md"), "utf8")).toBe(before);
  }, 60_000);
});

// A state directory that runs full in the middle of runs: nothing is lost, and dispatch resumes when there is room.

import { expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newScene, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

/** A small file system of its own at `path`; null where this user may not mount one. */
function mountSmall(path: string): (Disposable & { free(): void; fill(): void }) | null {
  mkdirSync(path, { recursive: true });
  const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", path]);
  if (mounted.exitCode !== 0) return null;
  const ballast = join(path, "ballast");
  return {
    fill() {
      for (const size of [1 << 20, 65_536, 4096]) {
        for (let n = 0; n < 400; n += 1) {
          try {
            writeFileSync(`${ballast}-${size}-${n}`, Buffer.alloc(size));
          } catch {
            break;
          }
        }
      }
    },
    free: () => {
      Bun.spawnSync(["sh", "-c", `rm -f "${ballast}"*`]);
    },
    [Symbol.dispose]() {
      Bun.spawnSync(["umount", "-l", path]);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** A small disk for a scene's state. Null without the right to mount one; the suite of record runs where there is. */
function smallState(scene: Scene) {
  const path = join(scene.dir, "small");
  const disk = mountSmall(path);
  if (disk === null) expect(process.geteuid?.()).not.toBe(0);
  return disk === null ? null : { ...disk, env: { XDG_STATE_HOME: path } };
}

test("a full state directory closes the gate, keeps the run's work, and opens when there is room", async () => {
  const agent =
    'echo run >> "$COUNT/agent"; while [ ! -e "$COUNT/go" ]; do sleep 0.02; done; echo w >> "w-$SLOOP_TICKET_ID"; git add -A; git commit -qm work';
  await using scene = await newScene({ agent });
  using disk = smallState(scene);
  if (disk === null) return;
  const { env } = disk;
  const data = (args: string[]) => scene.data(args, env);
  await data(["post", scene.ticket("first")]);
  await until(() => scene.count("agent") === 1, "the agent");
  disk.fill();
  await Bun.write(join(scene.outside, "go"), "");
  await until(async () => {
    const gate = (await data(["status"]))["gate"] as { storage: { writable: boolean; reason: string | null } };
    return gate.storage.writable === false && gate.storage.reason === "database_full";
  }, "the storage gate to close");
  const refused = await scene.sloop(["--json", "post", scene.ticket("second")], { env });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('"code":"internal"');
  expect(scene.read(".agents/sloop/tickets/second.md")).not.toContain("id:");
  disk.free();
  const first = await scene.sloop(["wait", "TICK-1", "--timeout", "50"], { env });
  expect([first.code, scene.count("agent")]).toEqual([0, 1]);
  expect((await data(["status"]))["gate"]).toMatchObject({ storage: { writable: true, reason: null } });
  await data(["post", ".agents/sloop/tickets/second.md"]);
  const ran = await scene.sloop(["wait", "TICK-2", "--timeout", "50"], { env });
  expect(ran.code).toBe(0);
  await data(["stop"]);
}, 120_000);

test("a walk that meets a full disk in the middle goes on when there is room, and nothing runs twice", async () => {
  const wait = 'while [ ! -e "OUTSIDE/go" ]; do sleep 0.02; done';
  const flow = `
stages:
  - { name: build, action: agent }
  - { name: one, action: { exec: [sh, -c, 'echo x >> OUTSIDE/one; ${wait}'] } }
  - { name: two, action: { exec: [sh, -c, 'echo x >> OUTSIDE/two'] } }
  - { name: sync, action: { builtin: sync } }
  - { name: merge, action: { builtin: merge } }
`;
  await using scene = await newScene({ flows: { default: flow } });
  using disk = smallState(scene);
  if (disk === null) return;
  const { env } = disk;
  await scene.data(["post", scene.ticket("first")], env);
  await until(() => scene.count("one") === 1, "the stage");
  disk.fill();
  await Bun.write(join(scene.outside, "go"), "");
  await until(async () => {
    const { gate } = (await scene.data(["status"], env)) as { gate: { storage: { writable: boolean } } };
    return !gate.storage.writable;
  }, "the storage gate to close");
  disk.free();
  const ran = await scene.sloop(["wait", "TICK-1", "--timeout", "50"], { env });
  expect([ran.code, scene.count("one"), scene.count("two")]).toEqual([0, 1, 1]);
  await scene.data(["stop"], env);
}, 120_000);

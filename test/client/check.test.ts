// What must hold for a request to count: changes wait for it, reads go ahead and their replies wait.

import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Client, type WhenAbsent } from "../../src/client/client.ts";
import { SloopError } from "../../src/core/errors.ts";
import { repositoryPaths } from "../../src/system/paths.ts";

const broken = new SloopError("invalid_arguments", "the configuration is broken");

/** A repository's places, and a daemon there that notes what it gets in `log` and answers. */
function place(options: { answers: boolean }) {
  const dir = realpathSync(mkdtempSync("/tmp/slk-"));
  const root = join(dir, "repo");
  mkdirSync(root);
  const env = { HOME: dir, XDG_STATE_HOME: join(dir, "s"), XDG_RUNTIME_DIR: join(dir, "r") };
  const paths = repositoryPaths({ root, env, uid: 0, platform: "linux" });
  mkdirSync(paths.runtimeDir, { recursive: true });
  const log: string[] = [];
  const data = (socket: { write(text: string): number }, bytes: Buffer) => {
    const { id, verb } = JSON.parse(bytes.toString()) as { id: string; verb: string };
    log.push(`got ${verb}`);
    socket.write(`${JSON.stringify({ id, ok: true, data: {} })}\n`);
  };
  const server = options.answers ? Bun.listen({ unix: paths.operatorSocket, socket: { data } }) : null;
  return {
    log,
    open: (whenAbsent: WhenAbsent, check: () => Promise<void>) => new Client({ paths, pid: 1, whenAbsent, check }),
    [Symbol.dispose]() {
      server?.stop(true);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

const stop: WhenAbsent = { kind: "stop" };

test("a change is sent after the check, a read before it, and the check is made once", async () => {
  using here = place({ answers: true });
  const noting = async () => void here.log.push("checked");
  const changing = here.open(stop, noting);
  await changing.call("pause", {});
  await changing.call("resume", {});
  expect(here.log).toEqual(["checked", "got pause", "got resume"]);
  here.log.length = 0;
  // The check begins when the line is out; that the daemon gets it first would be a matter of luck.
  const reading = here.open(stop, noting);
  await reading.call("show", {});
  expect(here.log.sort()).toEqual(["checked", "got show"]);
});

test("a check that fails keeps a change from being sent, and a read's reply from being used", async () => {
  using here = place({ answers: true });
  const failing = () => Promise.reject(broken);
  await expect(here.open(stop, failing).call("pause", {})).rejects.toThrow(broken);
  expect(here.log).toEqual([]);
  await expect(here.open(stop, failing).call("show", {})).rejects.toThrow(broken);
});

test("where nobody answers, a check that fails is what is said, and nothing is started", async () => {
  using here = place({ answers: false });
  const failing = () => Promise.reject(broken);
  await expect(here.open(stop, failing).call("show", {})).rejects.toThrow(broken);
  const prepare = (): never => {
    throw new Error("started");
  };
  const start: WhenAbsent = { kind: "start", starter: { prepare, env: {} } };
  await expect(here.open(start, failing).call("list", {})).rejects.toThrow(broken);
});

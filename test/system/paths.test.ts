// Where things live: the key, the sockets.

import { expect, test } from "bun:test";
import {
  channelSocket,
  outputLog,
  PathError,
  type PathsInput,
  repositoryPaths,
  socketPathLimit,
  workerSocket,
} from "../../src/system/paths.ts";

const runId = "3f2a9c1b7d4e5061a2b3c4d5e6f70819";

function input(changes: Partial<PathsInput> = {}): PathsInput {
  return { root: "/srv/one/my project", env: { HOME: "/home/ana" }, uid: 1000, platform: "linux", ...changes };
}

test("keys are made as the worked examples say", () => {
  const keys = ["/home/ana/dev/My Repo (v2)", "/srv/one/my project", "/srv/ünï", "/"].map(
    (root) => repositoryPaths(input({ root })).key,
  );
  expect(keys).toEqual([
    "My-Repo-v2-47de6f74e6c17d64",
    "my-project-a0a1bcd9bdf9cd2a",
    "n-850a993145f744f9",
    "repository-af63a24c860189fe",
  ]);
});

test("a name is cut to 32 code points before it is squeezed", () => {
  const { key } = repositoryPaths(input({ root: `/x/${"a".repeat(30)}--😀😀zz` }));
  expect(key.startsWith(`${"a".repeat(30)}-`)).toBe(true);
  expect(key).toHaveLength(31 + 16);
});

test("state and sockets stand where the pages say", () => {
  const paths = repositoryPaths(
    input({ root: "/home/ana/dev/My Repo (v2)", env: { HOME: "/home/ana", XDG_RUNTIME_DIR: "/run/user/1000" } }),
  );
  expect(paths.stateDir).toBe("/home/ana/.local/state/sloop/repositories/My-Repo-v2-47de6f74e6c17d64");
  expect(paths.operatorSocket).toBe("/run/user/1000/sloop/47de6f74e6c17d64/operator.sock");
  expect(workerSocket(paths, runId)).toBe("/run/user/1000/sloop/47de6f74e6c17d64/w3f2a9c1b.sock");
  expect(paths.logFile).toBe(`${paths.stateDir}/logs/daemon.ndjson`);
  expect(outputLog(paths, runId)).toBe(`${paths.stateDir}/runs/${runId}/output.ndjson`);
});

test("XDG and TMPDIR count only when absolute; macOS has its own places", () => {
  const relative = repositoryPaths(
    input({ env: { HOME: "/h", XDG_STATE_HOME: "state", XDG_RUNTIME_DIR: "run", TMPDIR: "tmp" } }),
  );
  expect(relative.stateDir).toStartWith("/h/.local/state/sloop/repositories/");
  expect(relative.runtimeBase).toBe("/tmp/sloop-1000");
  const mac = repositoryPaths(input({ platform: "darwin", env: { HOME: "/h", TMPDIR: "/var/t" } }));
  expect(mac.stateDir).toStartWith("/h/Library/Application Support/sloop/repositories/");
  expect(mac.logDir).toBe(`/h/Library/Logs/sloop/${mac.key}`);
  expect(mac.runtimeBase).toBe("/var/t/sloop");
  const stated = repositoryPaths(input({ platform: "darwin", env: { XDG_STATE_HOME: "/s" } }));
  expect(stated.logDir).toBe(`${stated.stateDir}/logs`);
});

test("without a state base the error says which variables were missing", () => {
  for (const env of [{}, { HOME: "" }, { XDG_STATE_HOME: "relative" }]) {
    expect(() => repositoryPaths(input({ env }))).toThrow(PathError);
    expect(() => repositoryPaths(input({ env }))).toThrow("XDG_STATE_HOME");
  }
});

test("a runtime directory that is too long gives way to /tmp, at 104 bytes and not at 103", () => {
  const fixed = "/sloop/0123456789abcdef/operator.sock".length;
  const runtime = (length: number) => `/${"r".repeat(length - 1)}`;
  const at = (length: number) =>
    repositoryPaths(input({ env: { HOME: "/h", XDG_RUNTIME_DIR: runtime(length - fixed) } }));
  expect(at(103).operatorSocket).toHaveLength(103);
  expect(at(104).operatorSocket).toBe(`/tmp/sloop-1000/${at(104).hash}/operator.sock`);
  for (const paths of [at(103), at(104)]) {
    expect(workerSocket(paths, runId).length).toBeLessThanOrEqual(socketPathLimit);
    expect(channelSocket(paths, runId, "0-1-action").length).toBeLessThanOrEqual(socketPathLimit);
  }
});

test("channels of different executions do not share a socket", () => {
  const paths = repositoryPaths(input());
  const names = new Set(
    ["0-1-action", "0-2-action", "0-1-check", "1-1-panel-0"].map((n) => channelSocket(paths, runId, n)),
  );
  expect(names.size).toBe(4);
});

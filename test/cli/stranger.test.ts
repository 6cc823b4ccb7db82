// A daemon of another version on the repository's socket: what it does not know, and what this program does not know.

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { repositoryPaths } from "../../src/system/paths.ts";
import type { Ran } from "../support/bin.ts";
import { newScene } from "../support/scene.ts";

setDefaultTimeout(60_000);

const scene = await newScene();
afterAll(async () => await scene[Symbol.asyncDispose]());

const env = scene.env as Record<string, string>;
const uid = process.geteuid?.() ?? 0;
const { runtimeDir, operatorSocket } = repositoryPaths({ root: scene.root, env, uid, platform: process.platform });
mkdirSync(runtimeDir, { recursive: true });

type Request = { id: string; verb: string; args: Record<string, unknown> };

/** Runs one command while `answer` gives every reply's `data`, or its error. */
async function facing(answer: (request: Request) => unknown, ...args: string[]): Promise<Ran & { sent: Request[] }> {
  const sent: Request[] = [];
  rmSync(operatorSocket, { force: true });
  const server = Bun.listen({
    unix: operatorSocket,
    socket: {
      data(socket, bytes) {
        const request: Request = JSON.parse(bytes.toString());
        sent.push(request);
        const data = answer(request);
        const failed = typeof data === "object" && data !== null && "code" in data;
        const body = failed ? { ok: false, error: { details: {}, ...data } } : { ok: true, data };
        socket.write(`${JSON.stringify({ id: request.id, ...body })}\n`);
      },
    },
  });
  try {
    return { ...(await scene.sloop(args)), sent };
  } finally {
    server.stop(true);
  }
}

const row = (id: string, project: string, state: string) => {
  return { id, name: id, project, state, run: null, run_id: null, reason: null, classification: null };
};

test("filters that it does not know are applied here, under the same shape", async () => {
  const old = ({ args }: Request) => {
    if (Object.keys(args).length > 0) return { code: "invalid_request", message: "unknown field" };
    return {
      tickets: [row("D", "api", "ready"), row("C", "web", "ready"), row("B", "api", "held"), row("A", "api", "ready")],
    };
  };
  const ran = await facing(old, "--json", "list", "--project", "api", "--state", "ready", "-1");
  expect(ran.sent.map(({ args }) => args)).toEqual([{ project: "api", states: ["ready"], limit: 1 }, {}]);
  expect(JSON.parse(ran.stdout).data).toEqual({ tickets: [row("D", "api", "ready")] });
  expect((await facing(old, "list", "--state", "merged")).stdout).toBe("no tickets match\n");
  expect((await facing(old, "list", "-2")).code).toBe(1);
});

test("a reply in a shape that is not known is printed whole", async () => {
  const data = { kind: "hologram", layers: [1, 2] };
  expect((await facing(() => data, "show", "x")).stdout).toBe(`${JSON.stringify(data, null, 2)}\n`);
  expect((await facing(() => data, "--json", "show", "x")).stdout).toMatch(
    /^\{"id":"req-[0-9]+-1","ok":true,"data":\{"kind":"hologram"/,
  );
});

test("details of a refusal are shown; an envelope is passed on without hints", async () => {
  const refusal = () => ({ code: "unsupported_version", message: "no version 1 here", details: { supported: [2] } });
  expect(await facing(refusal, "pause")).toMatchObject({
    code: 1,
    stdout: "",
    stderr: 'error (unsupported_version): no version 1 here\n{"supported":[2]}\n',
  });
  const json = await facing(refusal, "--json", "pause");
  expect(json.stderr).toMatch(
    /^\{"id":"req-[0-9]+-1","ok":false,"error":\{"details":\{"supported":\[2\]\},"code":"unsupported_version","message":"no version 1 here"\}\}\n$/,
  );
});

test("its version is named when it differs", async () => {
  const data = { pid: 1, socket: "s", state_dir: "d", log: "l", version: "0.0.9", started: true };
  const ran = await facing(() => data, "daemon");
  expect(ran.stdout).toStartWith("daemon running (pid 1)\n");
  expect(ran.stdout).toContain("the daemon is 0.0.9");
});

test("a followed feed that ends in an error is exit 1, also for a refused reference", async () => {
  const answer = ({ verb }: Request) => {
    if (verb === "show") return { kind: "matches", ref: "x", tickets: [] };
    return { code: "invalid_arguments", message: "ambiguous now" };
  };
  expect(await facing(answer, "show", "x", "--follow")).toMatchObject({
    code: 1,
    stdout: "",
    stderr: [
      "note: no ticket, run or project is named `x`; following tickets that will match it, until interrupted",
      "  hint: `sloop list` shows every ticket",
      "error (invalid_arguments): ambiguous now\n",
    ].join("\n"),
  });
});

test("requests are exactly those of the protocol", async () => {
  const answer = () => ({ trigger: { id: "TR1", kind: "now", state: "queued" } });
  const asked = async (...args: string[]) => {
    const { verb, args: sent } = (await facing(answer, ...args)).sent[0]!;
    return { verb, args: sent };
  };
  expect(await asked("run")).toEqual({ verb: "run", args: { trigger: { kind: "now" }, only: [] } });
  expect(await asked("run", "T", "--at", "03:00")).toEqual({
    verb: "run",
    args: { ticket: "T", trigger: { kind: "at", local_time: "03:00" }, only: [] },
  });
  expect(await asked("run", "--project", "p", "--every", "30m", "--only", "A,B")).toEqual({
    verb: "run",
    args: { project: "p", trigger: { kind: "every", interval_ms: 1_800_000 }, only: ["A", "B"] },
  });
  expect(await asked("run", "--overnight")).toEqual({
    verb: "run",
    args: { trigger: { kind: "overnight" }, only: [] },
  });
  expect(await asked("post", "f.md", "--at", "03:00", "--flow", "x", "--project", "p")).toEqual({
    verb: "post",
    args: { file: "f.md", flow: "x", project: "p", trigger: { kind: "at", time: "03:00" } },
  });
  expect(await asked("post", "f.md", "--hold")).toEqual({
    verb: "post",
    args: { file: "f.md", trigger: { kind: "hold" } },
  });
  expect(await asked("stop")).toEqual({ verb: "stop", args: { force: false } });
  expect(await asked("show", "-5")).toEqual({ verb: "show", args: { limit: 5 } });
  expect(await asked("show", "x", "-n", "2")).toEqual({ verb: "show", args: { ref: "x", limit: 2 } });
  expect(await asked("status")).toEqual({ verb: "show", args: {} });
  expect(await asked("logs", "r")).toEqual({ verb: "logs", args: { run: "r", tail: 64 } });
  expect(await asked("logs", "r", "--tail", "3", "--stage", "s")).toEqual({
    verb: "logs",
    args: { run: "r", stage: "s", tail: 3 },
  });
  expect(await asked("events", "x")).toEqual({ verb: "events", args: { tail: 20, scope: "x" } });
  expect(await asked("events", "--after", "7", "--limit", "2")).toEqual({
    verb: "events",
    args: { after: 7, limit: 2 },
  });
  expect(await asked("cancel", "r")).toEqual({ verb: "cancel", args: { run: "r" } });
});

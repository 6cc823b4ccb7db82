// A run's own door: its four verbs, its one live token, and nothing learned by guessing.

import { describe, expect, test } from "bun:test";
import { openWorkerDoor } from "../../src/server/worker.ts";
import { liveRun, openContext, type TestDaemon } from "../support/context.ts";
import { addRun, addTicket, runId } from "../support/rows.ts";
import { type Reply, rawClient, requestLine } from "../support/socket.ts";

const run = runId("4be19c02");
const token = "t".repeat(43);

type Fixture = Disposable & {
  daemon: TestDaemon;
  ask(verb: string, args?: unknown, more?: Record<string, unknown>): Promise<Reply>;
};

async function openFixture(): Promise<Fixture> {
  const daemon = await openContext();
  addTicket(daemon, "TICK-9", { state: "claimed" });
  addTicket(daemon, "TICK-1");
  addRun(daemon, run, {
    ticketId: "TICK-9",
    state: "running",
    attempt: 2,
    branch: "sloop/TICK-9-a2-4be19c02",
    worktreePath: "/w/4be19c02",
    ticketJson: JSON.stringify({
      id: "TICK-9",
      name: "As it was",
      blocked_by: [],
      worktree: null,
      target: null,
      model: null,
      effort: null,
      body: "Do it.\n",
    }),
  });
  const socketPath = `${daemon.paths.runtimeDir}/w4be19c02.sock`;
  const scope = { runId: run, stage: "build", stageIndex: 0, attempt: 1, seat: null };
  daemon.live.set(run, liveRun(run, "TICK-9", { credential: { token, socketPath, scope } }));
  const door = openWorkerDoor(daemon)(socketPath, run);
  return {
    daemon,
    async ask(verb, args = {}, more = { token }) {
      using client = await rawClient(socketPath);
      client.send(requestLine(verb, args, more));
      return await client.reply(0);
    },
    [Symbol.dispose]() {
      door.close();
      daemon[Symbol.dispose]();
    },
  };
}

const unauthorized = (literal: string) => ({
  code: "unauthorized",
  message: expect.stringContaining(literal),
  details: {},
});

describe("authority", () => {
  test("operator verbs are refused before the token is looked at", async () => {
    using door = await openFixture();
    for (const verb of ["init", "daemon", "stop", "status", "list", "pause"]) {
      for (const more of [{ token }, { token: "wrong" }, {}]) {
        expect((await door.ask(verb, {}, more)).error).toEqual(unauthorized("operator verbs"));
      }
    }
    expect((await door.ask("cancel", { run: "x" })).error).toEqual(unauthorized("operator verbs"));
  });

  test("one message for every token that is not the live one", async () => {
    using door = await openFixture();
    const messages = new Set<string | undefined>();
    const near = [`${token.slice(0, 42)}x`, token.slice(1), `${token}t`, "", "é".repeat(43)];
    for (const more of [{}, { token: null }, ...near.map((wrong) => ({ token: wrong }))]) {
      const { error } = await door.ask("brief", {}, more);
      expect(error).toEqual(unauthorized("token is not valid for this run"));
      messages.add(error?.message);
    }
    const live = door.daemon.live.get(run);
    if (live !== undefined) live.credential = null;
    messages.add((await door.ask("brief")).error?.message);
    door.daemon.live.clear();
    messages.add((await door.ask("brief")).error?.message);
    expect(messages.size).toBe(1);
  });

  test("decode failures come first and are the same as the operator's", async () => {
    using door = await openFixture();
    expect(await door.ask("status", { x: 1 }, {})).toMatchObject({ id: null, error: { code: "invalid_request" } });
    expect(await door.ask("merge", {}, {})).toMatchObject({ id: null, error: { code: "unknown_verb" } });
    expect(await door.ask("note", {}, {})).toMatchObject({ id: null, error: { code: "invalid_request" } });
  });
});

describe("verbs", () => {
  test("brief and note answer for the run of the token", async () => {
    using door = await openFixture();
    expect((await door.ask("brief")).data).toMatchObject({
      run,
      ticket: { id: "TICK-9", name: "As it was" },
      stage: { name: "build", attempt: 1, result_check: "commits" },
      definition_of_done: ["Commit your work to the run branch"],
    });
    expect((await door.ask("note", { text: "" })).data).toEqual({ note: { id: "N1", run, text: "" } });
  });

  test("show gives the run's own ticket as it is now, without runs, triggers and body", async () => {
    using door = await openFixture();
    expect((await door.ask("show", { ref: "TICK-9", limit: null })).data).toEqual({
      id: "TICK-9",
      name: "Name of TICK-9",
      project: "default",
      state: "claimed",
      file: ".agents/sloop/tickets/TICK-9.md",
      blocked_by: [],
      worktree: null,
      target: null,
      model: null,
      effort: null,
      reason: null,
      classification: null,
    });
  });

  test("show refuses everything else alike, whether it exists or not", async () => {
    using door = await openFixture();
    const messages = new Set<string | undefined>();
    const asked = [
      {},
      { ref: null },
      { ref: "TICK-1" },
      { ref: "TICK-99" },
      { ref: "tick-9" },
      { ref: "Name of TICK-9" },
    ];
    for (const args of [
      ...asked,
      { ref: "TICK-9-r2" },
      { ref: "(" },
      { ref: "TICK-9", limit: 1 },
      { ref: "TICK-9", limit: 0 },
    ]) {
      const { error } = await door.ask("show", args);
      expect(error?.code).toBe("unauthorized");
      messages.add(error?.message);
    }
    expect(messages.size).toBe(1);
  });
});

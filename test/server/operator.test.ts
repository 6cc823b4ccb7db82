// The operator's door over a real socket: who may call what, order, closing, limits, and peers that misbehave.

import { describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { openOperatorDoor } from "../../src/server/operator.ts";
import { openContext, type TestDaemon } from "../support/context.ts";
import { addTicket } from "../support/rows.ts";
import { type RawClient, rawClient, requestLine } from "../support/socket.ts";
import { until } from "../support/until.ts";

type Fixture = Disposable & { daemon: TestDaemon; connect(): Promise<RawClient> };

async function openFixture(): Promise<Fixture> {
  const daemon = await openContext();
  const door = openOperatorDoor(daemon);
  return {
    daemon,
    connect: () => rawClient(daemon.paths.operatorSocket),
    [Symbol.dispose]() {
      door.close();
      daemon[Symbol.dispose]();
    },
  };
}

async function timed(job: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await job();
  return performance.now() - started;
}

/** The shortest of a few attempts: a busy machine makes things late, never early. */
async function quickest(job: () => Promise<void>): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 8 && best > 150; attempt += 1) best = Math.min(best, await timed(job));
  return best;
}

describe("authority", () => {
  test("any token is refused before the verb is looked at", async () => {
    using door = await openFixture();
    for (const token of ["", "x", "a".repeat(43)]) {
      for (const verb of ["status", "brief", "init"]) {
        using client = await door.connect();
        client.send(requestLine(verb, {}, { token, id: "t" }));
        const { id, error } = await client.reply(0);
        expect({ id, error }).toEqual({
          id: "t",
          error: { code: "unauthorized", message: expect.stringContaining("worker tokens"), details: {} },
        });
      }
    }
  });

  test("a worker's verb points at the operator's alternative", async () => {
    using door = await openFixture();
    using client = await door.connect();
    client.send(requestLine("brief") + requestLine("note", { text: "" }) + requestLine("verdict", { verdict: "pass" }));
    for (const n of [0, 1, 2]) {
      const { error } = await client.reply(n);
      expect(error?.code).toBe("unauthorized");
      expect(error?.message).toContain("`sloop show <ticket>`");
    }
  });

  test("decode failures come before authority, carry no id, and leave the connection usable", async () => {
    using door = await openFixture();
    using client = await door.connect();
    client.send(requestLine("brief", { x: 1 }, { token: "x", id: "kept" }));
    client.send(new Uint8Array([0x7b, 0xff, 0x0a]));
    client.send(`\n${requestLine("pause", {}, { id: "" })}`);
    expect((await client.reply(0)).error?.code).toBe("invalid_request");
    expect((await client.reply(0)).id).toBeNull();
    expect((await client.reply(1)).error?.message).toContain("UTF-8");
    expect((await client.reply(2)).error?.message).toStartWith("malformed JSON");
    expect(await client.reply(3)).toEqual({ id: "", ok: true, data: { paused: true } });
  });

  test("init is known and refused", async () => {
    using door = await openFixture();
    using client = await door.connect();
    client.send(requestLine("init", {}, { id: "i" }));
    const { id, error } = await client.reply(0);
    expect(id).toBe("i");
    expect(error).toMatchObject({ code: "invalid_request", details: { verb: "init" } });
    expect(error?.message).toContain("`init`");
    expect(error?.message).toContain("not implemented");
  });

  test("the socket is ours alone", async () => {
    using door = await openFixture();
    expect(statSync(door.daemon.paths.operatorSocket).mode & 0o777).toBe(0o600);
  });
});

describe("order and framing", () => {
  test("requests of one connection are answered in order, whatever the chunks", async () => {
    using door = await openFixture();
    using client = await door.connect();
    const lines = Array.from({ length: 500 }, (_, n) =>
      n % 7 === 3 ? "nonsense\n" : requestLine(n % 2 === 0 ? "status" : "list", {}, { id: `n${n}` }),
    ).join("");
    for (let at = 0; at < lines.length; at += 777) client.send(lines.slice(at, at + 777));
    await client.reply(499);
    const ids = client.lines.map((text) => (JSON.parse(text) as { id: string | null }).id);
    expect(ids).toEqual(Array.from({ length: 500 }, (_, n) => (n % 7 === 3 ? null : `n${n}`)));
    expect(door.daemon.calls.jobs).toBe(ids.filter((id) => id !== null).length);
    expect(door.daemon.logged.filter((entry) => entry.endsWith("request_handled"))).toHaveLength(
      door.daemon.calls.jobs,
    );
  });

  test("a slow answer holds its own connection only, and keeps the order there", async () => {
    using door = await openFixture();
    addTicket(door.daemon, "TICK-1", { projectId: "web" });
    using slow = await door.connect();
    using quick = await door.connect();
    const logsOfNothing = requestLine("logs", { run: "nope" }, { id: "slow" });
    slow.send(logsOfNothing + requestLine("status", {}, { id: "after" }));
    quick.send(requestLine("status", {}, { id: "quick" }));
    expect((await quick.reply(0)).id).toBe("quick");
    expect((await slow.reply(0)).error?.code).toBe("not_found");
    expect((await slow.reply(1)).id).toBe("after");
  });

  test("a last line without its newline is served at half-close, then the connection is closed at once", async () => {
    using door = await openFixture();
    const took = await quickest(async () => {
      using client = await door.connect();
      client.send(requestLine("pause") + requestLine("resume").trimEnd());
      client.finish();
      await client.untilClosed();
      expect(client.lines.map((text) => (JSON.parse(text) as { data: unknown }).data)).toEqual([
        { paused: true },
        { paused: false, restart_cancelled: false },
      ]);
    });
    expect(took).toBeLessThan(150);
  });

  test("a slow answer reaches a client that has half-closed", async () => {
    using door = await openFixture();
    addTicket(door.daemon, "TICK-1", { projectId: "web" });
    using client = await door.connect();
    client.send(requestLine("show", { ref: "web" }).trimEnd());
    client.finish();
    expect((await client.reply(0)).data).toMatchObject({ kind: "project", ref: "web" });
    await client.untilClosed();
  });

  test("nothing sent, nothing said", async () => {
    using door = await openFixture();
    using client = await door.connect();
    client.finish();
    await client.untilClosed(2000);
    expect(client.lines).toEqual([]);
  });

  test("one byte too many is refused, and what follows is not served", async () => {
    using door = await openFixture();
    using client = await door.connect();
    client.send(`${requestLine("status", {}, { x: "a".repeat(1_048_576) })}${requestLine("pause")}`);
    const { id, error } = await client.reply(0);
    expect({ id, code: error?.code }).toEqual({ id: null, code: "invalid_request" });
    expect(error?.message).toContain("too large");
    await client.untilClosed();
    expect(client.lines).toHaveLength(1);
    expect(door.daemon.calls.jobs).toBe(0);
  });

  test("a line of exactly the limit is served", async () => {
    using door = await openFixture();
    using client = await door.connect();
    const empty = requestLine("status", {}, { id: "n", x: "" });
    client.send(requestLine("status", {}, { id: "n", x: "a".repeat(1_048_576 - empty.length) }));
    expect((await client.reply(0)).id).toBe("n");
  });
});

describe("closing", () => {
  test("250 ms after the last reply", async () => {
    using door = await openFixture();
    using client = await door.connect();
    client.send(requestLine("status"));
    await client.reply(0);
    const took = await timed(() => client.untilClosed());
    expect(took).toBeGreaterThan(200);
    expect(took).toBeLessThan(5000);
  });

  test("arrivals put the end off; an unfinished line is dropped then", async () => {
    using door = await openFixture();
    using client = await door.connect();
    for (let n = 0; n < 12; n += 1) {
      client.send(requestLine("status"));
      await client.reply(n);
      await Bun.sleep(30);
    }
    client.send('{"v":1');
    await client.untilClosed();
    expect(client.lines).toHaveLength(12);
  });

  test("before the first reply it waits longer", async () => {
    using door = await openFixture();
    using client = await door.connect();
    client.send('{"v":1,"id":"late",');
    await Bun.sleep(400);
    expect(client.closed).toBe(false);
    client.send('"verb":"pause","args":{}}\n');
    expect((await client.reply(0)).id).toBe("late");
  });

  test("stop: the reply, then the end, and the daemon is told after it", async () => {
    using door = await openFixture();
    const took = await quickest(async () => {
      using client = await door.connect();
      client.send(requestLine("stop", {}, { id: "s" }) + requestLine("pause"));
      await client.untilClosed();
      expect(client.lines.map((text) => JSON.parse(text) as unknown)).toEqual([
        { id: "s", ok: true, data: { stopping: true, pid: process.pid, cancelled_runs: [] } },
      ]);
    });
    expect(took).toBeLessThan(150);
    await until(() => door.daemon.calls.shutDowns > 0, "the daemon to be told");
  });

  test("restart: the reply, then the end", async () => {
    using door = await openFixture();
    const took = await quickest(async () => {
      using client = await door.connect();
      client.send(requestLine("restart", {}, { id: "r" }) + requestLine("pause"));
      await client.untilClosed();
      const data = { draining: true, active_runs: 0, pid: process.pid };
      expect(client.lines.map((text) => JSON.parse(text) as unknown)).toEqual([{ id: "r", ok: true, data }]);
    });
    expect(took).toBeLessThan(150);
    expect(door.daemon.calls.shutDowns).toBe(0);
  });

  test("a client that is gone before its reply has its request carried out", async () => {
    using door = await openFixture();
    addTicket(door.daemon, "TICK-1");
    const client = await door.connect();
    client.send(requestLine("hold", { ticket: "TICK-1" }));
    client[Symbol.dispose]();
    await until(() => door.daemon.calls.jobs === 1, "the request to be served");
    expect(door.daemon.store.sqlite.query("select state from tickets").get()).toEqual({ state: "held" });
  });
});

describe("a client that hangs up", () => {
  test("is not read to any more, but what it asked to be changed is changed", async () => {
    using door = await openFixture();
    for (let n = 0; n < 200; n += 1) addTicket(door.daemon, `TICK-${n}`);
    const client = await door.connect();
    client.stopReading();
    const lists = Array.from({ length: 200 }, () => requestLine("list")).join("");
    client.send(`${lists}nonsense\n${requestLine("hold", { ticket: "TICK-1" })}`);
    await until(() => door.daemon.calls.jobs > 0, "the first request to be served");
    client[Symbol.dispose]();
    const stateOf = door.daemon.store.sqlite.query<{ state: string }, []>(
      "select state from tickets where id = 'TICK-1'",
    );
    await until(() => stateOf.get()?.state === "held", "the last request to be carried out");
    expect(door.daemon.calls.jobs).toBeLessThan(150);
  });
});

describe("peers that misbehave", () => {
  test("one that never reads is served no further, holds nobody up, and costs bounded memory", async () => {
    using door = await openFixture();
    for (let n = 0; n < 200; n += 1) addTicket(door.daemon, `TICK-${n}`);
    using deaf = await door.connect();
    deaf.stopReading();
    deaf.send(Array.from({ length: 300 }, () => requestLine("list")).join(""));
    await until(() => door.daemon.calls.jobs > 1, "the first requests to be served");
    using other = await door.connect();
    for (let n = 0; n < 20; n += 1) {
      other.send(requestLine("status"));
      await other.reply(n);
    }
    const served = door.daemon.calls.jobs - 20;
    expect(served).toBeLessThan(100);
    deaf.read();
    await until(() => door.daemon.calls.jobs === 320, "the rest to be served once it reads");
  });

  test("idle connections make room for new ones", async () => {
    using door = await openFixture();
    const idle: RawClient[] = [];
    for (let batch = 0; batch < 16; batch += 1) {
      idle.push(...(await Promise.all(Array.from({ length: 50 }, () => door.connect()))));
    }
    using client = await door.connect();
    client.send(requestLine("status"));
    expect((await client.reply(0)).ok).toBe(true);
    await until(() => idle.some((one) => one.closed), "an idle one to be closed");
    for (const one of idle) one[Symbol.dispose]();
  });

  test("a flood of lines in one read is answered line by line", async () => {
    using door = await openFixture();
    using client = await door.connect();
    client.send("\n".repeat(200_000) + requestLine("pause", {}, { id: "behind" }));
    await until(() => client.lines.length === 200_001, "every line to be answered");
    expect(client.lines.at(-1)).toContain('"behind"');
  });

  test("replies that fill more than the room for unread ones all arrive", async () => {
    using door = await openFixture();
    for (let n = 0; n < 50; n += 1) addTicket(door.daemon, `TICK-${n}`, { name: "x".repeat(10_000) });
    using client = await door.connect();
    client.send(Array.from({ length: 40 }, () => requestLine("list")).join(""));
    await until(() => client.lines.length === 40, "every list to arrive");
  });

  test("garbage of every kind never keeps the next client from being served", async () => {
    using door = await openFixture();
    for (const junk of ["\0\0\0", "{".repeat(5000), "\n\n\n\n", "GET / HTTP/1.1\r\n\r\n", '{"v":1}\n'.repeat(300)]) {
      const client = await door.connect();
      client.send(junk);
      client[Symbol.dispose]();
    }
    using client = await door.connect();
    client.send(requestLine("status"));
    expect((await client.reply(0)).ok).toBe(true);
  });
});

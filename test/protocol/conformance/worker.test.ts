// protocol.md 4 and 8: two sockets with two authorities, credentials, and the four worker verbs.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../support/until.ts";
import { commit, meet, openStage, type Stage, type Worker } from "./stage.ts";
import { expectRefusal, type Json, type Wire, wireTo } from "./wire.ts";

setDefaultTimeout(60_000);

const flows = {
  reported: `stages:
  - { name: build, action: agent, result_check: reported }
  - { name: look, action: { exec: [sh, -c, 'env > OUTSIDE/plain-env'] } }
  - { name: review, action: { exec: [sh, -c, '. OUTSIDE/review.sh'] }, result_check: reported, fail_action: continue }
`,
  panel: `stages:
  - { name: build, action: agent }
  - name: review
    action: { exec: ["true"] }
    result_check:
      panel: { prompt: prompts/review.md, reviewers: [{ target: seat }, { target: seat }, { target: mute }], require: { quorum: 2 } }
`,
  checked: `stages:
  - { name: build, action: agent, result_check: { exec: ["true"] } }
`,
};

let stage: Stage;
let wire: Wire;

beforeAll(async () => {
  stage = await openStage({
    flows,
    config: `    seat: { cmd: [sh, -c, '. "\${XDG_STATE_HOME%/state}/outside/seat.sh"', "{prompt}"] }
    mute: { cmd: [sh, -c, "exit 0", "{prompt}"] }
scheduler: { max_parallel_tasks: 8 }`,
  });
  wire = stage.wire;
  stage.scene.write(".agents/sloop/prompts/review.md", "Judge it.\n");
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

/** Posts a ticket whose agent hands over its credential at once. */
async function employed(stem: string, flow = "default", after = commit): Promise<{ id: string; worker: Worker }> {
  const id = await stage.post(stem, { trigger: { kind: "manual" }, flow });
  stage.agent(id, `${meet}\n${after}`);
  await wire.ok("run", { trigger: { kind: "now" }, only: [], ticket: id });
  return { id, worker: await stage.worker(id) };
}

async function finished(id: string): Promise<Json> {
  stage.go(id);
  return await stage.settled(id);
}

const denied = "token is not valid for this run";

describe("4 authority", () => {
  test("4 operator: any token is refused before the verb, even the empty one", async () => {
    for (const token of ["", "x", "a".repeat(43)]) {
      for (const verb of ["status", "brief", "init", "show"]) {
        expectRefusal(await wire.refused(verb, {}, { token }), "unauthorized", "worker tokens");
      }
    }
  });

  test("4 operator: a worker's verb points at the operator's way", async () => {
    const workers: [string, Json][] = [
      ["brief", {}],
      ["note", { text: "x" }],
      ["verdict", { verdict: "pass" }],
    ];
    for (const [verb, args] of workers) {
      expectRefusal(await wire.refused(verb, args), "unauthorized", "`sloop show <ticket>`");
    }
  });

  test("4 worker: operator verbs come before the token, one answer for every bad token, the daemon's state stays hidden", async () => {
    const one = await employed("authority-one");
    const two = await employed("authority-two");
    const { socket, token } = one.worker;
    const bare = wireTo(socket);
    const operatorVerbs: [string, Json][] = [
      ...["daemon", "restart", "stop", "pause", "resume", "reindex", "events", "status", "list", "init"].map(
        (verb): [string, Json] => [verb, {}],
      ),
      ["post", { file: "f", trigger: { kind: "auto" } }],
      ["run", { trigger: { kind: "now" }, only: [] }],
      ...["retry", "hold", "ready"].map((verb): [string, Json] => [verb, { ticket: one.id }]),
      ...["cancel", "logs", "wait"].map((verb): [string, Json] => [verb, { run: one.id }]),
    ];
    for (const [verb, args] of operatorVerbs) {
      for (const more of [{ token }, { token: "wrong" }, {}]) {
        expectRefusal(await bare.refused(verb, args, more), "unauthorized", "operator verbs");
      }
    }
    const messages = new Set<string>();
    const tokens = [undefined, null, "", "x", token.slice(1), `${token}A`, token.toLowerCase(), two.worker.token];
    for (const wrong of tokens) {
      for (const [verb, args] of [
        ["brief", {}],
        ["show", { ref: one.id }],
        ["show", { ref: "no-such" }],
        ["note", { text: "x" }],
        ["verdict", { verdict: "pass" }],
      ] as [string, Json][]) {
        const error = await bare.refused(verb, args, wrong === undefined ? {} : { token: wrong });
        expectRefusal(error, "unauthorized", denied);
        messages.add(error.message);
      }
    }
    expect(messages.size).toBe(1);
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(two.worker.token).not.toBe(token);
    await finished(one.id);
    await finished(two.id);
    await until(() => !existsSync(socket), "the socket to be removed at settlement");
  });

  test("4 after the daemon is killed a living agent's socket is served again, same path, same token", async () => {
    const { id, worker } = await employed("survivor");
    const before = await worker.wire.ok("brief");
    await stage.scene.killDaemon();
    await stage.scene.data(["daemon"]);
    await until(async () => {
      try {
        return (await worker.wire.ask("brief")).ok;
      } catch {
        return false;
      }
    }, "the socket to be served again");
    expect(await worker.wire.ok("brief")).toEqual(before);
    expect((await finished(id))["state"]).toBe("merged");
  });
});

describe("8.1 brief", () => {
  const doneFor = async (stem: string, flow: string): Promise<string> => {
    const { id, worker } = await employed(stem, flow);
    const { definition_of_done } = (await worker.wire.ok("brief")) as { definition_of_done: string[] };
    expect(definition_of_done).toHaveLength(1);
    await finished(id);
    return definition_of_done[0]!;
  };

  test("8.1: the ticket as claimed, the run, the stage", async () => {
    const id = await stage.post("brief-one", {
      front: "model: opus\nworktree: sloop/mine",
      body: "First line.\n\nLast line.",
      trigger: { kind: "manual" },
    });
    stage.agent(id, `${meet}\n${commit}`);
    await wire.ok("run", { trigger: { kind: "now" }, only: [], ticket: id });
    const worker = await stage.worker(id);
    const brief = await worker.wire.ok("brief");
    const run = await stage.value(`${id}-r1`);
    expect(brief).toEqual({
      run: run["id"],
      ticket: {
        id,
        name: "brief-one",
        blocked_by: [],
        worktree: "sloop/mine",
        body: expect.stringMatching(/^First line\.\n\nLast line\.\n?$/),
        target: "sh",
        model: "opus",
        effort: null,
      },
      worktree: run["worktree"],
      branch: run["branch"],
      stage: { name: "build", attempt: 1, result_check: "commits" },
      definition_of_done: ["Commit your work to the run branch"],
    });
    const short = String(run["id"]).slice(0, 8);
    expect(run["branch"]).toBe(`sloop/${id}-a1-${short}`);
    expect(run["worktree"]).toBe(join(stage.scene.root, ".worktrees", short));

    stage.scene.ticket("brief-one", `id: ${id}\nproject: default\nworktree: sloop/mine\nflow: default`, "Changed.");
    await wire.ok("post", { file: ".agents/sloop/tickets/brief-one.md", trigger: { kind: "manual" } });
    expect(await worker.wire.ok("brief")).toEqual(brief);
    await finished(id);
  });

  test("8.1 definition of done, by check: only that of commits says commit", async () => {
    expect(await doneFor("done-reported", "reported")).toContain("reported verdict");
    const checked = await doneFor("done-checked", "checked");
    expect(checked).toMatch(/independent check.*exits?/i);
    expect(checked.toLowerCase()).not.toContain("commit");
  });
});

describe("8.2 show, 8.3 note", () => {
  test("8.2: the own ticket by its exact id, as it is now; anything else alike unauthorized", async () => {
    const { id, worker } = await employed("own");
    await stage.post("other", { trigger: { kind: "hold" } });
    const detail = await worker.wire.ok("show", { ref: id, limit: null });
    const { runs: _runs, queued_triggers: _queued, body: _body, ...rest } = await stage.value(id);
    expect(detail).toEqual(rest);
    expect(Object.keys(detail).sort()).toEqual(
      "blocked_by classification effort file id model name project reason state target worktree".split(" "),
    );
    const messages = new Set<string>();
    const asked: Json[] = [
      {},
      { ref: null },
      { ref: "" },
      { ref: id, limit: 5 },
      { ref: id, limit: 0 },
      { ref: `${id}-r1` },
      { ref: "own" },
      { ref: id.toLowerCase() },
      { ref: "other" },
      { ref: "no-such-ticket" },
      { ref: "(" },
    ];
    for (const args of asked) {
      const error = await worker.wire.refused("show", args);
      expectRefusal(error, "unauthorized");
      messages.add(error.message);
    }
    expect(messages.size).toBe(1);
    await finished(id);
  });

  test("8.3: any text is stored as sent, moves nothing, adds no event, and shows in project detail", async () => {
    const { id, worker } = await employed("noted");
    const { latest } = await wire.ok("events");
    const run = (await wire.ok("wait", { run: id }))["id"];
    const texts = ["", "  two\nlines \t", "é😀\u0000nul", "x".repeat(200_000)];
    const ids: string[] = [];
    for (const text of texts) {
      const { note } = (await worker.wire.ok("note", { text })) as { note: Json };
      expect(note).toEqual({ id: expect.stringMatching(/^N[0-9]+$/), run, text });
      ids.push(note["id"] as string);
    }
    expect((await wire.ok("events"))["latest"]).toBe(latest as number);
    const { tickets } = (await stage.value("default")) as { tickets: Json[] };
    const notes = tickets.find((ticket) => ticket["id"] === id)!["notes"] as Json[];
    expect(notes.map((note) => note["text"]).sort()).toEqual(texts.sort());
    for (const note of notes) {
      expect(Object.keys(note).sort()).toEqual(["id", "recorded_at_ms", "run", "run_id", "text"]);
      expect(note).toMatchObject({ run: `${id}-r1`, run_id: run, recorded_at_ms: expect.any(Number) });
    }
    await finished(id);
  });
});

describe("8.4 verdict", () => {
  test("8.4: an agent whose check is not reported", async () => {
    const { id, worker } = await employed("unasked");
    const error = await worker.wire.refused("verdict", { verdict: "pass" });
    expectRefusal(error, "unauthorized", "stage `build`", "`result_check: reported`");
    await finished(id);
  });

  test("8.4, 4: a stage's one report, its defaults, its finality; other exec stages get no credential", async () => {
    const review = `exec 3>&1; printf '%s\\n%s\\n' "$SLOOP_SOCKET" "$SLOOP_TOKEN" > '${stage.scene.outside}'/review.tmp
mv '${stage.scene.outside}'/review.tmp '${stage.scene.outside}'/review.met
while [ ! -e '${stage.scene.outside}'/review.go ]; do sleep 0.02; done; exit 3`;
    await Bun.write(join(stage.scene.outside, "review.sh"), review);
    const { id, worker } = await employed("reporter", "reported", "exit 5");
    const run = (await wire.ok("wait", { run: id }))["id"];
    expect(await worker.wire.ok("verdict", { verdict: "pass" })).toEqual({
      verdict: { run, stage: "build", attempt: 1, verdict: "pass", confidence: "medium", reason: null },
    });
    const again = await worker.wire.refused("verdict", { verdict: "fail", reason: "changed my mind" });
    expectRefusal(again, "conflict", "`build`", "already reported");
    stage.go(id);
    await until(() => existsSync(join(stage.scene.outside, "review.met")), "the review stage");
    const [socket = "", token = ""] = readFileSync(join(stage.scene.outside, "review.met"), "utf8").split("\n");
    // One live token: the one before died when this was minted, on the same socket.
    expect(socket).toBe(worker.socket);
    expectRefusal(await worker.wire.refused("brief"), "unauthorized", denied);
    const reviewer = wireTo(socket, { token });
    expect(await reviewer.ok("brief")).toMatchObject({
      stage: { name: "review", attempt: 1, result_check: "reported" },
    });
    const args = { verdict: "fail", reason: "  no test\ncovers it  ", confidence: "high" };
    expect(await reviewer.ok("verdict", args)).toEqual({ verdict: { run, stage: "review", attempt: 1, ...args } });
    await Bun.write(join(stage.scene.outside, "review.go"), "");
    expect(await stage.settled(id)).toMatchObject({ exit_code: 5 });
    const { stages } = (await stage.value(`${id}-r1`)) as { stages: Json[] };
    // On a reported stage the report alone decides, whatever the exit status; the text is kept as sent.
    expect(stages).toMatchObject([
      { stage: "build", state: "passed", exit_code: 5, verdict_source: "reported", confidence: "medium", reason: null },
      { stage: "look", state: "passed", verdict_source: "exit_code", confidence: null },
      {
        stage: "review",
        state: "failed",
        exit_code: 3,
        verdict_source: "reported",
        confidence: "high",
        advisory: true,
      },
    ]);
    expect(stages[2]!["reason"]).toBe("  no test\ncovers it  ");
    const plain = readFileSync(join(stage.scene.outside, "plain-env"), "utf8");
    for (const name of ["SLOOP_SOCKET", "SLOOP_TOKEN"]) expect(plain).not.toContain(`${name}=`);
    for (const name of ["SLOOP_RUN_ID", "SLOOP_TICKET_ID", "SLOOP_BIN"]) expect(plain).toContain(`${name}=`);
  });

  test("8.4: a reported stage that stays silent fails with exactly `no verdict reported`", async () => {
    const { id } = await employed("silent", "reported");
    await finished(id);
    const { stages } = (await stage.value(`${id}-r1`)) as { stages: Json[] };
    expect(stages[0]).toMatchObject({ state: "failed", reason: "no verdict reported", confidence: null });
  });
});

describe("4, 6.5, 8 panel seats", () => {
  const outside = (name: string) => join(stage.scene.outside, name);
  const seatScript = `x="\${XDG_STATE_HOME%/state}/outside"; printf '%s %s\\n' "$SLOOP_SOCKET" "$SLOOP_TOKEN" >> "$x/seats"
n=$(wc -l < "$x/seats"); while [ ! -e "$x/seat.$n.go" ]; do sleep 0.02; done; exit 1`;

  async function seat(n: number): Promise<Wire> {
    const lines = () => (existsSync(outside("seats")) ? readFileSync(outside("seats"), "utf8").split("\n") : []);
    await until(() => lines().length > n, `seat ${n}`);
    const [socket = "", token = ""] = lines()[n - 1]!.split(" ");
    return wireTo(socket, { token });
  }

  test("4, 8.1, 8.4: a credential per seat, one identical brief, a reason is owed, and how it all shows", async () => {
    await Bun.write(outside("seat.sh"), seatScript);
    const id = await stage.post("panel", { flow: "panel" });
    const first = await seat(1);
    const run = (await wire.ok("wait", { run: id }))["id"];
    const brief = await first.ok("brief");
    expect(brief).toMatchObject({ run, stage: { name: "review", attempt: 1, result_check: "panel" } });
    const [done] = brief["definition_of_done"] as [string];
    expect(done).toMatch(/reported verdict.*not yours to change/);
    expect(done.toLowerCase()).not.toContain("commit");
    for (const reason of [undefined, null, "", " \n\t"]) {
      const args = reason === undefined ? { verdict: "pass" } : { verdict: "pass", reason };
      expectRefusal(await first.refused("verdict", args), "invalid_arguments", "--reason");
    }
    expect(await first.ok("verdict", { verdict: "pass", reason: "  reads well\n", confidence: null })).toEqual({
      verdict: { run, stage: "review", reviewer: 0, verdict: "pass", confidence: "medium", reason: "reads well" },
    });
    const twice = await first.refused("verdict", { verdict: "fail", reason: "no" });
    expectRefusal(twice, "conflict", "`review`", "already reported");
    await Bun.write(outside("seat.1.go"), "");
    const second = await seat(2);
    expect(await second.ok("brief")).toEqual(brief);
    expectRefusal(await first.refused("brief"), "unauthorized", denied);
    expect(await second.ok("verdict", { verdict: "pass", reason: "fine", confidence: "low" })).toMatchObject({
      verdict: { reviewer: 1 },
    });
    await Bun.write(outside("seat.2.go"), "");
    expect(await stage.settled(id)).toMatchObject({ state: "needs_review", exit_code: 0 });
    const { stages } = (await stage.value(`${id}-r1`)) as { stages: Json[] };
    expect(stages[1]).toMatchObject({
      stage: "review",
      state: "passed",
      attempt: 1,
      exit_code: null,
      verdict_source: "panel",
      confidence: null,
      reason: "panel: 2 of 3 reviewers passed, quorum 2",
      reviewers: [
        { reviewer: 0, target: "seat", verdict: "pass", confidence: "medium", reason: "reads well" },
        { reviewer: 1, target: "seat", verdict: "pass", confidence: "low", reason: "fine" },
        { reviewer: 2, target: "mute", verdict: "fail", confidence: null, reason: "no verdict reported" },
      ],
    });
    // Panel reviewers are no agent stage: their output is `stage`'s (9.1).
    const { entries } = (await wire.ok("logs", { run: id, stage: "review" })) as { entries: Json[] };
    for (const entry of entries) expect(entry["source"]).toBe("stage");
  });
});

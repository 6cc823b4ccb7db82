// protocol.md 6.6, 6.7, 6.9, 7.14: vendor rejections and cooldowns, silence and stall, and `reindex`.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../../support/until.ts";
import { commit, meet, openStage, startMs } from "./stage.ts";
import { expectRefusal, type Json } from "./wire.ts";

setDefaultTimeout(60_000);

const minute = 60_000;
const at = (ms: number) => new Date(ms).toISOString().replace(/\.?0*Z$/, "Z");

const limit = `echo '{"type":"assistant","is_api_error_message":true,"text":"You'"'"'ve hit your limit"}'; echo '{"type":"result","is_error":true}'; exit 1`;
const unauthenticated = `echo 'unexpected status 401 Unauthorized: Missing bearer or basic authentication in header' >&2; exit 1`;
const broken = `echo 'Unexpected server error. Check server logs for details.' >&2; exit 1`;
const claude = {
  class: "rate_limited",
  vendor: "claude",
  rule_id: "claude.rate-limit.usage-limit",
  diagnostic: "Claude usage limit reached",
};

describe("6.6 classification", () => {
  test("6.6, 6.3 E, 6.7, 14.10: a usage limit cools the target for five minutes; the ticket is queued again", async () => {
    await using stage = await openStage({ clock: true });
    const { wire } = stage;
    stage.agent("TICK-1", limit);
    await stage.post("limited");
    const ended = await stage.settled("TICK-1-r1");
    expect(ended).toMatchObject({
      state: "rate_limited",
      reason: claude.diagnostic,
      classification: claude,
      exit_code: 1,
    });
    const until5 = startMs + 5 * minute;
    const reason = `target \`sh\` is cooling down until ${at(until5)}: ${claude.diagnostic}`;
    await stage.post("blocked", { front: "blocked_by: [TICK-1]", trigger: { kind: "manual" } });
    expect(await stage.row("TICK-1")).toMatchObject({
      state: "ready",
      reason,
      classification: claude,
      run: null,
      run_id: null,
    });
    expect(await stage.row("TICK-2")).toMatchObject({ state: "blocked", reason, classification: null });
    const status = await wire.ok("status");
    expect(status).toMatchObject({
      gate: { cooldowns: [{ target: "sh", until_ms: until5, reason: claude.diagnostic }] },
      next_wake: at(until5),
      dispatch: { at: at(until5), cause: "cooldown" },
      queued_triggers: [{ ticket: "TICK-1" }],
    });
    expect(Object.keys(status["dispatch"] as Json).sort()).toEqual(["at", "cause"]);
    expect(await stage.value("TICK-1")).toMatchObject({
      state: "ready",
      reason: claude.diagnostic,
      classification: claude,
    });
    const detail = await stage.value("TICK-1-r1");
    expect(detail).toMatchObject({ reason: claude.diagnostic, classification: claude, state: "rate_limited" });
    const [summary] = (await stage.value("TICK-1"))["runs"] as Json[];
    expect(String(summary!["reason"])).not.toContain("Claude");
    // Once it is over the ticket no longer shows it, the run always does.
    stage.agent("TICK-1", `${meet}; ${commit}`);
    stage.setNow(until5);
    await stage.worker("TICK-1");
    expect((await wire.ok("status"))["gate"]).toMatchObject({ cooldowns: [] });
    stage.go("TICK-1");
    await stage.settled("TICK-1-r2");
    expect(await stage.row("TICK-1")).toMatchObject({ state: "merged", classification: null });
    expect(await wire.ok("wait", { run: "TICK-1-r1" })).toMatchObject({ classification: claude });
  });

  test("6.6, 6.3 A: other rejections: failed, told in row and detail; the unclassified one cools down", async () => {
    await using stage = await openStage();
    const { wire } = stage;
    stage.agent("TICK-1", unauthenticated);
    await stage.post("unauthenticated");
    expect(await stage.settled("TICK-1")).toMatchObject({ state: "failed" });
    const codex = {
      class: "authentication_required",
      vendor: "codex",
      rule_id: "codex.authentication.missing-header",
      diagnostic: "Codex authentication is missing or expired",
    };
    const reason = `${codex.diagnostic}; failed after 1 attempt(s); requeue with \`sloop retry\``;
    expect(await stage.row("TICK-1")).toMatchObject({ state: "failed", reason, classification: codex });
    expect(await stage.value("TICK-1")).toMatchObject({ reason: codex.diagnostic, classification: codex });
    const { tickets } = (await stage.value("default")) as { tickets: Json[] };
    expect(tickets[0]).toMatchObject({ reason: codex.diagnostic, classification: codex });
    expect((await wire.ok("status"))["gate"]).toMatchObject({ cooldowns: [] });
    await wire.ok("retry", { ticket: "TICK-1" });
    expect(await stage.row("TICK-1")).toMatchObject({ state: "ready", classification: null });
    stage.agent("TICK-2", broken);
    await stage.post("broken");
    expect(await stage.settled("TICK-2")).toMatchObject({
      state: "rate_limited",
      classification: {
        class: "unknown_rejection",
        vendor: "opencode",
        rule_id: "opencode.rejection.unexpected-server-error",
        diagnostic: "OpenCode rejected the request with an unclassified server error",
      },
    });
    // Not the class of this ticket's own latest run: it shows none, though its target cools down.
    expect(await stage.row("TICK-1")).toMatchObject({ classification: null });
    await wire.ok("pause");
  });
});

describe("6.9 silence", () => {
  test("6.9, 6.8: silent_for_ms on the running row only, and a stall that ends the run", async () => {
    await using stage = await openStage({ clock: true, config: "scheduler: { cancel_grace: 1s, stall_after: 45m }" });
    const { wire } = stage;
    stage.agent("TICK-1", `echo hello; ${meet}; sleep 300`);
    await stage.post("silent");
    await stage.worker("TICK-1");
    const record = await until(async () => {
      const { entries } = (await wire.ok("logs", { run: "TICK-1" })) as { entries: Json[] };
      const { state } = await wire.ok("wait", { run: "TICK-1" });
      return state === "running" ? entries[0] : undefined;
    }, "the first line");
    const silent = async () => {
      const { stages } = (await stage.value("TICK-1-r1")) as { stages: Json[] };
      expect(stages[1]).toMatchObject({ stage: "merge", silent_for_ms: null });
      const [run] = ((await wire.ok("status")) as { runs: Json[] }).runs;
      expect((run!["stages"] as Json[])[0]!["silent_for_ms"]).toBe(stages[0]!["silent_for_ms"]);
      return stages[0]!["silent_for_ms"];
    };
    expect(await silent()).toBeNull();
    stage.setNow(startMs + 10 * minute - 1);
    expect(await silent()).toBeNull();
    stage.setNow(startMs + 10 * minute);
    expect(await silent()).toBe(10 * minute);
    stage.setNow(startMs + 44 * minute);
    expect(await silent()).toBe(44 * minute);
    stage.setNow(startMs + 45 * minute);
    expect(await stage.settled("TICK-1")).toMatchObject({ state: "failed" });
    const stall = {
      stage: "build",
      last_output_at_ms: startMs,
      threshold_ms: 45 * minute,
      last_output_sequence: record["sequence"],
    };
    const reason = "stalled: no output for 45m";
    expect(await stage.value("TICK-1-r1")).toMatchObject({ state: "failed", stall, reason });
    expect(await stage.value("TICK-1")).toMatchObject({ runs: [{ stall, reason }] });
  });
});

describe("7.14 reindex", () => {
  test("7.14: the reply, what it changes, what it holds and why, and what it drops", async () => {
    await using stage = await openStage({ paused: true });
    const { wire, scene } = stage;
    const path = (stem: string) => `.agents/sloop/tickets/${stem}.md`;
    for (const stem of [
      "stays",
      "held-by-hand",
      "goes",
      "breaks-flow",
      "breaks-target",
      "breaks-project",
      "breaks-blocker",
    ]) {
      await stage.post(stem, { trigger: { kind: stem === "held-by-hand" ? "hold" : "manual" } });
    }
    expect(await wire.ok("reindex")).toEqual({
      projects_indexed: 1,
      tickets_indexed: 7,
      tickets_state_changed: 0,
      state_changes: [],
      rows_dropped: 0,
    });
    const edit = (stem: string, from: string | RegExp, to: string) =>
      scene.write(path(stem), scene.read(path(stem)).replace(from, to));
    edit("breaks-flow", "flow: default", "flow: x");
    edit("breaks-target", "blocked_by: []", "blocked_by: []\ntarget: x");
    edit("breaks-project", "project: default", "project: x");
    edit("breaks-blocker", "blocked_by: []", "blocked_by: [x]");
    scene.write(path("Not a slug"), "---\nname: n\nblocked_by: []\nid: SLUG-1\n---\nx\n");
    scene.write(path("brand-new"), "---\nname: n\nblocked_by: []\n---\nx\n");
    await Bun.file(`${scene.root}/${path("goes")}`).delete();
    const done = await wire.ok("reindex");
    const changed = ["TICK-4", "TICK-5", "TICK-6", "TICK-7"].map((ticket) => ({
      ticket,
      previous_state: "ready",
      state: "held",
    }));
    expect(done).toMatchObject({ projects_indexed: 1, tickets_state_changed: 4, state_changes: changed });
    expect(done["tickets_indexed"]).toBe(8);
    const reasons: [string, string, string][] = [
      ["TICK-4", "breaks-flow", "flow `x` is not defined"],
      ["TICK-5", "breaks-target", "agent target `x` is not configured"],
      ["TICK-6", "breaks-project", "project `x` is not indexed"],
      ["TICK-7", "breaks-blocker", "references unknown ticket `x`"],
      ["SLUG-1", "Not a slug", "is not a valid worktree slug"],
    ];
    for (const [id, stem, literal] of reasons) {
      const row = await stage.row(id);
      expect(row["state"]).toBe("held");
      expect(row["reason"]).toContain(path(stem));
      expect(row["reason"]).toContain(literal);
    }
    expect(scene.read(path("Not a slug"))).not.toContain("worktree:");
    expect(scene.read(path("brand-new"))).toMatch(/\nid: TICK-[0-9]+\n/);
    expect(await stage.row("TICK-2")).toMatchObject({ state: "held", reason: expect.stringContaining("operator") });
    edit("breaks-flow", "flow: x", "flow: default");
    expect(await wire.ok("reindex")).toMatchObject({
      state_changes: [{ ticket: "TICK-4", previous_state: "held", state: "ready" }],
    });
    expect((await wire.ok("status"))["queued_triggers"]).toEqual([]);
  });

  test("7.14: branches decide: merged when all has landed, else needs_review", async () => {
    await using stage = await openStage({ flows: { plain: "stages:\n  - { name: build, action: agent }\n" } });
    const { wire, scene } = stage;
    await stage.post("lands", { flow: "plain" });
    await stage.settled("TICK-1");
    const { branch } = (await stage.value("TICK-1-r1")) as { branch: string };
    await stage.stop();
    scene.git("merge", "-q", "--squash", branch);
    scene.git("commit", "-qm", "squashed");
    await scene.data(["daemon"]);
    expect(await wire.ok("reindex")).toMatchObject({
      state_changes: [{ ticket: "TICK-1", previous_state: "needs_review", state: "merged" }],
    });
  });

  test("7.14 errors: active runs; ids twice, cycles, no project", async () => {
    await using stage = await openStage();
    const { wire, scene } = stage;
    stage.agent("TICK-1", `${meet}; ${commit}`);
    await stage.post("active");
    await stage.worker("TICK-1");
    const error = await wire.refused("reindex");
    expectRefusal(error, "conflict", "1", "TICK-1-r1", "sloop reindex --wait", "sloop cancel");
    stage.go("TICK-1");
    await stage.settled("TICK-1");
    const file = (stem: string, front: string) =>
      scene.write(`.agents/sloop/tickets/${stem}.md`, `---\nname: n\n${front}\n---\nx\n`);
    file("a", "id: A\nblocked_by: []");
    file("b", "id: A\nblocked_by: []");
    expectRefusal(await wire.refused("reindex"), "internal", "cannot reindex tickets", "`A`");
    file("a", "id: A\nblocked_by: [B]");
    file("b", "id: B\nblocked_by: [A]");
    expectRefusal(await wire.refused("reindex"), "internal", "cannot reindex tickets");
    file("b", "id: B\nblocked_by: []");
    await Bun.file(`${scene.root}/.agents/sloop/projects/default.md`).delete();
    const none = await wire.refused("reindex");
    expectRefusal(none, "internal");
    expect(none.message).toStartWith("cannot reindex projects");
  });
});

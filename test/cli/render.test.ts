// Replies as text: every layout example of the specification, and the rules between them.

import { expect, test } from "bun:test";
import { renderReply, type View } from "../../src/cli/render.ts";
import { coloured, plain } from "../../src/cli/style.ts";
import type { Dashboard } from "../../src/protocol/replies.ts";
import { activeRun, at, emptyDashboard, row, runDetail, stage, strip, ticketDetail } from "./fixtures.ts";

const view: View = { style: plain, now: at("14:08:03"), terminal: false, version: "1.0.0", ref: null, filtered: false };
const show = (data: unknown, more: Partial<View> = {}) => renderReply("show", data, { ...view, ...more });
const lines = (...text: string[]) => text.join("\n");

const noTrigger = "ready but no queued trigger; enqueue with `sloop run`";

const dashboard: Dashboard = {
  ...emptyDashboard,
  gate: { ...emptyDashboard.gate, active_agents: 2, max_agents: 2 },
  tickets: { ready: 1, held: 0, blocked: 0, claimed: 2, merged: 18, failed: 1, needs_review: 1 },
  dispatch: { at: new Date(at("14:50:03")).toISOString(), cause: "cooldown" },
  runs: [
    activeRun("TICK-31-r1", "Split audit table", {
      started_at_ms: at("14:02"),
      stages: [strip("build", "passed"), strip("test", "running"), strip("merge", "pending")],
    }),
    activeRun("TICK-30-r2", "Cache avatars", {
      state: "driving",
      started_at_ms: at("13:39:53"),
      stages: [
        strip("build", "passed"),
        strip("build", "running", { attempt: 2, silent_for_ms: 754_000 }),
        strip("merge", "pending"),
      ],
    }),
  ],
  attention: [
    row("TICK-29", "Trim the image", { state: "needs_review" }),
    row("TICK-27", "Fix flaky upload", {
      state: "failed",
      reason: "failed after 1 attempt(s); requeue with `sloop retry`",
    }),
  ],
  recent: [
    row("TICK-33", "Rotate signing keys", { reason: noTrigger }),
    row("TICK-31", "Split audit table", { state: "claimed", run: "TICK-31-r1", reason: "claimed by run TICK-31-r1" }),
    row("TICK-30", "Cache avatars", { state: "claimed", run: "TICK-30-r2", reason: "claimed by run TICK-30-r2" }),
  ],
  recent_total: 23,
  recent_limit: 3,
};

test("the dashboard", () => {
  expect(show(dashboard)).toBe(
    lines(
      "daemon: pid 48211 running - 2/2 agents active - dispatch in 42m0s (cooldown ends)",
      "tickets: 1 ready, 2 claimed, 1 failed, 1 needs_review, 18 merged",
      "",
      "runs:",
      "  TICK-31-r1  running  14:02-... (6m3s)  build:ok -> test:.. -> merge:-  Split audit table",
      "  TICK-30-r2  driving  13:39-... (28m10s)  build:ok -> build#2:running (no output 12m34s) -> merge:-  Cache avatars",
      "",
      "attention:",
      "  TICK-29  needs_review  Trim the image",
      "  TICK-27  failed        Fix flaky upload  — failed after 1 attempt(s); requeue with `sloop retry`",
      "",
      "recent:",
      "  TICK-33  ready    Rotate signing keys  — ready but no queued trigger; enqueue with `sloop run`",
      "  TICK-31  claimed  Split audit table",
      "  TICK-30  claimed  Cache avatars",
      "",
      "20 more - `sloop show -23` for all - `sloop show <ref>` for detail",
    ),
  );
});

test("an empty dashboard", () => {
  expect(show(emptyDashboard)).toBe(
    lines(
      "daemon: pid 48211 running - 0/1 agents active - dispatch idle — new posts dispatch immediately",
      "tickets: 0 ready",
      "",
      "recent:",
      "  no tickets",
      "",
      "`sloop show <ref>` for detail",
    ),
  );
});

const head = (more: object) => show({ ...emptyDashboard, ...more }).split("\n");

test.each([
  [{ daemon: { pid: 7, paused: true, draining: false } }, "daemon: pid 7 paused - 0/1 agents active"],
  [{ daemon: { pid: 7, paused: true, draining: true } }, "daemon: pid 7 draining - 0/1 agents active"],
])("a daemon that dispatches nothing says no time: %j", (more, line) => {
  expect(head({ ...more, dispatch: dashboard.dispatch })[0]).toBe(line);
});

test.each([
  [{ cause: "running_hours", waiting: 0 }, "in 42m0s (hours open)"],
  [{ cause: "running_hours", waiting: 1 }, "in 42m0s (hours open, 1 post waiting)"],
  [{ cause: "running_hours", waiting: 3 }, "in 42m0s (hours open, 3 posts waiting)"],
  [{ cause: "scheduled_trigger", trigger: "TICK-9" }, "in 42m0s (scheduled post TICK-9)"],
  [{ cause: "scheduled_trigger", trigger: null }, "in 42m0s (scheduled post)"],
  [{ cause: "eclipse" }, "in 42m0s"],
  [{ cause: "cooldown", at: "2026-01-01T00:00:00Z" }, "imminent (cooldown ends)"],
  [{ cause: "cooldown", at: "soon" }, "soon (cooldown ends)"],
])("dispatch %j", (dispatch, text) => {
  const [line] = head({ dispatch: { at: dashboard.dispatch?.at, ...dispatch } });
  expect(line).toBe(`daemon: pid 48211 running - 0/1 agents active - dispatch ${text}`);
});

test("what is abnormal stands under the counts", () => {
  const gate = {
    ...emptyDashboard.gate,
    storage: { writable: false, reason: "database_full" },
    running_hours: { start: "22:00", end: "06:00", open: false },
  };
  expect(head({ gate }).slice(1, 5)).toEqual([
    "tickets: 0 ready",
    "storage: database full (dispatch is blocked until space is free)",
    "running hours: 22:00-06:00 (closed)",
    "",
  ]);
  const open = { ...emptyDashboard.gate, running_hours: { start: "22:00", end: "06:00", open: true } };
  expect(head({ gate: open })[2]).toBe("");
});

test("rows of a pattern; the project stands there only when there are several", () => {
  const tickets = [
    row("TICK-33", "Rotate signing keys", { reason: noTrigger }),
    row("TICK-32", "Paginate audit log", { project: "api", state: "blocked", reason: "blocked by unmerged TICK-31" }),
    row("TICK-31", "Split audit table", { project: "api", state: "claimed", run: "TICK-31-r1", reason: "claimed by" }),
    row("TICK-9", "Drop legacy header", { project: "api", state: "merged", reason: "never shown" }),
  ];
  expect(show({ kind: "matches", ref: "x", tickets })).toBe(
    lines(
      "TICK-33  ready    (default)  Rotate signing keys  — ready but no queued trigger; enqueue with `sloop run`",
      "TICK-32  blocked  (api)  Paginate audit log  — blocked by unmerged TICK-31",
      "TICK-31  claimed  (api)  Split audit table",
      "TICK-9   merged   (api)  Drop legacy header",
    ),
  );
  expect(show({ kind: "matches", ref: "x", tickets: tickets.slice(2) })).toBe(
    lines("TICK-31  claimed  Split audit table", "TICK-9   merged   Drop legacy header"),
  );
  expect(show({ kind: "matches", ref: "x", tickets: [] })).toBe("no tickets");
});

test("list names the run, and says when nothing matches", () => {
  const tickets = [
    row("TICK-31", "Split", { state: "claimed", run: "TICK-31-r1", reason: "claimed by run TICK-31-r1" }),
  ];
  expect(renderReply("list", { tickets }, view)).toBe("TICK-31  claimed  Split  — running as TICK-31-r1");
  expect(renderReply("list", { tickets: [] }, view)).toBe("no tickets");
  expect(renderReply("list", { tickets: [] }, { ...view, filtered: true })).toBe("no tickets match");
});

test("wide letters take two columns", () => {
  const tickets = [row("日本-1", "a"), row("TICK-100", "b")];
  expect(renderReply("list", { tickets }, view)).toBe(lines("日本-1    ready  a", "TICK-100  ready  b"));
});

test("ticket detail", () => {
  expect(show({ kind: "ticket", ref: "TICK-27", value: ticketDetail })).toBe(
    lines(
      "TICK-27  Fix flaky upload  (failed)",
      "project: default",
      "worktree: sloop/fix-flaky-upload",
      "blocked_by: TICK-12, TICK-20",
      "target: codex",
      "model: gpt-5.6-sol",
      "effort: high",
      "reason: Codex authentication is missing or expired",
      "runs:",
      "  TICK-27-r2  failed     09:10-09:31  build:ok -> lint:warn -> test:FAIL -> merge:-",
      "  TICK-27-r1  cancelled  07-30 23:50-07-31 00:12  build:- -> lint:- -> test:- -> merge:-",
      "",
      "The upload test fails one time in twenty.",
    ),
  );
});

test("a ticket without runs says so, one without the key says nothing", () => {
  const bare = { ...ticketDetail, blocked_by: [], target: null, model: null, effort: null, reason: null, body: "" };
  const start = lines("TICK-27  Fix flaky upload  (failed)", "project: default", "worktree: sloop/fix-flaky-upload");
  expect(show({ kind: "ticket", ref: "x", value: { ...bare, runs: [] } })).toBe(`${start}\nruns: none`);
  const { runs: _runs, ...without } = bare;
  expect(show({ kind: "ticket", ref: "x", value: without })).toBe(start);
});

test("run detail", () => {
  const value = { ...runDetail, note: "showing TICK-27-r2; earlier attempts: r1" };
  expect(show({ kind: "run", ref: "TICK-27", value })).toBe(
    lines(
      "showing TICK-27-r2; earlier attempts: r1",
      "TICK-27-r2  (failed)",
      "ticket: TICK-27  Fix flaky upload",
      "branch: sloop/TICK-27-a2-9be01f44",
      "worktree: /home/ana/dev/app/.worktrees/9be01f44",
      "timeline: claimed 09:10  started 09:10  finished 09:31",
      "agent exit: 0",
      "reason: stage `test` failed (exit 1) after agent completed with commits",
      "stages:",
      "  build   passed   09:10-09:22  12m13s  exit 0  verdict from exit_code",
      "  lint    failed   09:22-09:22  4s  exit 2  advisory  verdict from exit_code",
      "  review  passed   09:22-09:27  5m1s  verdict from reported  confidence low",
      "  test    failed   09:27-09:31  4m0s  exit 1  verdict from exit_code",
      "  merge   pending  -",
    ),
  );
});

test("a stalled run, saved files, a running stage, dates of other days, an unknown ticket name", () => {
  const value = {
    ...runDetail,
    ticket_name: null,
    branch: null,
    worktree: null,
    claimed_at_ms: at("07-30 23:50"),
    started_at_ms: null,
    finished_at_ms: null,
    exit_code: null,
    stall: { stage: "build", last_output_at_ms: 0, threshold_ms: 30_000, last_output_sequence: null },
    reason: "stalled: no output for 30s",
    wip: { ref: "refs/sloop/wip/9be01f44", files: 3 },
    stages: [stage("a", "running", { started_at_ms: at("14:02"), silent_for_ms: 301_000 })],
  };
  expect(show({ kind: "run", ref: "x", value })).toBe(
    lines(
      "TICK-27-r2  (failed (stalled: no output for 30s))",
      "ticket: TICK-27",
      "timeline: claimed 07-30 23:50",
      "reason: stalled: no output for 30s",
      "3 uncommitted files saved as refs/sloop/wip/9be01f44",
      "stages:",
      "  a      running  14:02-... (6m3s)  (no output 5m1s)",
    ),
  );
  expect(show({ kind: "run", ref: "x", value: { ...value, wip: { ref: "r", files: 1 } } })).toContain(
    "\n1 uncommitted file saved as r\n",
  );
});

test("panel seats follow their stage, silent ones included", () => {
  const value = {
    ...runDetail,
    stages: [
      stage("review", "failed", {
        started_at_ms: at("10:02"),
        finished_at_ms: at("10:09"),
        duration_ms: 420_000,
        verdict_source: "panel",
        reviewers: [
          { reviewer: 0, target: "claude", verdict: "pass", confidence: "high", reason: "logic holds" },
          { reviewer: 1, target: "opencode", verdict: "fail", confidence: null, reason: "no verdict reported" },
        ],
      }),
    ],
  };
  expect(show({ kind: "run", ref: "x", value }).split("\n").slice(-3)).toEqual([
    "  review  failed   10:02-10:09  7m0s  verdict from panel",
    "    claude    pass  confidence high  logic holds",
    "    opencode  fail  no verdict reported",
  ]);
});

test("project detail", () => {
  const ticket = (id: string, name: string, state: string, more: object = {}) => {
    return { id, name, state, reason: null, classification: null, notes: [], commits: [], ...more };
  };
  const value = {
    id: "api",
    title: "Public API",
    file: null,
    tickets: [
      ticket("TICK-32", "Paginate audit log", "blocked"),
      ticket("TICK-31", "Split audit table", "claimed", {
        notes: [{ id: "N4", run: "TICK-31-r1", run_id: "x", text: "migration drafted", recorded_at_ms: 0 }],
        commits: [{ run: "TICK-31-r1", run_id: "x", hash: "3fa9c01", message: "split audit table" }],
      }),
    ],
  };
  expect(show({ kind: "project", ref: "api", value })).toBe(
    lines(
      "project Public API (api)",
      "",
      "TICK-32  Paginate audit log  (blocked)",
      "",
      "TICK-31  Split audit table  (claimed)",
      "  note N4 [TICK-31-r1]: migration drafted",
      "  commit 3fa9c01 [TICK-31-r1]: split audit table",
    ),
  );
  expect(show({ kind: "project", ref: "api", value: { ...value, tickets: [] } })).toBe(
    "project Public API (api)\nno tickets",
  );
});

test("colour changes nothing but escapes and the arrow", () => {
  const pages = [
    dashboard,
    { kind: "ticket", ref: "x", value: ticketDetail },
    { kind: "run", ref: "x", value: { ...runDetail, stall: { threshold_ms: 30_000 } } },
  ];
  for (const data of pages) {
    const text = show(data, { style: coloured });
    expect(text).toContain("\x1b[31mfailed\x1b[0m");
    expect(Bun.stripANSI(text).replaceAll("→", "->")).toBe(show(data));
  }
  const text = show(pages[1], { style: coloured });
  expect(text).toContain("build:\x1b[32mok\x1b[0m → lint:\x1b[33mwarn\x1b[0m → test:\x1b[31mFAIL\x1b[0m → merge:-");
});

test("control characters are shown on a terminal and passed on elsewhere", () => {
  const tickets = [row("TICK-1", "a\x1b[31mb\x07\tc")];
  expect(renderReply("list", { tickets }, view)).toContain("a\x1b[31mb\x07\tc");
  expect(renderReply("list", { tickets }, { ...view, terminal: true })).toContain("a\\x1b[31mb\\x07\tc");
});

test.each([
  ["show", { kind: "hologram", ref: "x" }],
  ["show", { kind: "run", ref: "x", value: { alias: 3 } }],
  ["list", { tickets: "many" }],
  ["daemon", { pid: "1" }],
  ["status", { anything: true }],
] as const)("%s in an unknown shape is printed whole: %j", (verb, data) => {
  expect(renderReply(verb, data, view)).toBe(JSON.stringify(data, null, 2));
});

test("a run that ended before anything ran had no agent that exited", () => {
  const stages = ["build", "merge"].map((name) => stage(name, "pending"));
  const text = renderReply("show", { kind: "run", ref: "x", value: { ...runDetail, stages } }, view);
  expect(text).not.toContain("agent exit");
  expect(renderReply("show", { kind: "run", ref: "x", value: { ...runDetail, stages: [] } }, view)).toContain(
    "\nagent exit: 0\n",
  );
});

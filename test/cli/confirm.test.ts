// Confirmations, events and captured output as text.

import { expect, test } from "bun:test";
import { renderEvent, renderEvents, renderLogs } from "../../src/cli/feed.ts";
import { quoteWord } from "../../src/cli/quote.ts";
import { renderReply, type View } from "../../src/cli/render.ts";
import { plain } from "../../src/cli/style.ts";
import type { FeedEvent, LogsPage } from "../../src/protocol/replies.ts";
import type { Verb } from "../../src/protocol/verbs.ts";
import { at } from "./fixtures.ts";

const view: View = { style: plain, now: at("14:08"), terminal: false, version: "1.0.0", ref: null, filtered: false };
const said = (verb: Verb, data: unknown) => renderReply(verb, data, view);

const daemon = {
  pid: 48211,
  socket: "/run/s",
  state_dir: "/state",
  log: "/state/logs/daemon.ndjson",
  version: "1.0.0",
};

const posted = {
  ticket: { id: "TICK-33", file: ".agents/sloop/tickets/rotate-keys.md", project: "default", state: "ready" },
  created: true,
  file_rewritten: false,
  trigger: { id: "TR95", kind: "auto", state: "queued", ticket: "TICK-33" },
  trigger_suppressed: null,
};

const first = "ticket TICK-33 registered from .agents/sloop/tickets/rotate-keys.md (project default, ready)";

test.each([
  [
    "daemon",
    { ...daemon, started: true },
    "daemon started (pid 48211)\nsocket: /run/s\nlog: /state/logs/daemon.ndjson\nstate: /state",
  ],
  [
    "daemon",
    { ...daemon, started: false, control: "127.0.0.1:99" },
    "daemon running (pid 48211)\nsocket: /run/s\nlog: /state/logs/daemon.ndjson\nstate: /state\ncontrol: 127.0.0.1:99",
  ],
  ["stop", { stopping: true, pid: 7, cancelled_runs: [] }, "daemon stopping (pid 7)"],
  [
    "stop",
    { stopping: true, pid: 7, cancelled_runs: ["TICK-1-r1", "TICK-2-r1"] },
    "daemon stopping (pid 7)\n  cancelled: TICK-1-r1\n  cancelled: TICK-2-r1",
  ],
  ["pause", { paused: true }, "scheduler paused"],
  ["resume", { paused: false, restart_cancelled: false }, "scheduler resumed"],
  ["resume", { paused: false, restart_cancelled: true }, "scheduler resumed\npending restart cancelled"],
  ["retry", { ticket: "TICK-27", previous_state: "failed", state: "ready" }, "ticket TICK-27: failed -> ready"],
  ["hold", { ticket: "T", previous_state: "held", state: "held", overridden: false }, "ticket T: held -> held"],
  [
    "cancel",
    { id: "x", alias: "TICK-31-r1", state: "cancelling", worktree: "/r/.worktrees/9be01f44", preserved: true },
    "run TICK-31-r1 cancelling\nworktree preserved at /r/.worktrees/9be01f44",
  ],
  ["cancel", { id: "x", alias: "A-r1", state: "cancelling", worktree: null, preserved: true }, "run A-r1 cancelling"],
  ["post", posted, `${first}\ntrigger TR95 queued (auto, ticket TICK-33)`],
  ["post", { ...posted, created: false, trigger: null }, first.replace("registered", "updated")],
  [
    "post",
    { ...posted, trigger: null, trigger_suppressed: { reason: "terminal_ticket", state: "merged" } },
    `${first}\nno trigger queued: TICK-33 is merged`,
  ],
  [
    "post",
    { ...posted, trigger: null, trigger_suppressed: { reason: "terminal_ticket", state: "failed" } },
    `${first}\nno trigger queued: TICK-33 is failed; \`sloop retry TICK-33\` returns it to ready`,
  ],
  ["run", { trigger: { id: "TR1", kind: "now", state: "queued" } }, "trigger TR1 queued (now)"],
  [
    "run",
    {
      trigger: {
        id: "TR2",
        kind: "at",
        state: "queued",
        project: "api",
        local_time: "03:00",
        eligible_at_ms: at("03:00"),
      },
    },
    "trigger TR2 queued (at, project api, time 03:00, due 08-02 03:00)",
  ],
  [
    "run",
    { trigger: { id: "TR3", kind: "every", state: "queued", interval_ms: 1_800_000, eligible_at_ms: at("15:00") } },
    "trigger TR3 queued (every, due 08-02 15:00, every 30m)",
  ],
  [
    "run",
    { trigger: { id: "TR4", kind: "every", state: "queued", interval_ms: 500 } },
    "trigger TR4 queued (every, every 500ms)",
  ],
] as [Verb, unknown, string][])("%s %j", (verb, data, text) => {
  expect(said(verb, data)).toBe(text);
});

test("a rewritten file is to be committed, and only then is that said", () => {
  expect(said("post", { ...posted, file_rewritten: true })).toContain("commit it");
  expect(said("post", posted)).not.toContain("commit it");
});

test("a daemon of another version is named", () => {
  const text = said("daemon", { ...daemon, version: "0.9.0", started: false });
  expect(text.split("\n").at(-1)).toContain("the daemon is 0.9.0, this sloop is 1.0.0");
});

const run = "9be01f44d1a04d0c8a2e6f1b7c3d5e90";

function event(kind: string, more: Partial<FeedEvent> = {}): FeedEvent {
  return {
    sequence: 1,
    occurred_at_ms: Date.UTC(2026, 7, 2, 9, 12, 44),
    kind: kind as FeedEvent["kind"],
    run,
    ticket: "TICK-31",
    data: {},
    alias: "TICK-31-r1",
    ...more,
  };
}

test.each([
  [event("run_claimed", { data: { attempt: 1 } }), "TICK-31 claimed by TICK-31-r1 (attempt 1)"],
  [event("run_started"), "TICK-31-r1 started on TICK-31"],
  [
    event("run_finished", { data: { outcome: "merged", exit_code: 0, ticket_state: "merged" } }),
    "TICK-31-r1 finished: merged (TICK-31 -> merged)",
  ],
  [event("run_aborted"), "TICK-31-r1 aborted before launch (TICK-31 back to ready)"],
  [event("run_worktree_cleaned"), "TICK-31-r1 worktree and branch removed"],
  [event("external_merge_reconciled"), "external_merge_reconciled run=TICK-31-r1 ticket=TICK-31"],
  [event("solar_flare", { run: null, ticket: null }), "solar_flare run=TICK-31-r1 ticket=?"],
])("event %#", (value, text) => {
  expect(renderEvent(value)).toBe(`2026-08-02T09:12:44.000Z  ${text}`);
});

test("events without an alias or a run", () => {
  const { alias: _alias, ...anonymous } = event("run_started");
  expect(renderEvent(anonymous)).toEndWith("  9be01f44 started on TICK-31");
  const restart = { ...anonymous, run: null, ticket: null, kind: "daemon_restart_requested" as const };
  expect(renderEvent({ ...restart, data: { active_runs: 1 } })).toEndWith("daemon draining for restart (1 run active)");
  expect(renderEvent({ ...restart, data: { active_runs: 2 } })).toEndWith("(2 runs active)");
});

test("a page that is not the last says how to go on", () => {
  const page = { events: [event("run_started")], next_cursor: 5, latest: 9 };
  expect(renderEvents(page, "Fix it's name").at(-1)).toBe(`more: sloop events --after 5 'Fix it'\\''s name'`);
  expect(renderEvents(page, null).at(-1)).toBe("more: sloop events --after 5");
  expect(renderEvents({ ...page, next_cursor: 9 }, null)).toHaveLength(1);
  expect(said("events", { events: [], next_cursor: 0, latest: 0 })).toBe("");
});

test.each([
  ["TICK-1", "TICK-1"],
  ["-x", "'-x'"],
  ["a b", "'a b'"],
  ["", "''"],
])("%s as a shell word", (text, word) => {
  expect(quoteWord(text)).toBe(word);
});

const base = { timestamp: "2026-08-02T09:12:44.12Z", stream: "stdout" as const, encoding: "utf8" as const };

const page: LogsPage = {
  id: run,
  alias: "TICK-27-r2",
  note: "showing TICK-27-r2; earlier attempts: r1",
  stage: null,
  entries: [
    { ...base, sequence: 1, source: "agent", stage: "build", attempt: 1, text: "compiling\n" },
    { ...base, sequence: 2, source: "stage", stage: "test", attempt: 2, text: "a\n\nb" },
    { ...base, sequence: 3, source: "stage", encoding: "base64", data: "//8=" },
  ],
  next_cursor: 3,
  complete: true,
  elided: 309,
  terminal: false,
};

test("captured output", () => {
  expect(renderLogs(page)).toEqual([
    "showing TICK-27-r2; earlier attempts: r1",
    "[2026-08-02T09:12:44.120Z] [agent:build] compiling",
    "[2026-08-02T09:12:44.120Z] [stage:test#2] a",
    "[2026-08-02T09:12:44.120Z] [stage:test#2]",
    "[2026-08-02T09:12:44.120Z] [stage:test#2] b",
    "[2026-08-02T09:12:44.120Z] [stage] <binary output>",
    "showing the last 3 of 312 entries; --tail N or --follow for more",
  ]);
  expect(renderLogs({ ...page, note: null, elided: 0 }).at(-1)).toContain("<binary output>");
  expect(renderLogs({ ...page, note: null, elided: 0, entries: [] })).toEqual([
    "no output captured for run TICK-27-r2",
  ]);
});

// Project detail: tickets by id as text, notes by age, and the commits a real git can still read.

import { expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProjectDetail } from "../../src/protocol/replies.ts";
import { ask } from "../support/ask.ts";
import { openContext, startMs, type TestDaemon } from "../support/context.ts";
import { addEvidence, addNote, addProject, addRun, addTicket, runId } from "../support/rows.ts";

function git(root: string, ...args: string[]): string {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
  const done = Bun.spawnSync(["git", ...identity, ...args], { cwd: root, stderr: "pipe" });
  if (done.exitCode !== 0) throw new Error(done.stderr.toString());
  return done.stdout.toString().trim();
}

/** A real repository in the daemon's root; returns the ids of one commit per message, oldest first. */
function commits(daemon: TestDaemon, messages: readonly string[]): string[] {
  rmSync(daemon.root, { recursive: true, force: true });
  mkdirSync(daemon.root);
  git(daemon.root, "init", "-q", "-b", "main");
  return messages.map((message, n) => {
    writeFileSync(join(daemon.root, "file"), String(n));
    git(daemon.root, "add", "file");
    git(daemon.root, "commit", "-q", "-m", message);
    return git(daemon.root, "rev-parse", "HEAD");
  });
}

async function projectOf(daemon: TestDaemon, ref: string): Promise<ProjectDetail> {
  const shown = await ask(daemon, "show", { ref });
  if (shown.kind !== "project") throw new Error(`shown: ${shown.kind}`);
  return shown.value;
}

test("an empty one", async () => {
  using daemon = await openContext();
  addProject(daemon, "web", { title: "Web shop", filePath: null, sourceRef: "x" });
  expect(await projectOf(daemon, "web")).toEqual({ id: "web", title: "Web shop", file: null, tickets: [] });
});

test("tickets go by id as text and show the stored state", async () => {
  using daemon = await openContext();
  for (const id of ["TICK-9", "TICK-10", "A"]) addTicket(daemon, id, { projectId: "web" });
  addTicket(daemon, "OTHER");
  addTicket(daemon, "TICK-1", { projectId: "web", blockedBy: ["A"] });
  const { tickets } = await projectOf(daemon, "web");
  expect(tickets.map((ticket) => `${ticket.id} ${ticket.state}`)).toEqual([
    "A ready",
    "TICK-1 ready",
    "TICK-10 ready",
    "TICK-9 ready",
  ]);
});

test("notes and commits, each with its run, in the order they came", async () => {
  using daemon = await openContext();
  const [older, newer] = [runId("ff"), runId("aa")];
  addTicket(daemon, "TICK-8", { projectId: "web", state: "needs_review", name: "Round cart totals" });
  addRun(daemon, newer, { ticketId: "TICK-8", state: "needs_review", attempt: 2, createdAtMs: startMs + 1 });
  addRun(daemon, older, { ticketId: "TICK-8", state: "failed", attempt: 1 });
  addNote(daemon, "N9", { run: newer, text: "second", atMs: startMs + 5 });
  addNote(daemon, "N10", { run: older, text: "first, by id as text", atMs: startMs + 5 });
  addNote(daemon, "N1", { run: newer, text: "last", atMs: startMs + 9 });
  const [one = "", two = "", three = ""] = commits(daemon, ["One\n\nwith a body", "Two", "Three\nsecond line"]);
  addEvidence(daemon, newer, "commits_observed", { data: { complete: true, oids: [one, three] } });
  addEvidence(daemon, older, "commits_observed", {
    data: { complete: false, oids: [two, "b".repeat(40), "-nonsense"] },
  });
  const [ticket] = (await projectOf(daemon, "web")).tickets;
  const [r1, r2] = [
    { run: "TICK-8-r1", run_id: older },
    { run: "TICK-8-r2", run_id: newer },
  ];
  expect(ticket).toEqual({
    id: "TICK-8",
    name: "Round cart totals",
    state: "needs_review",
    reason: null,
    classification: null,
    notes: [
      { id: "N10", ...r1, text: "first, by id as text", recorded_at_ms: startMs + 5 },
      { id: "N9", ...r2, text: "second", recorded_at_ms: startMs + 5 },
      { id: "N1", ...r2, text: "last", recorded_at_ms: startMs + 9 },
    ],
    commits: [
      { ...r1, hash: git(daemon.root, "rev-parse", "--short", two), message: "Two" },
      { ...r2, hash: git(daemon.root, "rev-parse", "--short", one), message: "One" },
      { ...r2, hash: git(daemon.root, "rev-parse", "--short", three), message: "Three" },
    ],
  });
});

test("without a repository there are no commits, and no error", async () => {
  using daemon = await openContext();
  addTicket(daemon, "T", { projectId: "web" });
  addRun(daemon, runId("aa"), { ticketId: "T", state: "merged" });
  addEvidence(daemon, runId("aa"), "commits_observed", { data: { complete: true, oids: ["a".repeat(40)] } });
  rmSync(daemon.root, { recursive: true, force: true });
  expect((await projectOf(daemon, "web")).tickets[0]?.commits).toEqual([]);
});

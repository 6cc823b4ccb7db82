// One real exchange per verb, for the protocol's reference: a daemon is led through a small story, what differs from run to
// run is put in other words. `bun run examples` writes them down, a test sees that they still hold.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../support/bin.ts";
import { until } from "../support/until.ts";
import { commit, meet, openStage, type Stage, startMs, type Worker } from "./conformance/stage.ts";
import { type Json, type Reply, reply } from "./conformance/wire.ts";

/** `name`: the verb, and for `show` what is shown. */
export type Example = { name: string; request: Json; reply: Reply };

export const examplesFile: string = join(projectRoot, "docs/reference/protocol-examples.json");

const minute = 60_000;
const token = "n3Zr0n4PqXyWv1sT8uKcD5eFgHjLmB2aQ7iOoRtYpE0";
const runNames = [
  "c07d1f5e92b84a6c8f13e6a0b9d24571",
  "4be19c02d7aa4f6e9e31c5d80f7a6b12",
  "91d3a6f07c5e4b28b0f4d7e8a2c61935",
  "e5b82c7419f64d3ba7c0158f6e2d9b40",
];

const flows = {
  default: `stages:
  - { name: build, action: agent }
  - { name: test, action: { exec: [sh, -c, 'echo "2 tests failed" >&2; exit 1'] } }
  - { name: merge, action: { builtin: merge } }
`,
  review: "stages:\n  - { name: review, action: agent, result_check: reported }\n",
};

function file(stage: Stage, stem: string, name: string, body: string): string {
  const path = `.agents/sloop/tickets/${stem}.md`;
  stage.scene.write(path, `---\nname: ${name}\nblocked_by: []\n---\n${body}\n`);
  return path;
}

class Story {
  readonly examples: Example[] = [];
  readonly runs: string[] = [];
  readonly stage: Stage;

  constructor(stage: Stage) {
    this.stage = stage;
  }

  async tell(verb: string, args: Json = {}, more: { name?: string; worker?: Worker } = {}): Promise<Json> {
    const { name = verb, worker } = more;
    const request = { v: 1, id: `c-${this.examples.length + 1}`, verb, args, token: worker?.token ?? null };
    const answer = await reply(worker?.socket ?? this.stage.wire.path, JSON.stringify(request));
    this.examples.push({ name, request, reply: answer });
    return answer.data ?? {};
  }

  /** Waits until the run reads `state`, and gives it the next of the stable names. */
  async reached(alias: string, state: string): Promise<void> {
    const found = await until(async () => {
      const { data } = await this.stage.wire.ask("wait", { run: alias });
      return data?.["state"] === state ? data : null;
    }, `${alias} to be ${state}`);
    const id = found["id"] as string;
    if (!this.runs.includes(id)) this.runs.push(id);
  }
}

const now = { trigger: { kind: "now" }, only: [] as string[] };

/** Two runs that end, and what can be asked about them. */
async function firstRuns(story: Story): Promise<void> {
  const { stage } = story;
  stage.agent(
    "TICK-1",
    `echo "Rounding."; sloop note "gift cards are rounded elsewhere" > /dev/null; ${meet}\n${commit}`,
  );
  await story.tell("post", {
    file: file(stage, "cart-totals", "Round cart totals", "Round every cart total to the cent, half up."),
    trigger: { kind: "auto" },
  });
  await stage.worker("TICK-1");
  await story.reached("TICK-1-r1", "running");
  stage.setNow(startMs + 4 * minute);
  stage.go("TICK-1");
  await story.reached("TICK-1-r1", "needs_review");
  await story.tell("wait", { run: "TICK-1" });
  await story.tell("show", { ref: "TICK-1" }, { name: "show, a ticket" });
  await story.tell("show", { ref: "TICK-1-r1" }, { name: "show, a run" });
  await story.tell("logs", { run: "TICK-1", stage: "test", tail: 64 });
  await story.tell("events", { after: 0, scope: "TICK-1" });

  stage.agent("TICK-2", "exit 3");
  const failing = file(stage, "purge-avatars", "Purge avatars", "Purge them.");
  await stage.wire.ok("post", { file: failing, trigger: { kind: "auto" } });
  await story.reached("TICK-2-r1", "failed");
  await story.tell("retry", { ticket: "TICK-2" });
  await story.tell("hold", { ticket: "TICK-2" });
  await story.tell("ready", { ticket: "TICK-2" });
  await story.tell("run", { ...now, trigger: { kind: "every", interval_ms: 1_800_000 }, ticket: "TICK-2" });
  await story.tell("show", { ref: "default" }, { name: "show, a project" });
  await story.tell("show", { ref: "cart|nothing" }, { name: "show, a pattern" });
  await story.tell("list", { limit: 1, states: ["needs_review"] });
  await story.tell("reindex");
}

/** A run that is under way, what its worker says, and how an operator ends it. */
async function workers(story: Story): Promise<void> {
  const { stage } = story;
  stage.agent("TICK-3", `${meet}\n${commit}`);
  const avatars = file(stage, "cache-avatars", "Cache avatars", "Serve avatars from the edge cache.");
  await stage.wire.ok("post", { file: avatars, trigger: { kind: "auto" } });
  const worker = await stage.worker("TICK-3");
  await story.reached("TICK-3-r1", "running");
  await story.tell("status");
  await story.tell("show", { limit: 1 }, { name: "show, the dashboard" });
  await story.tell("brief", {}, { worker });
  await story.tell("show", { ref: "TICK-3" }, { name: "show, as a worker", worker });
  await story.tell("note", { text: "the purge has no test" }, { worker });
  await story.tell("restart");
  await story.tell("resume");
  await story.tell("cancel", { run: "TICK-3" });
  await story.reached("TICK-3-r1", "cancelled");

  stage.agent("TICK-4", meet);
  const review = file(stage, "review-cache", "Review the cache", "Is every purge tested?");
  await stage.wire.ok("post", { file: review, trigger: { kind: "auto" }, flow: "review" });
  const reviewer = await stage.worker("TICK-4");
  await story.reached("TICK-4-r1", "running");
  const args = { verdict: "fail", reason: "no test covers the purge", confidence: "high" };
  await story.tell("verdict", args, { worker: reviewer });
  stage.go("TICK-4");
  await stage.settled("TICK-4-r1");
}

/** What differs from one recording to the next, and what stands for it. */
function substitutions(story: Story, daemon: Json, hashes: readonly string[]): [found: string, put: string][] {
  const { scene, wire } = story.stage;
  const stable = story.runs.map((id, n): [string, string] => [id, runNames[n] ?? id]);
  return [
    [wire.path, "/run/user/1000/sloop/9f0c44d1ab27e36b/operator.sock"],
    [daemon["state_dir"] as string, "/home/ana/.local/state/sloop/repositories/shop-9f0c44d1ab27e36b"],
    [scene.root, "/srv/shop"],
    ...stable,
    ...stable.map(([id, name]): [string, string] => [id.slice(0, 8), name.slice(0, 8)]),
    [`"version":"${daemon["version"]}"`, '"version":"1.0.0"'],
    [`"pid":${daemon["pid"]}`, '"pid":5120'],
    ...hashes.map((hash): [string, string] => [`"hash":"${hash}"`, '"hash":"8d1c4f2"']),
  ];
}

function settled(text: string, pairs: readonly [string, string][]): string {
  const plain = pairs.reduce((said, [found, put]) => said.replaceAll(found, put), text);
  return plain.replace(/"token":"[^"]*"/g, `"token":"${token}"`);
}

/** Leads a daemon through the story and tells it back in words that are the same every time. */
export async function recordExamples(): Promise<Example[]> {
  await using stage = await openStage({ name: "shop", clock: true, flows, config: "scheduler: { cancel_grace: 1s }" });
  const story = new Story(stage);
  const daemon = await story.tell("daemon");
  await firstRuns(story);
  await workers(story);
  await story.tell("init");
  await story.tell("pause");
  await story.tell("stop");
  const branch = stage.scene.git("for-each-ref", "--format=%(objectname:short)", "refs/heads/sloop").split("\n");
  const text = settled(JSON.stringify(story.examples), substitutions(story, daemon, branch));
  return JSON.parse(text) as Example[];
}

/** What was written down. */
export function readExamples(): Example[] {
  return JSON.parse(readFileSync(examplesFile, "utf8")) as Example[];
}

// kill -9 of the daemon at random instants of a run with every kind of stage: it ends like one that nobody disturbed.

import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { newScene, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

/**
 * Every execution says so outside, prints what depends on nothing but its place in the walk, and takes a moment. A report
 * whose daemon died before it answered is made again, as a careful agent would.
 */
const mark = 'echo "$SLOOP_RUN_ID $SLOOP_STAGE $SLOOP_ATTEMPT $0" >> OUTSIDE/starts';
const agent = `
echo "$SLOOP_RUN_ID $SLOOP_STAGE $SLOOP_ATTEMPT agent" >> "$COUNT/starts"
echo "out $SLOOP_ATTEMPT"; sleep 0.05; echo "err $SLOOP_ATTEMPT" >&2; sleep 0.05
echo "$SLOOP_ATTEMPT" > "w-$SLOOP_TICKET_ID-$SLOOP_ATTEMPT"; git add -A; git commit -qm "$SLOOP_TICKET_ID try $SLOOP_ATTEMPT"
echo "done $SLOOP_ATTEMPT"
`;
const flow = `
stages:
  - { name: build, action: agent, result_check: { exec: [sh, -c, '${mark}; echo checked; sleep 0.03', check] } }
  - name: test
    action: { exec: [sh, -c, '${mark}; echo "testing $SLOOP_ATTEMPT"; sleep 0.05; test "$SLOOP_ATTEMPT" != 1', action] }
    fail_action: { return_to: build, attempts: 1 }
  - name: review
    action: { exec: [sh, -c, '${mark}; sleep 0.03; for n in 1 2 3; do sloop verdict pass --reason fine > OUTSIDE/said 2>&1 && break; done; exit 5', action] }
    result_check: reported
  - name: judge
    action: { exec: [sh, -c, '${mark}; echo ready', action] }
    result_check: { panel: { prompt: prompts/judge.md, reviewers: [{ target: yes }, { target: no }], require: { quorum: 1 } } }
  - { name: sync, action: { builtin: sync } }
  - { name: merge, action: { builtin: merge } }
`;
const config = `    yes: { cmd: [sh, -c, '${mark}; sleep 0.03; for n in 1 2 3; do sloop verdict pass --reason good > OUTSIDE/said 2>&1 && break; done', yes, "{prompt}"] }
    no: { cmd: [sh, -c, '${mark}; sleep 0.03; for n in 1 2 3; do sloop verdict fail --reason bad > OUTSIDE/said 2>&1 && break; done', no, "{prompt}"] }
`;

type Row = Record<string, unknown>;

/** Everything of a ticket's last run that may not depend on kills. */
async function resultOf(scene: Scene, id: string): Promise<unknown> {
  const runs = scene
    .query<{ id: string; state: string; attempt: number; ticket_id: string }>(
      "select id, state, attempt, ticket_id from runs order by attempt",
    )
    .filter((run) => run.ticket_id === id);
  const run = runs.at(-1)!;
  const value = await scene.value(run.id);
  const records = scene.records(run.id);
  const output: Record<string, string> = {};
  for (const record of records) {
    const key = `${record["stage"]} ${record["attempt"]} ${record["stream"]}`;
    output[key] = (output[key] ?? "") + record["text"];
  }
  const starts = readFileSync(join(scene.outside, "starts"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith(run.id));
  const blank = (text: string) => text.replaceAll(run.id, "RUN").replaceAll(id, "TICKET");
  return JSON.parse(
    blank(
      JSON.stringify({
        others: runs
          .slice(0, -1)
          .map((other) => other.state)
          .filter((state) => state !== "aborted"),
        state: value["state"],
        halt: value["halt"],
        stages: (value["stages"] as Row[]).map(
          ({ stage, state, attempt, exit_code, verdict_source, reason, confidence, reviewers }) => ({
            stage,
            state,
            attempt,
            exit_code,
            verdict_source,
            reason,
            confidence,
            reviewers,
          }),
        ),
        output,
        sequences: records.every((record, index) => record["sequence"] === index + 1),
        starts,
        landed: scene
          .git("log", "--format=%s", "main")
          .split("\n")
          .filter((subject) => subject.startsWith(`${id} `)),
        left: scene
          .query<{ run_id: string }>("select run_id from run_evidence where kind = 'stage_process'")
          .filter((row) => row.run_id === run.id),
        merging: existsSync(join(scene.root, ".git/MERGE_HEAD")),
      }),
    ),
  ) as unknown;
}

async function oneRun(scene: Scene, n: number, kills: readonly number[]): Promise<unknown> {
  const id = `TICK-${n}`;
  await scene.data(["post", scene.ticket(`t-${n}`)]);
  for (const after of kills) {
    await Bun.sleep(after);
    await scene.killDaemon();
    await scene.data(["status"]);
  }
  await until(async () => (await scene.value(id))["state"] !== "ready", "the ticket to be claimed");
  // A claim that nothing followed is aborted and claimed again, after its back-off.
  await until(
    async () => {
      const { state } = await scene.value(id);
      return state !== "ready" && state !== "claimed";
    },
    `${id} to settle`,
    60_000,
  );
  return await resultOf(scene, id);
}

export type KillOptions = { count: number; seed: number; say(line: string): void };

/** Kills the daemon `count` times altogether; throws at the first run that differs from an undisturbed one. */
export async function killMatrix(options: KillOptions): Promise<{ runs: number; kills: number }> {
  await using scene = await newScene({
    agent,
    config: config.replaceAll("OUTSIDE", "$OUTSIDE"),
    flows: { default: flow },
    env: {},
  });
  scene.env["OUTSIDE"] = scene.outside;
  scene.write(".agents/sloop/prompts/judge.md", "Judge.\n");
  let state = options.seed >>> 0 || 1;
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const began = performance.now();
  const expected = JSON.stringify(await oneRun(scene, 1, []));
  const span = Math.max(300, performance.now() - began);
  let kills = 0;
  let runs = 1;
  while (kills < options.count) {
    runs += 1;
    const planned = Array.from({ length: 1 + random(3) }, () => random(span));
    const result = JSON.stringify(await oneRun(scene, runs, planned));
    kills += planned.length;
    if (result !== expected) {
      throw new Error(
        `seed ${options.seed}, run ${runs}, killed after ${planned.join(", ")} ms:\n${result}\ninstead of\n${expected}`,
      );
    }
    rmSync(join(scene.outside, "said"), { force: true });
    if (runs % 10 === 0) options.say(`${runs} runs, ${kills} kills`);
  }
  await scene.data(["stop"]);
  return { runs, kills };
}

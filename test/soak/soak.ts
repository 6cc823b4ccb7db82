// Random tickets, failures, cancels, restarts and kills for a while, with the invariants checked throughout.

import { existsSync, readFileSync } from "node:fs";
import { processesIn } from "../support/repo.ts";
import { newScene, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";
import { checkRest, checkStore } from "./check.ts";

export type SoakOptions = { milliseconds: number; seed: number; say(line: string): void };
export type SoakResult = { steps: number; runs: number; kills: number; outcomes: Record<string, number> };

const slots = 3;

/** Says who it is, then does what chance and its ticket want: work, fail, dawdle, leave a child behind, print a lot. */
const agent = `
echo "$SLOOP_RUN_ID $SLOOP_STAGE $SLOOP_ATTEMPT" >> "$COUNT/starts"
n=$(( $(od -An -N1 -tu1 /dev/urandom) % 10 ))
echo "chance $n"
case $n in
  0) echo failing; exit 7 ;;
  1) sleep 0.4 ;;
  2) (sleep 5) & ;;
  3) head -c 200000 /dev/zero | tr '\\0' x ;;
  4) sloop note "a remark" ;;
  5) exit 0 ;;
esac
echo "$n" > "w-$SLOOP_RUN_ID"; git add -A; git commit -qm "work of $SLOOP_RUN_ID"
echo done
`;

const tested = `
stages:
  - { name: build, action: agent }
  - name: test
    action: { exec: [sh, -c, 'echo "$SLOOP_RUN_ID $SLOOP_STAGE $SLOOP_ATTEMPT" >> OUTSIDE/starts; test $(( $(od -An -N1 -tu1 /dev/urandom) % 4 )) -ne 0'] }
    fail_action: { return_to: build, attempts: 2 }
  - { name: merge, action: { builtin: merge } }
`;
const train = `
stages:
  - { name: build, action: agent }
  - { name: sync, action: { builtin: sync }, fail_action: { return_to: build, attempts: 1 } }
  - name: review
    action: { exec: [sh, -c, 'sleep 0.05; sloop verdict pass --reason ok; exit 3'] }
    result_check: reported
  - { name: merge, action: { builtin: merge, ff_only: true }, fail_action: { return_to: sync, attempts: 5 } }
`;

/** A small generator of its own, so that a seed plays the same operations again. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

type Soak = { scene: Scene; random(below: number): number; posted: number; kills: number; excused: Set<string> };

const liveRuns = (scene: Scene) => scene.query<{ id: string }>("select id from runs where exited_at_ms is null");

function daemonAlive(scene: Scene): boolean {
  return existsSync(`/proc/${scene.daemonPid()}/exe`);
}

/** kill -9 of one supervisor: the one exception under which an execution may be lost. */
function killSupervisor(soak: Soak): void {
  const { scene } = soak;
  const supervisors = processesIn(scene.dir).filter((pid) => commandLine(pid).includes("__supervise"));
  const victim = supervisors[soak.random(Math.max(1, supervisors.length))];
  if (victim === undefined) return;
  for (const { id } of liveRuns(scene)) soak.excused.add(id);
  try {
    process.kill(victim, "SIGKILL");
  } catch {
    // It ended by itself.
  }
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

async function post(soak: Soak): Promise<void> {
  soak.posted += 1;
  const flow = ["default", "tested", "train"][soak.random(3)]!;
  const blocked =
    soak.posted > 3 && soak.random(4) === 0 ? `blocked_by: [TICK-${1 + soak.random(soak.posted - 1)}]` : "";
  const front = [`flow: ${flow}`, blocked].filter((line) => line !== "").join("\n");
  await soak.scene.sloop(["post", soak.scene.ticket(`t-${soak.posted}`, front)]);
}

async function onSomeRun(soak: Soak, verb: string): Promise<void> {
  const runs = liveRuns(soak.scene);
  const run = runs[soak.random(Math.max(1, runs.length))];
  if (run !== undefined) await soak.scene.sloop([verb, run.id]);
}

async function requeueFailed({ scene, random }: Soak): Promise<void> {
  const failed = scene.query<{ id: string; state: string }>(
    "select id, state from tickets where state in ('failed', 'ready')",
  );
  const ticket = failed[random(Math.max(1, failed.length))];
  if (ticket === undefined) return;
  if (ticket.state === "failed") await scene.sloop(["retry", ticket.id]);
  await scene.sloop(["run", ticket.id]);
}

async function kill(soak: Soak): Promise<void> {
  if (!daemonAlive(soak.scene)) return;
  await Bun.sleep(soak.random(80));
  if (!daemonAlive(soak.scene)) return;
  await soak.scene.killDaemon();
  soak.kills += 1;
}

const steps: [number, (soak: Soak) => Promise<unknown>][] = [
  [30, post],
  [20, kill],
  [8, (soak) => onSomeRun(soak, "cancel")],
  [8, requeueFailed],
  [8, ({ scene }) => scene.sloop(["status"])],
  [5, (soak) => onSomeRun(soak, "logs")],
  [3, ({ scene }) => scene.sloop(["pause"]).then(() => scene.sloop(["resume"]))],
  [3, ({ scene }) => scene.sloop(["stop", "--force"])],
  [2, async (soak) => killSupervisor(soak)],
];

async function step(soak: Soak): Promise<void> {
  let at = soak.random(steps.reduce((sum, [weight]) => sum + weight, 0));
  for (const [weight, act] of steps) {
    at -= weight;
    if (at >= 0) continue;
    await act(soak);
    return;
  }
}

/** Lets everything come to an end: nothing paused, every live run settled. */
async function rest(soak: Soak): Promise<void> {
  const { scene } = soak;
  await scene.data(["pause"]);
  await until(
    async () => {
      await scene.sloop(["status"]);
      return liveRuns(scene).length === 0;
    },
    "every run to settle",
    30_000,
  );
  await scene.data(["stop"]);
  await until(() => processesIn(scene.dir).length === 0, "every process to end");
}

/** What there is to look at when something went wrong. */
function evidence(scene: Scene): string {
  const live = scene.query<{ id: string }>("select id, state, pid, exited_at_ms from runs where exited_at_ms is null");
  const kept = scene.query("select run_id, kind, data_json from run_evidence order by sequence desc limit 20");
  const about = (line: unknown) => live.some(({ id }) => JSON.stringify(line).includes(id));
  const log = scene.events().filter((line) => about(line) || line.event.startsWith("daemon_"));
  return [live, kept, ...log.slice(-40)].map((part) => JSON.stringify(part)).join("\n");
}

/** Soaks for the given time; throws at the first thing that is not as it must be, naming the seed. */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  await using scene = await newScene({
    agent,
    config: `scheduler: { max_parallel_tasks: ${slots}, cancel_grace: 1s }`,
    flows: { tested, train },
  });
  scene.git("branch", "-q", "keep");
  const state: Soak = { scene, random: randomFrom(options.seed), posted: 0, kills: 0, excused: new Set() };
  const ends = performance.now() + options.milliseconds;
  await post(state);
  let count = 0;
  try {
    for (; performance.now() < ends; count += 1) {
      await step(state);
      checkStore(scene, slots);
      if (count % 50 === 49) options.say(`${count + 1} steps, ${state.posted} tickets, ${state.kills} kills`);
    }
    await rest(state);
    checkStore(scene, slots);
    checkRest(scene, state.excused);
  } catch (error) {
    const what = `seed ${options.seed}, step ${count}: ${(error as Error).message}`;
    throw new Error(`${what}\n${evidence(scene)}`, { cause: error });
  }
  const outcomes = scene.query<{ state: string; n: number }>("select state, count(*) as n from runs group by state");
  return {
    steps: count,
    runs: outcomes.reduce((sum, row) => sum + row.n, 0),
    kills: state.kills,
    outcomes: Object.fromEntries(outcomes.map((row) => [row.state, row.n])),
  };
}

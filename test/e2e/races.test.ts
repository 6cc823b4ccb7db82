// Two things at once, over and over: whoever wins, run, ticket and target branch tell the same story.

import { describe, expect, test } from "bun:test";
import { newScene, type Scene } from "../support/scene.ts";
import { until } from "../support/until.ts";

const train = `
stages:
  - { name: build, action: agent }
  - { name: sync, action: { builtin: sync } }
  - { name: test, action: { exec: [sh, -c, 'test -e "work-$SLOOP_TICKET_ID"'] } }
  - name: merge
    action: { builtin: merge, ff_only: true }
    fail_action: { return_to: sync, attempts: 10 }
`;

const filesOn = (scene: Scene, branch: string) => scene.git("ls-tree", "--name-only", branch).split("\n");
const left = (scene: Scene) => scene.query("select 1 from runs where exited_at_ms is null").length;

test("eight runs that finish together all land, one after another, with no merge commit of the target", async () => {
  const count = 8;
  const agent = `touch "$COUNT/at-$SLOOP_TICKET_ID"; while [ "$(ls "$COUNT" | grep -c at-)" -lt ${count} ]; do sleep 0.05; done
echo w > "work-$SLOOP_TICKET_ID"; git add -A; git commit -qm "work on $SLOOP_TICKET_ID"`;
  const config = `scheduler: { max_parallel_tasks: ${count} }`;
  await using scene = await newScene({ agent, config, flows: { default: train } });
  for (let n = 1; n <= count; n += 1) await scene.post(`t${n}`);
  await until(() => left(scene) === 0 && scene.query("select 1 from runs").length === count, "all to end", 90_000);
  const states = scene.query<{ state: string }>("select state from tickets").map(({ state }) => state);
  expect(states).toEqual(Array.from({ length: count }, () => "merged"));
  for (let n = 1; n <= count; n += 1) expect(filesOn(scene, "main")).toContain(`work-TICK-${n}`);
  // The target only ever moved forward to a branch that had been tested on top of it.
  expect(scene.git("log", "--merges", "--format=%s", "main")).not.toContain("Merge run branch");
  expect(scene.git("status", "--porcelain", "--untracked-files=no")).toBe("");
}, 120_000);

test("a cancel against the end of its run: the story told is the one that happened", async () => {
  const count = 12;
  await using scene = await newScene({ config: "scheduler: { max_parallel_tasks: 2 }" });
  for (let n = 1; n <= count; n += 1) {
    const posted = scene.post(`t${n}`);
    const alias = `TICK-${n}-r1`;
    await posted;
    await until(async () => (await scene.sloop(["--json", "show", alias])).code === 0, "the run");
    // From before its agent to after its merge.
    await Bun.sleep(n * 25);
    const ran = await scene.sloop(["--json", "cancel", alias]);
    if (ran.code !== 0) expect(ran.stderr).toContain('"conflict"');
  }
  await until(() => left(scene) === 0, "all to end", 90_000);
  type Row = { ticket: string; run: string; id: string; landed: number };
  const rows = scene.query<Row>(
    `select t.state as ticket, r.state as run, t.id, exists(select 1 from run_evidence e
      where e.run_id = r.id and kind = 'merge_result' and data_json = '{"merged":true}') as landed
     from tickets t join runs r on r.ticket_id = t.id`,
  );
  expect(rows).toHaveLength(count);
  for (const { ticket, run, id, landed } of rows) {
    expect(filesOn(scene, "main").includes(`work-${id}`)).toBe(landed === 1);
    // A merge that is under way when the cancel comes is let go on to its end; the wish stands all the same.
    expect([ticket, run]).toEqual(run === "merged" ? ["merged", "merged"] : ["ready", "cancelled"]);
    if (run === "merged") expect(landed).toBe(1);
  }
  expect(scene.query("select 1 from leases")).toEqual([]);
  expect(scene.git("status", "--porcelain", "--untracked-files=no")).toBe("");
}, 120_000);

test("a report against the exit of its process counts if it was filed, and only then", async () => {
  const flow = `
stages:
  - { name: build, action: agent }
  - name: review
    action: { exec: [sh, -c, '"$SLOOP_BIN" verdict pass & sleep "0.0$(( \${SLOOP_TICKET_ID#TICK-} * 9 ))"'] }
    result_check: reported
  - { name: merge, action: { builtin: merge } }
`;
  const count = 8;
  await using scene = await newScene({ flows: { default: flow }, config: "scheduler: { max_parallel_tasks: 2 }" });
  for (let n = 1; n <= count; n += 1) await scene.post(`t${n}`);
  await until(() => left(scene) === 0 && scene.query("select 1 from runs").length === count, "all to end", 90_000);
  const rows = scene.query<{ state: string; filed: number }>(
    "select state, exists(select 1 from run_evidence e where e.run_id = runs.id and kind = 'stage_verdict') as filed from runs",
  );
  for (const { state, filed } of rows)
    expect([state, filed]).toBeOneOf([
      ["merged", 1],
      ["needs_review", 0],
    ]);
}, 120_000);

describe("two clients", () => {
  test("that post one file at once register one ticket with one trigger", async () => {
    await using scene = await newScene();
    await scene.data(["pause"]);
    const path = scene.ticket("one");
    const ran = await Promise.all(Array.from({ length: 6 }, () => scene.sloop(["--json", "post", path])));
    const created = ran.flatMap(({ code, stdout }) =>
      code === 0 ? [(JSON.parse(stdout) as { data: { created: boolean } }).data.created] : [],
    );
    expect(created.filter((yes) => yes)).toHaveLength(1);
    for (const { code, stderr } of ran) if (code !== 0) expect(stderr).toContain('"conflict"');
    expect(scene.query("select id from tickets")).toEqual([{ id: "TICK-1" }]);
    expect(scene.query("select id from triggers")).toHaveLength(1);
    expect(scene.read(path).match(/^id: TICK-1$/gm)).toHaveLength(1);
  }, 60_000);

  test("that hold and release one ticket at once leave it in one of the two states, its run in none", async () => {
    await using scene = await newScene();
    await scene.data(["pause"]);
    await scene.post("one");
    await Promise.all(Array.from({ length: 8 }, (_, n) => scene.sloop([n % 2 === 0 ? "hold" : "ready", "TICK-1"])));
    const [ticket] = scene.query<{ state: string; held_reason: string | null }>(
      "select state, held_reason from tickets",
    );
    expect(ticket!.state).toBeOneOf(["held", "ready"]);
    expect(scene.query("select 1 from runs")).toEqual([]);
    await scene.data(["ready", "TICK-1"]);
    await scene.data(["resume"]);
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(scene.query("select 1 from runs")).toHaveLength(1);
  }, 60_000);
});

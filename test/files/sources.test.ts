// files.md 12 and 15 D: an external ticket source, pulled by `sloop reindex` and told how runs end, through the compiled binary.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newScene, type Scene, type SceneOptions } from "../support/scene.ts";
import { until } from "../support/until.ts";
import { expectGist, refusal } from "./refusal.ts";

setDefaultTimeout(60_000);

type Sourced = Scene & {
  /** What the source answers to a pull: text, and the shell behind it. */
  answer(text: string, more?: string): void;
  /** Every request the source was sent. */
  requests(): Record<string, string>[];
  tickets(): { id: string; state: string; source_ref: string; held_reason: string | null }[];
};

/** A repository whose tickets come from a script; its answer is `outside/answer`, and `outside/more` runs after it. */
async function sourced(options: SceneOptions = {}): Promise<Sourced> {
  const scene = await newScene(options);
  const script = join(scene.outside, "source.sh");
  const config = scene.read(".agents/sloop/config.yaml");
  scene.write(".agents/sloop/config.yaml", `${config}sources:\n  tickets:\n    exec: [sh, ${script}]\n`);
  writeFileSync(
    script,
    `cd '${scene.outside}'
request=$(cat); echo "$request" >> requests
case $request in *report*) test ! -e refuse || { echo "no thanks" >&2; exit 4; };; *) cat answer; . ./more;; esac\n`,
  );
  const answer = (text: string, more = "") => {
    writeFileSync(join(scene.outside, "answer"), text);
    writeFileSync(join(scene.outside, "more"), more);
  };
  const requests = () => {
    const path = join(scene.outside, "requests");
    const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Record<string, string>);
  };
  const tickets: Sourced["tickets"] = () => scene.query("select * from tickets order by id");
  return { ...scene, [Symbol.asyncDispose]: scene[Symbol.asyncDispose], answer, requests, tickets };
}

const one = '[{"name":"One","body":"w"}]';

test("D1: a row without an id", async () => {
  await using scene = await sourced();
  scene.answer(one);
  expect(await scene.data(["reindex"])).toEqual({
    projects_indexed: 1,
    tickets_indexed: 1,
    tickets_state_changed: 0,
    state_changes: [],
    rows_dropped: 0,
  });
  expect(scene.requests()).toEqual([{ verb: "pull" }]);
  expect(scene.tickets()).toMatchObject([
    { id: "TICK-1", state: "ready", source: "exec", source_ref: "row:0", file_path: null, worktree: "sloop/TICK-1" },
  ]);
  expect(await scene.value("TICK-1")).toMatchObject({ name: "One", blocked_by: [], file: null, body: "w" });
  // The same again, and the same id.
  expect(await scene.data(["reindex"])).toMatchObject({ tickets_indexed: 1, rows_dropped: 0 });
  expect(scene.tickets().map(({ id }) => id)).toEqual(["TICK-1"]);
});

test("a pull that fails leaves the index as it was, and says why", async () => {
  await using scene = await sourced();
  scene.answer(one);
  await scene.data(["reindex"]);
  const before = scene.query("select * from tickets");
  const output = "invalid ticket source output";
  const rows: [number: string, answer: string, more: string, gist: string[]][] = [
    ["D2", '[{"name":"One","body":"w","status":"x"}]', "", ["unknown field `status`", "row 0"]],
    ["worktree is no field", '[{"name":"One","body":"w","worktree":"x"}]', "", ["unknown field `worktree`"]],
    ["a misspelt field", '[{"name":"One","body":"w","efort":"x"}]', "", ["unknown field `efort`", "`effort`"]],
    ["D3", '[{"name":"One",', "", [output, "JSON"]],
    ["D4", "", "echo pull failed >&2; exit 3", [`sh ${scene.outside}/source.sh`, "exit status: 3", "pull failed"]],
    ["a signal", "", "kill -9 $$", ["SIGKILL"]],
    ["no array", '{"tickets":[]}', "", [output, "array"]],
    ["no name", '[{"body":"w"}]', "", [output, "missing field `name`"]],
    ["no body", '[{"name":"One"}]', "", [output, "missing field `body`"]],
    ["a wrong type", '[{"name":"One","body":"w"},{"name":7,"body":"w"}]', "", [output, "row 1", "`name`"]],
    ["null blockers", '[{"name":"One","body":"w","blocked_by":null}]', "", [output, "`blocked_by`"]],
    ["a blocker that is a number", '[{"name":"One","body":"w","blocked_by":[1]}]', "", [output, "`blocked_by`"]],
    ["a row that is no object", "[1]", "", [output, "row 0"]],
    ["not UTF-8", "", "printf '\\377'", [output, "UTF-8"]],
  ];
  for (const [, answer, more, gist] of rows) {
    scene.answer(answer, more);
    const { code, message } = await refusal(scene, ["reindex"]);
    expect(code).toBe("internal");
    expect(message).toStartWith("cannot reindex tickets: ");
    expectGist(message, gist);
    expect(scene.query("select * from tickets")).toEqual(before);
  }
});

test("a source that cannot start", async () => {
  await using scene = await newScene({ config: "sources: { tickets: { exec: [no-such-program-here, x] } }" });
  const { code, message } = await refusal(scene, ["reindex"]);
  expect(code).toBe("internal");
  expectGist(message, ["cannot start `no-such-program-here`"]);
});

test("D5: a source may answer without reading its request", async () => {
  await using scene = await newScene({
    config: `sources: { tickets: { exec: [sh, -c, "exec <&-; echo '${one.replaceAll('"', '\\"')}'"] } }`,
  });
  expect(await scene.data(["reindex"])).toMatchObject({ tickets_indexed: 1 });
});

test("D4: a source that fails without having read its request: both are told apart, and the index is as it was", async () => {
  await using scene = await newScene();
  const script = join(scene.outside, "unread.sh");
  writeFileSync(
    script,
    `exec <&-\ntest ! -e '${scene.outside}/fail' || { echo pull failed >&2; exit 3; }\necho '${one}'\n`,
  );
  const config = scene.read(".agents/sloop/config.yaml");
  scene.write(".agents/sloop/config.yaml", `${config}sources: { tickets: { exec: [sh, ${script}] } }\n`);
  expect(await scene.data(["reindex"])).toMatchObject({ tickets_indexed: 1 });
  const before = scene.query("select * from tickets");
  writeFileSync(join(scene.outside, "fail"), "");
  const { code, message } = await refusal(scene, ["reindex"]);
  expect([code, message]).toEqual([
    "internal",
    `cannot reindex tickets: \`sh ${script}\`: exit status: 3: pull failed`,
  ]);
  expect(scene.query("select * from tickets")).toEqual(before);
});

test("D6 and all that holds a row", async () => {
  await using scene = await sourced();
  const good = { body: "w", name: "N" };
  const rows: [row: object, ref: string, reason: string | null][] = [
    [{ ...good, name: "" }, "row:0", "row:0: empty `name`"],
    [{ ...good, body: " \n" }, "row:1", "row:1: empty `body`"],
    [{ ...good, id: "E-1", project: "nope" }, "E-1", "E-1: project `nope` is not indexed"],
    [{ ...good, id: "E-2", flow: "nope" }, "E-2", "E-2: flow `nope` is not defined"],
    [{ ...good, id: "E-3", target: "nope" }, "E-3", "E-3: agent target `nope` is not configured"],
    [
      { ...good, id: "E-4", blocked_by: ["E-1", "E-9"] },
      "E-4",
      "E-4: field `blocked_by` references unknown ticket `E-9`",
    ],
    [{ ...good, id: "a b" }, "a b", 'a b: `id` is "a b"'],
    [{ ...good, id: "E-5", blocked_by: ["E-1"], project: null, model: "  " }, "E-5", null],
  ];
  scene.answer(JSON.stringify(rows.map(([row]) => row)));
  expect(await scene.data(["reindex"])).toMatchObject({ tickets_indexed: rows.length });
  const stored = new Map(scene.tickets().map((row) => [row.source_ref, row]));
  for (const [, ref, reason] of rows) {
    expect(stored.get(ref)?.state).toBe(reason === null ? "ready" : "held");
    if (reason === null) expect(stored.get(ref)?.held_reason).toBeNull();
    else expect(stored.get(ref)?.held_reason).toStartWith(reason);
  }
  const shown = (await scene.data(["list"]))["tickets"] as { id: string; reason: string }[];
  expect(shown.find(({ id }) => id === "E-2")?.reason).toBe("E-2: flow `nope` is not defined");
  expect(await scene.value("E-4")).toMatchObject({ blocked_by: [] });
  expect(await scene.value("E-5")).toMatchObject({ blocked_by: ["E-1"], model: null });
});

test("two rows of one reference fail the whole pass", async () => {
  await using scene = await sourced();
  scene.answer('[{"name":"One","body":"w"},{"id":"row:0","name":"Two","body":"w"}]');
  const { code, message } = await refusal(scene, ["reindex"]);
  expect([code, message]).toEqual(["internal", "cannot reindex tickets: duplicate source reference `row:0`"]);
});

test("a source replaces the directory, never adds to it", async () => {
  await using scene = await sourced();
  scene.ticket("in-a-file");
  scene.answer('[{"id":"E-1","name":"One","body":"w"}]');
  await scene.data(["reindex"]);
  expect(scene.tickets().map(({ id }) => id)).toEqual(["E-1"]);
  expect(scene.read(".agents/sloop/tickets/in-a-file.md")).not.toContain("id:");
});

describe("reports", () => {
  const review = "- { name: build, action: agent }\n";

  test("after each settlement, and again when the branch is merged by hand", async () => {
    await using scene = await sourced({ flows: { review } });
    scene.answer(
      '[{"id":"E-1","name":"One","body":"w"},{"id":"E-2","name":"Two","body":"w","flow":"review"},{"id":"E-3","name":"Three","body":"w","flow":"review"}]',
    );
    await scene.data(["reindex"]);
    await scene.data(["run", "E-1"]);
    expect(await scene.wait("E-1")).toBe(0);
    await scene.data(["run", "E-2"]);
    expect(await scene.wait("E-2")).toBe(1);
    const reports = () => scene.requests().filter(({ verb }) => verb === "report");
    await until(() => reports().length === 2, "two reports");
    expect(reports()).toEqual([
      { verb: "report", ticket: "E-1", outcome: "merged" },
      { verb: "report", ticket: "E-2", outcome: "needs_review" },
    ]);
    const run = await scene.value("E-2-r1");
    scene.git("merge", "-q", "--no-ff", "--no-edit", run["branch"] as string);
    await until(() => reports().length === 3, "the report of the merge");
    expect(reports()[2]).toEqual({ verb: "report", ticket: "E-2", outcome: "merged" });
  });

  test("a report that fails is a warning in the log and nothing else", async () => {
    await using scene = await sourced();
    scene.answer('[{"id":"E-1","name":"One","body":"w"}]');
    writeFileSync(join(scene.outside, "refuse"), "");
    await scene.data(["reindex"]);
    await scene.data(["run", "E-1"]);
    expect(await scene.wait("E-1")).toBe(0);
    const failed = () => scene.events().find(({ event }) => event === "work_outcome_push_failed");
    await until(() => failed() !== undefined, "the warning");
    expect(failed()).toMatchObject({ level: "warn", fields: { ticket_id: "E-1", outcome: "merged" } });
    expectGist(String(failed()!.fields!["error"]), ["exit status: 4", "no thanks"]);
    expect(await scene.value("E-1")).toMatchObject({ state: "merged" });
  });

  test("tickets of files are not reported", async () => {
    await using scene = await newScene();
    await scene.post("one");
    expect(await scene.wait("TICK-1")).toBe(0);
    expect(scene.events().some(({ event }) => event === "work_outcome_push_failed")).toBe(false);
  });
});

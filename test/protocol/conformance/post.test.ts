// protocol.md 7.5: `post`, its reply, what a repost does and does not change, and its errors in the order they are checked.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openStage, type Stage, startMs } from "./stage.ts";
import { expectRefusal, type Failed, type Json, type Wire } from "./wire.ts";

setDefaultTimeout(60_000);

let stage: Stage;
let wire: Wire;
const folder = ".agents/sloop/tickets";
const auto = { kind: "auto" };
const manual = { kind: "manual" };

beforeAll(async () => {
  stage = await openStage({
    clock: true,
    paused: true,
    flows: { web: "stages:\n  - { name: build, action: agent }\n" },
    config: `    model: { cmd: [sh, "{model}", "{prompt}"] }
    both: { cmd: [sh, "{model}", "{effort}", "{prompt}"], model: m }
scheduler: { max_parallel_tasks: 4 }`,
  });
  wire = stage.wire;
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

/** Writes a ticket file and names it. */
function file(name: string, text: string | Uint8Array): string {
  writeFileSync(join(stage.scene.root, folder, name), text);
  return `${folder}/${name}`;
}

const ticket = (front: string, body = "Do it.") => `---\n${front}\n---\n${body}\n`;
const good = (front = "") => ticket(`name: A name\nblocked_by: []${front === "" ? "" : `\n${front}`}`);

async function refused(path: string, more: Json = {}): Promise<Failed> {
  return await wire.refused("post", { file: path, trigger: manual, ...more });
}

describe("7.5 the reply", () => {
  test("7.5: a new ticket, stamped, with its trigger; then unchanged; an absolute path is as good", async () => {
    const path = file("purge-avatars.md", good("model: opus\ncolour: red"));
    const posted = await wire.ok("post", { file: path, trigger: auto });
    const { ticket: row } = posted as { ticket: { id: string } };
    const { id } = row;
    expect(id).toMatch(/^TICK-[1-9][0-9]*$/);
    const expected = {
      id,
      project: "default",
      file: path,
      state: "ready",
      name: "A name",
      blocked_by: [],
      worktree: "sloop/purge-avatars",
      target: "sh",
      model: "opus",
      effort: null,
      flow: "default",
    };
    const trigger = { id: expect.stringMatching(/^TR[0-9]+$/), kind: "auto", state: "queued", ticket: id };
    expect(posted).toEqual({
      ticket: expected,
      created: true,
      file_rewritten: true,
      trigger,
      trigger_suppressed: null,
    });
    const text = stage.scene.read(path);
    expect(text).toStartWith("---\nname: A name\nblocked_by: []\nmodel: opus\ncolour: red\n");
    for (const line of [`id: ${id}`, "project: default", "worktree: sloop/purge-avatars", "flow: default"]) {
      expect(text).toContain(`\n${line}\n`);
    }
    const again = await wire.ok("post", { file: join(stage.scene.root, path), trigger: auto });
    expect(again).toEqual({ ...posted, created: false, file_rewritten: false });
    expect(stage.scene.read(path)).toBe(text);
    expect(await wire.ok("post", { file: path, trigger: manual })).toMatchObject({ trigger: null, created: false });
  });

  test("7.5: at: the next local minute strictly after the current one; asked again it moves, one trigger of the kind", async () => {
    const path = file("at-a-time.md", good());
    const at = async (time: string) =>
      ((await wire.ok("post", { file: path, trigger: { kind: "at", time } })) as { trigger: Json }).trigger;
    // The steered clock stands at 02:00:00 UTC.
    const first = await at("02:01");
    expect(first).toEqual({
      id: expect.stringMatching(/^TR/),
      kind: "at",
      state: "queued",
      ticket: expect.any(String),
      eligible_at_ms: startMs + 60_000,
    });
    expect(await at("02:00")).toEqual({ ...first, eligible_at_ms: startMs + 24 * 3_600_000 });
    expect(await at("01:59")).toEqual({ ...first, eligible_at_ms: startMs + 24 * 3_600_000 - 60_000 });
    const { trigger } = (await wire.ok("post", { file: path, trigger: auto })) as { trigger: Json };
    expect(trigger["id"]).not.toBe(first["id"]);
    expect((await stage.value(first["ticket"] as string))["queued_triggers"]).toEqual([first["id"], trigger["id"]]);
  });

  test("7.5: hold makes a new ticket held; a repost never changes the stored state; auto queues on a held one", async () => {
    const held = await wire.ok("post", { file: file("held-one.md", good()), trigger: { kind: "hold" } });
    expect(held).toMatchObject({ ticket: { state: "held" }, created: true, trigger: null, trigger_suppressed: null });
    const again = await wire.ok("post", { file: `${folder}/held-one.md`, trigger: auto });
    expect(again).toMatchObject({ ticket: { state: "held" }, trigger: { kind: "auto" } });
    const ready = file("ready-one.md", good());
    await wire.ok("post", { file: ready, trigger: manual });
    expect(await wire.ok("post", { file: ready, trigger: { kind: "hold" } })).toMatchObject({
      ticket: { state: "ready" },
      trigger: null,
    });
  });

  test("7.5: a ticket that validation held becomes ready once its file is good", async () => {
    const path = file("mended.md", good());
    const { ticket: row } = (await wire.ok("post", { file: path, trigger: manual })) as { ticket: { id: string } };
    const text = stage.scene.read(path);
    file("mended.md", text.replace("flow: default", "flow: nowhere"));
    await wire.ok("reindex");
    expect((await stage.row(row.id))["state"]).toBe("held");
    file("mended.md", text);
    expect(await wire.ok("post", { file: path, trigger: manual })).toMatchObject({ ticket: { state: "ready" } });
  });

  test("7.5: project and flow as asked are stamped; those of the file need not be asked for", async () => {
    stage.scene.write(".agents/sloop/projects/web.md", "---\nid: web\ntitle: Web shop\n---\n");
    await wire.ok("reindex");
    const path = file("asked-for.md", good());
    const posted = await wire.ok("post", { file: path, trigger: manual, project: "web", flow: "web" });
    expect(posted).toMatchObject({ ticket: { project: "web", flow: "web" } });
    expect(stage.scene.read(path)).toContain("\nproject: web\n");
    expect(await wire.ok("post", { file: path, trigger: manual })).toMatchObject({
      ticket: { project: "web", flow: "web" },
    });
  });

  test("7.5: a settled ticket takes no trigger, whatever was asked for", async () => {
    await wire.ok("resume");
    const done = await stage.post("done");
    stage.agent("FAIL-1", "exit 1");
    await stage.post("not-done", { front: "id: FAIL-1" });
    await stage.settled(done);
    await stage.settled("FAIL-1");
    await wire.ok("pause");
    for (const [stem, state] of [
      ["done", "merged"],
      ["not-done", "failed"],
    ]) {
      for (const trigger of [auto, manual, { kind: "hold" }, { kind: "at", time: "12:00" }]) {
        expect(await wire.ok("post", { file: `${folder}/${stem}.md`, trigger })).toMatchObject({
          ticket: { state },
          trigger: null,
          trigger_suppressed: { reason: "terminal_ticket", state },
        });
      }
    }
  });
});

describe("7.5 errors", () => {
  test("7.5 errors: bad times", async () => {
    for (const time of ["25:00", "24:00", "9:00", "12:60", "1200", "", "12:00 ", "-1:00", "１２:00"]) {
      const error = await refused(`${folder}/none.md`, { trigger: { kind: "at", time } });
      expectRefusal(error, "invalid_arguments", `time \`${time}\``, "HH:MM");
    }
  });

  test("7.5 errors: outside the repository, outside the ticket folder, also by way of a link", async () => {
    const outside = join(stage.scene.outside, "t.md");
    writeFileSync(outside, good());
    for (const path of [outside, "../outside/t.md"]) {
      expectRefusal(await refused(path), "invalid_arguments", `\`${path}\` is outside the repository`);
    }
    symlinkSync(outside, join(stage.scene.root, folder, "linked.md"));
    expectRefusal(await refused(`${folder}/linked.md`), "invalid_arguments", "is outside the repository");
    const inside = "README.md";
    expectRefusal(await refused(inside), "invalid_arguments", `\`${inside}\` is outside the ${folder} directory`);
    symlinkSync(join(stage.scene.root, "README.md"), join(stage.scene.root, folder, "readme.md"));
    expectRefusal(await refused(`${folder}/readme.md`), "invalid_arguments", `is outside the ${folder} directory`);
  });

  test("7.5 errors: no such file, a folder, another ending, not UTF-8", async () => {
    const missing = `${folder}/nothing-here.md`;
    expectRefusal(await refused(missing), "not_found", `ticket file \`${missing}\` not found`);
    expectRefusal(await refused(file("notes.txt", good())), "invalid_arguments", "notes.txt");
    expectRefusal(await refused(file("bytes.md", Buffer.from([0x2d, 0xff, 0x0a]))), "invalid_arguments", "bytes.md");
    mkdirSync(join(stage.scene.root, folder, "folder.md"), { recursive: true });
    expect((await refused(`${folder}/folder.md`)).message).toContain("folder.md");
  });

  test("7.5 errors: frontmatter that cannot be read", async () => {
    const cases: [string, string, string][] = [
      ["open.md", "---\nname: x\n", ""],
      ["yaml.md", "---\nname: [x\n---\nbody\n", "invalid frontmatter"],
      ["list.md", "---\n- a\n---\nbody\n", ""],
      ["cr.md", good().replace("name\n", "name\r\n"), "line break other than LF"],
    ];
    for (const [name, text, literal] of cases) {
      const error = await refused(file(name, text));
      expectRefusal(error, "invalid_arguments", literal);
      expect(error.message).toStartWith(`${folder}/${name}: `);
    }
  });

  test("7.5 errors: every field problem in one message, in order", async () => {
    const one = await refused(file("one.md", ticket("name: x", "Body.")));
    expect(one.message).toStartWith(`${folder}/one.md: missing \`blocked_by\`; add \`blocked_by: []\``);
    expect(one.message).not.toContain("\n");
    const several = await refused(file("several.md", ticket("target: [a]\nmodel: true\nname:\nid: {a: b}", "  ")));
    expectRefusal(several, "invalid_arguments");
    const lines = several.message.split("\n");
    expect(lines[0]).toBe(`${folder}/several.md:`);
    const starts = [
      "  - missing or empty `name`; add `name: Your ticket title`",
      "  - missing `blocked_by`; add `blocked_by: []`",
      "  - empty `body`; add a ticket description",
    ];
    for (const [index, start] of starts.entries()) expect(lines[index + 1]).toStartWith(start);
    const rest = lines.slice(4);
    expect(rest).toHaveLength(3);
    for (const key of ["`id`", "`target`", "`model`"]) expect(rest.some((line) => line.includes(key))).toBe(true);
    const wrong = await refused(file("wrong-list.md", ticket("name: x\nblocked_by: T1")));
    expect(wrong.message).toStartWith(`${folder}/wrong-list.md: invalid \`blocked_by\`; use \`blocked_by: []\``);
    const named = await refused(file("wrong-name.md", ticket("name: [x]\nblocked_by: []")));
    expect(named.message).toContain("`name`");
    expect(named.message).not.toContain("missing");
  });

  test("7.5 errors: project and flow", async () => {
    const path = file("elsewhere.md", good("project: web\nflow: web"));
    expectRefusal(await refused(path, { project: "default" }), "conflict", "`web`", "`default`");
    expectRefusal(await refused(path, { flow: "default" }), "conflict", "`web`", "`default`");
    const plain = file("plain.md", good());
    expectRefusal(await refused(plain, { project: "nope" }), "not_found", "project `nope` is not indexed");
    expectRefusal(await refused(plain, { flow: "nope" }), "not_found", "`nope`", "`default`", "`web`");
    // The project is checked before the flow.
    expectRefusal(await refused(plain, { project: "nope", flow: "nope" }), "not_found", "project `nope`");
  });

  test("7.5 errors: targets", async () => {
    const path = (front: string) => file("targets.md", good(front));
    expectRefusal(await refused(path("target: no")), "invalid_arguments", "agent target `no` is not configured");
    const model = await refused(path("target: model"));
    expectRefusal(model, "invalid_arguments", "agent target `model`", "does not specify `model`");
    const effort = await refused(path("target: both"));
    expectRefusal(effort, "invalid_arguments", "agent target `both`", "does not specify `effort`");
  });

  test("7.5 errors: identity", async () => {
    const first = await stage.post("identity", { trigger: manual });
    const copy = file("identity-copy.md", stage.scene.read(`${folder}/identity.md`));
    expectRefusal(await refused(copy), "conflict", `\`${first}\` is already registered by \`${folder}/identity.md\``);
    const moved = stage.scene.read(`${folder}/identity.md`).replace("project: default", "project: web");
    expectRefusal(await refused(file("identity.md", moved)), "conflict", "`default`", "`web`");
    const renamed = moved.replace("project: web", "project: default").replace(`id: ${first}`, "id: NEW-1");
    expectRefusal(await refused(file("identity.md", renamed)), "conflict", `${folder}/identity.md`, `\`${first}\``);
  });

  test("7.5 errors: blockers", async () => {
    const base = await stage.post("base", { trigger: manual });
    const blocked = (list: string) => file("blocked.md", ticket(`id: B-1\nname: Blocked\nblocked_by: ${list}`));
    const unknown = "field `blocked_by` references unknown ticket";
    expectRefusal(await refused(blocked("[NOPE-1]")), "not_found", `${unknown} \`NOPE-1\``);
    const named = await refused(blocked("[base]"));
    const literals = [`${unknown} \`base\``, `a ticket named \`base\` has id \`${base}\``, "`blocked_by` takes ids"];
    expectRefusal(named, "not_found", ...literals);
    expectRefusal(await refused(blocked("[B-1]")), "conflict", "blocked_by", "B-1 -> B-1");
    await wire.ok("post", { file: blocked(`[${base}]`), trigger: manual });
    const text = stage.scene.read(`${folder}/base.md`).replace("blocked_by: []", "blocked_by: [B-1]");
    const cycle = await refused(file("base.md", text));
    expectRefusal(cycle, "conflict", "blocked_by");
    expect(cycle.message).toMatch(new RegExp(`${base} -> B-1 -> ${base}|B-1 -> ${base} -> B-1`));
    file("base.md", text.replace("[B-1]", "[]"));
  });

  test("7.5 errors: a stem that is no slug, unless the file names its worktree", async () => {
    for (const stem of ["Not a slug", "under_score", "double--dash"]) {
      expectRefusal(
        await refused(file(`${stem}.md`, good())),
        "invalid_arguments",
        `\`${stem}\` is not a valid worktree slug`,
      );
    }
    const path = file("Not a slug.md", good("worktree: mine/own"));
    expect(await wire.ok("post", { file: path, trigger: manual })).toMatchObject({ ticket: { worktree: "mine/own" } });
  });

  test("7.5 errors: the order: what is checked first is named first", async () => {
    const path = file("All wrong.md", good("project: nope\nflow: nope\ntarget: no"));
    const at = { trigger: { kind: "at", time: "x" } };
    expectRefusal(await refused("/nowhere", at), "invalid_arguments", "time `x`");
    expectRefusal(await refused(path, { project: "web" }), "conflict", "`nope`", "`web`");
    expectRefusal(await refused(path), "not_found", "project `nope`");
    const known = file("All wrong.md", good("project: web\nflow: nope\ntarget: no"));
    expectRefusal(await refused(known, { flow: "web" }), "conflict", "`nope`", "`web`");
    expectRefusal(await refused(known), "not_found", "`nope`");
    expectRefusal(await refused(file("All wrong.md", good("target: no"))), "invalid_arguments", "agent target `no`");
  });

  test("7.5: after a refusal nothing has changed: no row, no stamp", async () => {
    const text = good("target: no");
    const path = file("untouched.md", text);
    await refused(path);
    expect(stage.scene.read(path)).toBe(text);
    expect(await wire.ok("show", { ref: "A name$" })).not.toMatchObject({ tickets: [{ file: path }] });
  });

  test("7.5 errors: an external source", async () => {
    await using other = await openStage({ config: `sources: { tickets: { exec: [sh, -c, "echo '[]'"] } }` });
    const error = await other.wire.refused("post", { file: "/nowhere", trigger: { kind: "at", time: "x" } });
    expectRefusal(error, "conflict", "does not support authoring");
  });
});

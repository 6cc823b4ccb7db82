// files.md 15 B, posting: tickets against what is registered, posted again, and where their files may be.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newScene } from "../support/scene.ts";
import { everything, folder, openPosting, type Posting, valid, writeDatabase } from "./posting.ts";
import { expectGist, refusal } from "./refusal.ts";

setDefaultTimeout(60_000);

const config = `    codex:
      cmd: [codex, "{model}", "{prompt}"]
`;
const quick = "- { name: only, action: { exec: ['true'] } }\n";

let scene: Posting;
beforeAll(async () => {
  scene = await openPosting({ config, flows: { release: quick, hotfix: quick } });
  await scene.posted("game.md", valid("name: game-state"));
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
});

describe("against the index", () => {
  test.each<[number: string, text: string, flags: string[], code: string, gist: string[]]>([
    ["B29", valid("target: absent"), [], "invalid_arguments", ["agent target `absent` is not configured"]],
    ["B30", valid("target: codex"), [], "invalid_arguments", ["agent target `codex`", "does not specify `model`"]],
    ["B33", valid("flow: bogus"), [], "not_found", ["`bogus`", "`default`, `hotfix`, `release`"]],
    ["B34", valid("flow: release"), ["--flow", "default"], "conflict", ["index.md", "`release`", "`default`"]],
    ["B37", valid("project: web"), ["--project", "api"], "conflict", ["index.md", "`web`", "`api`"]],
    ["B38", valid(), ["--project", "missing"], "not_found", ["project `missing` is not indexed"]],
    ["B40", valid("blocked_by: [TICK-99]"), [], "not_found", ["blocked_by", "TICK-99"]],
    ["B42", valid("id: T9\nblocked_by: [T9]"), [], "conflict", ["blocked_by", "T9 -> T9"]],
    [
      "B25",
      "---\n{name: X, blocked_by: []}\n---\nDo it.\n",
      [],
      "invalid_arguments",
      ["index.md", "invalid frontmatter"],
    ],
    ["B25", "---\n  name: X\n  blocked_by: []\n---\nDo it.\n", [], "invalid_arguments", ["invalid frontmatter"]],
    ["B27", valid("id:"), [], "invalid_arguments", ["invalid frontmatter", "`id`", "present but empty"]],
  ])("%s %j %j", async (...[, text, flags, code, gist]) => {
    const error = await scene.refused("index.md", text, flags);
    expect(error.code).toBe(code);
    expectGist(error.message, gist);
  });

  test("6.1 row 0: no such time, told by the command line", async () => {
    const ran = await scene.sloop(["post", scene.put("index.md", valid()), "--at", "24:00"]);
    expect(ran.code).toBe(2);
    expectGist(ran.stderr, ["24:00", "HH:MM"]);
  });

  test("B41: a name is no id", async () => {
    const game = scene.query<{ id: string }>("select id from tickets where name = 'game-state'")[0]!;
    const { code, message } = await scene.refused("index.md", valid("blocked_by: [game-state]"));
    expect(code).toBe("not_found");
    expectGist(message, [`a ticket named \`game-state\` has id \`${game.id}\``, "`blocked_by` takes ids"]);
  });

  test("B43: a cycle keeps the old edges", async () => {
    await scene.posted("c1.md", valid("id: C1"));
    await scene.posted("c2.md", valid("id: C2\nblocked_by: [C1]"));
    const text = scene.read(`${folder}/c1.md`).replace("blocked_by: []", "blocked_by: [C2]");
    const { code, message } = await scene.refused("c1.md", text);
    expect([code, message]).toEqual(["conflict", expect.stringContaining("C1 -> C2 -> C1")]);
  });

  test.each([
    ["B44", "Fix_Blank.md", "Fix_Blank"],
    ["B46", "v1.2.md", "v1.2"],
  ])("%s %s", async (_number, name, stem) => {
    const { code, message, file } = await scene.refused(name, valid());
    expect(code).toBe("invalid_arguments");
    expectGist(message, [file, `\`${stem}\` is not a valid worktree slug`, "abc-def"]);
  });

  test("B51 and B52: the counter follows the prefix", async () => {
    await scene.posted("n1.md", valid("id: TICK-500"));
    await scene.posted("n2.md", valid("id: OTHER-900"));
    await scene.posted("n3.md", valid("id: TICK-nope"));
    expect((await scene.posted("n4.md", valid())).ticket.id).toBe("TICK-501");
  });

  test("B53, B57: an id registered by another file; a stamped file renamed", async () => {
    const { code, message } = await scene.refused("other.md", valid("id: T1"));
    expect(code).toBe("conflict");
    expectGist(message, ["`T1`", `${folder}/t1.md`]);
    const renamed = await scene.refused("t1-renamed.md", scene.read(`${folder}/t1.md`));
    expect(renamed.code).toBe("conflict");
    expectGist(renamed.message, ["`T1`", `${folder}/t1.md`]);
  });

  test("B54: an edited id", async () => {
    const { code, message } = await scene.refused("t1.md", scene.read(`${folder}/t1.md`).replace("id: T1", "id: T2"));
    expect(code).toBe("conflict");
    expectGist(message, [`${folder}/t1.md`, "`T1`"]);
    scene.write(`${folder}/t1.md`, scene.read(`${folder}/t1.md`).replace("id: T2", "id: T1"));
  });

  test("B55: a removed id is stamped again", async () => {
    const { ticket } = await scene.posted("again.md", valid());
    const stamped = scene.read(`${folder}/again.md`);
    const reply = await scene.posted("again.md", stamped.replace(`id: ${ticket.id}\n`, ""));
    expect(reply).toMatchObject({ created: false, file_rewritten: true, ticket: { id: ticket.id } });
    expect(scene.read(`${folder}/again.md`)).toContain(`\nid: ${ticket.id}\n`);
  });

  test("B56: another project", async () => {
    const text = scene.read(`${folder}/t1.md`);
    const { code, message } = await scene.refused("t1.md", text.replace("project: default", "project: web"));
    expect(code).toBe("conflict");
    expectGist(message, [`${folder}/t1.md`, "`default`", "`web`"]);
    scene.write(`${folder}/t1.md`, text);
  });
});

describe("posted again", () => {
  test("B58: new content, the same ticket and trigger", async () => {
    const first = await scene.posted("again-2.md", valid());
    const text = scene
      .read(`${folder}/again-2.md`)
      .replace("name: A ticket", "name: Renamed")
      .replace("blocked_by: []", "blocked_by: [T1]")
      .replace("worktree: sloop/again-2", "worktree: feature/y");
    const second = await scene.posted("again-2.md", text);
    expect(second).toMatchObject({ created: false, file_rewritten: false, trigger: { id: first.trigger!.id } });
    expect(second.ticket).toMatchObject({
      id: first.ticket.id,
      name: "Renamed",
      blocked_by: ["T1"],
      worktree: "feature/y",
    });
    expect(scene.query(`select id from triggers where ticket_id = '${first.ticket.id}'`)).toHaveLength(1);
  });

  test.each([
    ["merged", ["--auto"]],
    ["failed", ["--at", "03:00"]],
    ["needs_review", ["--manual"]],
    ["merged", ["--hold"]],
  ])("B59: a %s ticket, %j", async (state, flags) => {
    const name = `settled-${state.replace("_", "-")}${flags[0]}.md`.replace("--", "-");
    const { ticket } = await scene.posted(name, valid(), ["--at", "04:00"]);
    writeDatabase(scene, `update tickets set state = '${state}' where id = '${ticket.id}'`);
    const queued = scene.query(`select * from triggers where ticket_id = '${ticket.id}'`);
    const text = scene.read(`${folder}/${name}`).replace("Do it.", "Do more.");
    const reply = await scene.posted(name, text, flags);
    expect(reply).toMatchObject({ trigger: null, trigger_suppressed: { reason: "terminal_ticket", state } });
    expect(scene.query(`select * from triggers where ticket_id = '${ticket.id}'`)).toEqual(queued);
    const stored = scene.query(`select state, body from tickets where id = '${ticket.id}'`);
    expect(stored).toEqual([{ state, body: "Do more.\n" }]);
  });

  test("B60: --at moves the trigger it queued", async () => {
    const first = await scene.posted("at.md", valid(), ["--at", "03:00"]);
    const second = await scene.posted("at.md", scene.read(`${folder}/at.md`), ["--at", "04:00"]);
    expect(second.trigger!.id).toBe(first.trigger!.id);
    const apart = (second.trigger!.eligible_at_ms! - first.trigger!.eligible_at_ms!) / 3_600_000;
    // One hour later, or 23 earlier when it is between the two right now.
    expect([1, -23]).toContain(apart);
  });

  test("B61: --hold, on the first post only", async () => {
    const first = await scene.posted("held.md", valid(), ["--hold"]);
    expect([first.ticket.state, first.trigger]).toEqual(["held", null]);
    const other = await scene.posted("not-held.md", valid(), ["--manual"]);
    expect(other.ticket.state).toBe("ready");
    const again = await scene.posted("not-held.md", scene.read(`${folder}/not-held.md`), ["--hold"]);
    expect(again.ticket.state).toBe("ready");
  });
});

describe("where the file is", () => {
  test.each<[number: string, path: string, code: string, gist: string[]]>([
    ["B62", "../outside.md", "invalid_arguments", ["../outside.md", "outside the repository"]],
    ["B63", "elsewhere.md", "invalid_arguments", ["elsewhere.md", `outside the ${folder} directory`]],
    ["B64", `${folder}/link.md`, "invalid_arguments", [`${folder}/link.md`, "outside the repository"]],
    ["B66", `${folder}/absent.md`, "not_found", [`${folder}/absent.md`, "not found"]],
    ["5.1", `${folder}/bad.md`, "invalid_arguments", [`${folder}/bad.md`, "UTF-8"]],
    ["5.1", `${folder}/plain.txt`, "invalid_arguments", [`${folder}/plain.txt`, "`.md`"]],
    ["5.1", `${folder}/nowhere/../../../../../x.md`, "invalid_arguments", ["outside the repository"]],
  ])("%s %s", async (_number, path, code, gist) => {
    writeFileSync(join(scene.dir, "outside.md"), valid());
    scene.write("elsewhere.md", valid());
    scene.write(`${folder}/plain.txt`, valid());
    writeFileSync(join(scene.root, folder, "bad.md"), Buffer.from([0x2d, 0xff, 0xfe]));
    const link = join(scene.root, folder, "link.md");
    if (!existsSync(link)) symlinkSync(join(scene.dir, "outside.md"), link);
    const before = everything(scene);
    const error = await refusal(scene, ["post", path]);
    expect(error.code).toBe(code);
    expectGist(error.message, gist);
    expect(everything(scene)).toBe(before);
  });

  test("B65: an absolute path through a link to the root", async () => {
    const link = join(scene.dir, "link-to-root");
    symlinkSync(scene.root, link);
    scene.put("through.md", valid());
    const reply = await scene.data(["post", `${link}/${folder}/through.md`]);
    expect(reply["ticket"]).toMatchObject({ file: `${folder}/through.md` });
  });
});

test("B68: when the trigger cannot be inserted, nothing happened", async () => {
  writeDatabase(scene, "create trigger sabotage before insert on triggers begin select raise(abort, 'sabotaged'); end");
  try {
    const { code, message } = await scene.refused("sabotaged.md", valid());
    expect([code, message]).toEqual(["internal", expect.stringContaining("sabotaged")]);
  } finally {
    writeDatabase(scene, "drop trigger sabotage");
  }
  expect((await scene.posted("sabotaged.md", valid())).created).toBe(true);
});

test("B70: a broken flow file that appears later blocks the post", async () => {
  scene.write(".agents/sloop/flows/late.yaml", "- { name: a, action: wizard }\n");
  const { code, message } = await scene.refused("late.md", valid());
  expect(code).toBe("invalid_arguments");
  expectGist(message, [join(scene.root, ".agents/sloop/flows/late.yaml"), "unknown action `wizard`"]);
  scene.write(".agents/sloop/flows/late.yaml", quick);
  const known = await scene.refused("late.md", valid("flow: late"));
  expect(known.code).toBe("not_found");
  expectGist(known.message, ["`late`", "`default`, `hotfix`, `release`", "sloop daemon restart"]);
});

describe("other configurations", () => {
  test("B31: the default target wants a value nobody gives", async () => {
    await using other = await newScene({ config: '    hungry:\n      cmd: [x, "{effort}", "{prompt}"]\n' });
    const text = other.read(".agents/sloop/config.yaml").replace("default_target: sh", "default_target: hungry");
    other.write(".agents/sloop/config.yaml", text);
    const { code, message } = await refusal(other, ["post", other.ticket("one")]);
    expect(code).toBe("invalid_arguments");
    expectGist(message, ["agent target `hungry`", "does not specify `effort`"]);
  });

  test("B32 and B39: no agent, no default project", async () => {
    await using other = await newScene();
    other.write(".agents/sloop/config.yaml", "version: 1\n");
    other.write(".agents/sloop/projects/default.md", "---\nid: web\n---\n");
    const { code, message } = await refusal(other, ["post", other.ticket("one")]);
    expect([code, message]).toEqual(["not_found", expect.stringContaining("project `default` is not indexed")]);
    const reply = await other.post("one", "project: web");
    expect(reply["ticket"]).toMatchObject({ id: "TICK-1", project: "web", target: null });
  });

  test("B69: an external source allows no posting", async () => {
    await using other = await newScene({ config: "sources: { tickets: { exec: ['true'] } }" });
    const path = other.ticket("one");
    const { code, message } = await refusal(other, ["post", path]);
    expect([code, message]).toEqual(["conflict", expect.stringContaining("does not support authoring")]);
    // That comes before anything is said about the file.
    expect((await refusal(other, ["post", "../nowhere.md"])).message).toContain("does not support authoring");
  });
});

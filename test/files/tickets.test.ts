// files.md 15 B, the files themselves: what `sloop post` says of their contents, and what it makes of good ones.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { folder, openPosting, type Posted, type Posting, valid } from "./posting.ts";
import { expectGist } from "./refusal.ts";

setDefaultTimeout(60_000);

const quick = "- { name: only, action: { exec: ['true'] } }\n";

let scene: Posting;
beforeAll(async () => {
  scene = await openPosting({ flows: { release: quick, hotfix: quick } });
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
});

const missingName = "missing or empty `name`; add `name: Your ticket title`";
const missingBlockers = "missing `blocked_by`; add `blocked_by: []`";
const emptyBody = "empty `body`; add a ticket description";
const badBlockers = "invalid `blocked_by`";
const body = "\nDo it.\n";

/** One problem, alone on the path's line. */
describe("refused with one problem", () => {
  test.each<[number: string, text: string, gist: string[]]>([
    ["B2", "---\nblocked_by: []\n---\nDo it.\n", [missingName]],
    ["B3", valid('name: "  "'), [missingName]],
    ["B4", valid("name: ~"), [missingName]],
    ["B7", valid("name: true"), ["frontmatter field `name` must be a scalar"]],
    ["B9", "---\nname: X\n---\nDo it.\n", [missingBlockers]],
    ...["T1", "~", "{a: b}"].map((value): [string, string, string[]] => [
      "B10",
      valid(`blocked_by: ${value}`),
      [badBlockers, "blocked_by: []"],
    ]),
    ["B11", valid("blocked_by: [12]"), [badBlockers]],
    ["B13", valid("", " \n\t\n"), [emptyBody]],
    ["B17", `---\nname: X\r\nblocked_by: []\n---${body}`, ["line break other than LF", "Unix line ends"]],
    ["B18", `---\nname: X\nblocked_by: []${body}`, ["not terminated"]],
    ["B19", `---\nname: X\nblocked_by: []\n---\r${body}`, ["not terminated"]],
    ["B20", "---\nname: X\nblocked_by: []\n---", [emptyBody]],
    ["B21", `---\nname: [oops\n---\n`, ["invalid frontmatter"]],
    ["B22", `---\n~\n---${body}`, ["must be a mapping"]],
    ["B22", `---\n- a\n---${body}`, ["must be a mapping"]],
    ["B23", valid("id: T7\nid: T7"), ["invalid frontmatter", "duplicate", "`id`"]],
    ["B49", valid('worktree: "a b"'), ["`worktree`", "branch name"]],
    ["B49", valid("worktree: .."), ["`worktree`", "branch name"]],
    ["B50", valid('id: ""'), ["`id`"]],
    ["B50", valid('id: "a b"'), ["`id`"]],
  ])("%s %j", async (_number, text, gist) => {
    const { code, message, file } = await scene.refused("one-problem.md", text);
    expect(code).toBe("invalid_arguments");
    expect(message).toStartWith(`${file}: `);
    expect(message).not.toContain("\n");
    expectGist(message, gist);
  });

  test("B21: nothing is said about the body", async () => {
    expect((await scene.refused("one-problem.md", "---\nname: [oops\n---\n")).message).not.toContain("body");
  });

  test("B22: null and empty are not the same", async () => {
    const { message } = await scene.refused("one-problem.md", "---\nnull\n---\nDo it.\n");
    expect(message).toContain("invalid frontmatter");
    expect((await scene.refused("one-problem.md", "---\n\n---\nDo it.\n")).message).toContain(missingName);
  });
});

describe("refused with all problems at once", () => {
  const notRecognised = "was not recognised";
  test.each<[number: string, text: string, lines: string[]]>([
    ["B8", valid("name: [a]\nblocked_by: T1"), [badBlockers, "frontmatter field `name` must be a scalar"]],
    ["B14", "---\ntitle: T\n---\n \n", [missingName, missingBlockers, emptyBody]],
    ["B15", "Just text.\n", [missingName, missingBlockers]],
    ["B16", valid().replaceAll("\n", "\r\n"), [`${missingName} (`, missingBlockers]],
    ["B16", `\ufeff${valid()}`, [`${missingName} (`, missingBlockers]],
    ["B16", valid().replace("---\n", "---  \n"), [`${missingName} (`, missingBlockers]],
  ])("%s %j", async (number, text, lines) => {
    const { code, message, file } = await scene.refused("all-problems.md", text);
    expect(code).toBe("invalid_arguments");
    const [heading, ...problems] = message.split("\n");
    expect(heading).toBe(`${file}:`);
    expect(problems).toHaveLength(lines.length);
    for (const [index, line] of lines.entries()) expect(problems[index]).toStartWith(`  - ${line}`);
    if (number === "B16") expect(message).toContain(notRecognised);
  });
});

describe("accepted", () => {
  let count = 0;
  const fresh = () => `accepted-${++count}.md`;

  test("B1: registered, stamped and queued", async () => {
    const name = fresh();
    const reply = await scene.posted(name, valid());
    expect(reply).toMatchObject({ created: true, file_rewritten: true, trigger_suppressed: null });
    expect(reply.trigger).toMatchObject({ kind: "auto", ticket: reply.ticket.id });
    const worktree = `sloop/${name.slice(0, -3)}`;
    const keys = `id: ${reply.ticket.id}\nproject: default\nworktree: ${worktree}\nflow: default\n`;
    expect(scene.read(`${folder}/${name}`)).toBe(`---\nname: A ticket\nblocked_by: []\n${keys}---\nDo it.\n`);
  });

  test.each([
    ["B5", "name: 42", "42"],
    ["B6", "name: yes", "yes"],
  ])("%s %s", async (_number, line, name) => {
    expect((await scene.posted(fresh(), valid(line))).ticket.name).toBe(name);
  });

  test("B12: a blocker named twice is stored once", async () => {
    const { ticket } = await scene.posted(fresh(), valid("blocked_by: [T1, T1]"));
    expect(ticket.blocked_by).toEqual(["T1"]);
  });

  test("B24: other line breaks in the body", async () => {
    const text = "one\r\ntwo\u2028three\n";
    const { ticket } = await scene.posted(fresh(), valid("", text));
    expect(scene.query(`select body from tickets where id = '${ticket.id}'`)).toEqual([{ body: text }]);
  });

  test("B26: a flow-style block with nothing to add", async () => {
    const name = fresh();
    const text = `---\n{name: X, blocked_by: [], id: FLOW-1, project: default, worktree: sloop/x, flow: default}\n---${body}`;
    expect(await scene.posted(name, text)).toMatchObject({ file_rewritten: false, ticket: { id: "FLOW-1" } });
    expect(scene.read(`${folder}/${name}`)).toBe(text);
  });

  test("B28: unknown keys are kept", async () => {
    const name = fresh();
    await scene.posted(name, valid("priority: high\nlabels: [a]  # mine"));
    expect(scene.read(`${folder}/${name}`)).toContain("priority: high\nlabels: [a]  # mine\nid: ");
  });

  test("B35 and B36: --flow agrees with the file, or is stamped", async () => {
    const agreed = await scene.posted(fresh(), valid("flow: release"), ["--flow", "release"]);
    expect(agreed.ticket.flow).toBe("release");
    const name = fresh();
    expect((await scene.posted(name, valid(), ["--flow", "hotfix"])).ticket.flow).toBe("hotfix");
    expect(scene.read(`${folder}/${name}`)).toContain("\nflow: hotfix\n");
  });

  test("B45: an explicit worktree needs no slug", async () => {
    const { ticket } = await scene.posted("Fix_Login.md", valid("worktree: sloop/fix-login"));
    expect(ticket.worktree).toBe("sloop/fix-login");
  });

  test("B47: two files of one stem", async () => {
    const first = await scene.posted(`${folder}/a/fix.md`, valid());
    const second = await scene.posted(`${folder}/b/fix.md`, valid());
    expect([first.ticket.worktree, second.ticket.worktree]).toEqual(["sloop/fix", "sloop/fix"]);
    const ordinal = ({ ticket }: Posted) => Number(ticket.id.slice("TICK-".length));
    expect(ordinal(second)).toBe(ordinal(first) + 1);
  });

  test("B48: any branch name will do", async () => {
    const name = fresh();
    expect((await scene.posted(name, valid("worktree: feature/x"))).ticket.worktree).toBe("feature/x");
    expect(scene.read(`${folder}/${name}`).match(/worktree/g)).toHaveLength(1);
  });
});

// Whatever stands where a person's file belongs (a pipe, a device, a folder, a link to nowhere, far too much of a file):
// nobody waits for it and nobody reads it without an end, through the compiled binary.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makePipe } from "../support/pipe.ts";
import { newScene, type Scene } from "../support/scene.ts";
import { folder, valid } from "./posting.ts";
import { expectGist, refusal } from "./refusal.ts";

setDefaultTimeout(120_000);

/** Each puts itself at a path. Only the last is a file, and it has more bytes than anybody writes. */
const strange: readonly [kind: string, make: (path: string) => void][] = [
  ["a pipe", makePipe],
  ["a folder", (path) => mkdirSync(path)],
  ["a link to a device that never ends", (path) => symlinkSync("/dev/zero", path)],
  ["a link to itself", (path) => symlinkSync(path, path)],
  ["a link to nowhere", (path) => symlinkSync(`${path}.not-there`, path)],
];

function huge(path: string): void {
  writeFileSync(path, "---\nname: Huge\nblocked_by: []\n---\n");
  truncateSync(path, 3 * 1024 ** 3);
}

function place(scene: { root: string }, path: string, make: (path: string) => void): string {
  const full = join(scene.root, path);
  mkdirSync(dirname(full), { recursive: true });
  rmSync(full, { recursive: true, force: true });
  make(full);
  return full;
}

const flow = ".agents/sloop/flows/odd.yaml";
const project = ".agents/sloop/projects/odd.md";

test("a ticket: `post` says that there is none", async () => {
  await using scene = await newScene();
  await scene.data(["daemon"]);
  const path = `${folder}/odd.md`;
  for (const [kind, make] of strange) {
    // A device lies outside the repository, and that is said first.
    const wanted = kind.includes("device") ? "invalid_arguments" : kind.includes("itself") ? "internal" : "not_found";
    place(scene, path, make);
    const { code, message } = await refusal(scene, ["post", path]);
    expect([kind, code]).toEqual([kind, wanted]);
    expect(message).toContain(path);
  }
  place(scene, path, huge);
  const { code, message } = await refusal(scene, ["post", path]);
  expect(code).toBe("invalid_arguments");
  expectGist(message, [path, "larger than 16 MiB"]);
  expect(scene.query("select id from tickets")).toEqual([]);
});

test("tickets: `reindex` passes over them, and holds one that is too large", async () => {
  await using scene = await newScene();
  scene.write(`${folder}/good.md`, valid());
  for (const [index, [, make]] of strange.entries()) place(scene, `${folder}/odd-${index}.md`, make);
  place(scene, `${folder}/huge.md`, huge);
  const pipe = place(scene, "elsewhere", makePipe);
  symlinkSync(pipe, join(scene.root, folder, "linked.md"));
  expect(await scene.data(["reindex"])).toMatchObject({ tickets_indexed: 2 });
  expect(scene.query("select file_path, state, held_reason from tickets order by id")).toEqual([
    { file_path: `${folder}/good.md`, state: "ready", held_reason: null },
    { file_path: `${folder}/huge.md`, state: "held", held_reason: `${folder}/huge.md: is larger than 16 MiB` },
  ]);
  // The same again, with all of them still there.
  expect(await scene.data(["reindex"])).toMatchObject({ tickets_indexed: 2, rows_dropped: 0 });
});

test("a registered ticket whose file became something else: shown without a body, missing after a restart", async () => {
  await using scene = await newScene();
  await scene.post("one", "", ["--manual"]);
  for (const [, make] of strange) {
    place(scene, `${folder}/one.md`, make);
    expect(await scene.value("TICK-1")).toMatchObject({ body: "" });
  }
  place(scene, `${folder}/one.md`, makePipe);
  await scene.data(["stop"]);
  await scene.data(["daemon"]);
  expect(scene.query("select missing_at_ms is not null as missing from tickets")).toEqual([{ missing: 1 }]);
});

describe("at the start", () => {
  test.each(strange)("flows and projects: %s is passed over, and people are told", async (_kind, make) => {
    await using scene = await newScene();
    place(scene, flow, make);
    place(scene, project, make);
    const ran = await scene.sloop(["daemon"]);
    expect([ran.code, ran.stderr]).toEqual([
      0,
      `warning: ${join(scene.root, flow)}: not read; it is not a regular file\n`,
    ]);
    const skipped = scene.events().filter(({ event }) => event === "project_file_skipped");
    expect(skipped).toHaveLength(1);
    expect(String(skipped[0]!.fields!["problem"])).toStartWith(`${project}: is `);
    expect((await scene.sloop(["post", scene.ticket("one"), "--manual"])).code).toBe(0);
    const { code, message } = await refusal(scene, ["post", scene.ticket("two", "flow: odd")]);
    expect(code).toBe("not_found");
    expect(message).not.toContain("restart");
  });

  test.each(strange)("the user's configuration: %s is none", async (_kind, make) => {
    await using scene = await newScene();
    place({ root: scene.dir }, "home/.config/sloop/config.yaml", make);
    const ran = await scene.sloop(["daemon"]);
    expect([ran.code, ran.stderr]).toEqual([0, ""]);
  });

  test("a flow, a project, a configuration that is far too large is named", async () => {
    await using scene = await newScene();
    for (const path of [flow, ".agents/sloop/config.yaml"]) {
      const before = path === flow ? null : scene.read(path);
      const full = place(scene, path, huge);
      const { code, message } = await refusal(scene, ["daemon"]);
      expect(code).toBe("invalid_arguments");
      expect(message).toStartWith(`${full}: `);
      expect(message).toContain("larger than 16 MiB");
      rmSync(full);
      if (before !== null) scene.write(path, before);
    }
    place(scene, project, huge);
    const { code, message } = await refusal(scene, ["daemon"]);
    expect(code).toBe("daemon_unavailable");
    expectGist(message, [project, "larger than 16 MiB"]);
  });

  test("a name with a slash or a NUL is no flow that came too late", async () => {
    await using scene = await newScene();
    scene.write("outside.yaml", "- { name: a, action: agent }\n");
    for (const name of ["../../../outside", '"a\\0b"', "x".repeat(300)]) {
      const { code, message } = await refusal(scene, ["post", scene.ticket("one", `flow: ${name}`)]);
      expect(code).toBe("not_found");
      expect(message).not.toContain("restart");
    }
  });
});

test("a ticket directory that is a link leads where it leads, for `post` and `reindex` alike; a link in it never out", async () => {
  await using scene = await newScene();
  const far = join(scene.dir, "far");
  mkdirSync(far);
  rmSync(join(scene.root, folder), { recursive: true });
  symlinkSync(far, join(scene.root, folder));
  writeFileSync(join(far, "one.md"), valid());
  writeFileSync(join(far, "two.md"), valid());
  writeFileSync(join(scene.dir, "out.md"), valid());
  symlinkSync(join(scene.dir, "out.md"), join(far, "three.md"));
  const posted = await scene.data(["post", `${folder}/one.md`, "--manual"]);
  expect(posted["ticket"]).toMatchObject({ id: "TICK-1", file: `${folder}/one.md` });
  expect(await Bun.file(join(far, "one.md")).text()).toContain("\nid: TICK-1\n");
  expect((await refusal(scene, ["post", `${folder}/three.md`])).message).toContain("outside the repository");
  expect(await scene.data(["reindex"])).toMatchObject({ tickets_indexed: 2, rows_dropped: 0 });
  const rows = scene.query("select id, file_path from tickets order by id");
  expect(rows).toEqual(["one", "two"].map((name, n) => ({ id: `TICK-${n + 1}`, file_path: `${folder}/${name}.md` })));
  expect(await Bun.file(join(scene.dir, "out.md")).text()).toBe(valid());
  expect(await scene.value("TICK-2")).toMatchObject({ body: "Do it." });
});

test("a project that is a link out of the repository is neither read nor stamped, one within it is", async () => {
  await using scene = await newScene();
  const far = join(scene.dir, "notes.md");
  writeFileSync(far, "mine\n");
  scene.write("near.md", "# near\n");
  symlinkSync(far, join(scene.root, ".agents/sloop/projects/far.md"));
  symlinkSync(join(scene.root, "near.md"), join(scene.root, ".agents/sloop/projects/near.md"));
  await scene.data(["daemon"]);
  expect(await Bun.file(far).text()).toBe("mine\n");
  expect(scene.read("near.md")).toBe("---\nid: PROJ-1\n---\n# near\n");
  const skipped = scene.events().filter(({ event }) => event === "project_file_skipped");
  expect(skipped.map(({ fields }) => fields!["problem"])).toEqual([
    ".agents/sloop/projects/far.md: is a link that leads out of the repository",
  ]);
  expect(await scene.data(["reindex"])).toMatchObject({ projects_indexed: 2 });
  expect(await Bun.file(far).text()).toBe("mine\n");
});

describe("prompts: the stage cannot start, and the daemon goes on", () => {
  const panel = `- name: judge
  action: { exec: ['true'] }
  result_check: { panel: { prompt: odd.md, reviewers: [{ target: sh }, { target: sh }] } }
`;

  async function fails(scene: Scene, ticket: string, gist: string): Promise<void> {
    expect(await scene.wait(ticket)).toBe(1);
    const problems = JSON.stringify(scene.events());
    expect(problems).toContain(gist);
    expect((await scene.sloop(["status"])).code).toBe(0);
  }

  test.each(strange.filter(([kind]) => !kind.includes("nowhere")))("%s", async (_kind, make) => {
    await using scene = await newScene({ flows: { panel } });
    place(scene, ".agents/sloop/odd.md", make);
    await scene.post("judged", "flow: panel");
    await fails(scene, "TICK-1", ".agents/sloop/odd.md cannot be read");
    place(scene, ".agents/sloop/instructions.md", make);
    await scene.post("worked");
    await fails(scene, "TICK-2", ".agents/sloop/instructions.md cannot be read");
  });
});

test("`init` does not read a pipe, and says that something is in the way", async () => {
  await using scene = await newScene();
  place(scene, ".agents/sloop/config.yaml", makePipe);
  const { code, message } = await refusal(scene, ["init"]);
  expect(code).toBe("conflict");
  expect(message).toContain(".agents/sloop/config.yaml");
});

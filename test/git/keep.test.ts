// Nothing of a run's worktree is lost, whatever filters, nested repositories, damage or a detached HEAD stand in the way.

import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { keepUncommitted, NotAllKept, readWip } from "../../src/git/keep.ts";
import { dropKept, keepDetached, keepTip, listKeptRuns } from "../../src/git/kept-refs.ts";
import { addWorktree, removeWorktree } from "../../src/git/worktree.ts";
import { newWorld, type World } from "../support/repo.ts";

const branch = "sloop/TICK-1-a1-0a0a0a0a";
const runId = "0a0a0a0a7d4e5061a2b3c4d5e6f70819";
const wip = `refs/sloop/wip/${runId}`;
const kept = `refs/sloop/kept/${runId}`;

type Scene = AsyncDisposable & {
  world: World;
  path: string;
  put(name: string, text: string): void;
  inside(...args: string[]): string;
  keep(): ReturnType<typeof keepUncommitted>;
  stored(name: string): string;
  names(): string[];
  run: { root: string; branch: string; runId: string; worktree: string };
};

async function scene(files: Record<string, string> = {}): Promise<Scene> {
  const world = await newWorld();
  world.write(".gitignore", "ignored\n.worktrees\n");
  for (const [name, text] of Object.entries({ "kept.txt": "old\n", "gone.txt": "old\n", ...files }))
    world.write(name, text);
  world.commit("files");
  const path = join(world.root, ".worktrees/0a0a0a0a");
  const made = await addWorktree({ root: world.root, path, branch, startPoint: "main" });
  expect(made).toEqual({ ok: true });
  const run = { root: world.root, branch, runId, worktree: path };
  return {
    world,
    path,
    run,
    put(name, text) {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), text);
    },
    inside: (...args) => world.git("-C", path, ...args),
    keep: () => keepUncommitted(run),
    stored: (name) => world.git("show", `${wip}:${name}`),
    names: () => world.git("-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", wip).split("\n"),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

function admin({ world }: Scene): string {
  return join(world.root, ".git/worktrees/0a0a0a0a");
}

describe("a file that git does not add", () => {
  test("because its required filter fails is kept as it is, and so is everything else", async () => {
    await using s = await scene({ ".gitattributes": "*.lfs filter=broken\n" });
    s.world.git("config", "filter.broken.clean", "false");
    s.world.git("config", "filter.broken.required", "true");
    s.put("big.lfs", "big\n");
    s.put('"odd\n name".lfs', "odd\n");
    s.put("sub dir/nëw", "precious\n");
    s.put("tool.lfs", "#!/bin/sh\n");
    chmodSync(join(s.path, "tool.lfs"), 0o755);
    symlinkSync("kept.txt", join(s.path, "link"));
    s.put("kept.txt", "new\n");
    s.put("ignored", "x");
    rmSync(join(s.path, "gone.txt"));
    const before = s.inside("status", "--porcelain");
    expect(await s.keep()).toEqual({ ref: wip, files: 7 });
    expect(s.inside("status", "--porcelain")).toBe(before);
    expect(s.stored("big.lfs")).toBe("big");
    expect(s.stored("sub dir/nëw")).toBe("precious");
    expect(s.stored("kept.txt")).toBe("new");
    expect(s.world.git("ls-tree", wip, "tool.lfs")).toStartWith("100755");
    expect(s.world.git("ls-tree", wip, "link")).toStartWith("120000");
    expect(s.names()).not.toContain("gone.txt");
    expect(s.names()).not.toContain("ignored");
    expect(s.world.git("show", `${wip}:"odd\n name".lfs`)).toBe("odd");
  });

  test("because a folder took a file's place, or the other way round, is kept past a failing filter too", async () => {
    await using s = await scene({ ".gitattributes": "*.lfs filter=broken\n", "folder/a": "a\n", "folder/b": "b\n" });
    s.world.git("config", "filter.broken.clean", "false");
    s.world.git("config", "filter.broken.required", "true");
    rmSync(join(s.path, "kept.txt"));
    rmSync(join(s.path, "folder"), { recursive: true });
    s.put("kept.txt/inner", "inner\n");
    s.put("folder", "file\n");
    s.put("x.lfs", "x\n");
    await s.keep();
    expect(s.stored("kept.txt/inner")).toBe("inner");
    expect(s.stored("folder")).toBe("file");
    expect(s.stored("x.lfs")).toBe("x");
  });

  test("because the index was told to overlook it is kept", async () => {
    await using s = await scene();
    s.inside("update-index", "--assume-unchanged", "kept.txt");
    s.inside("update-index", "--skip-worktree", "gone.txt");
    s.put("kept.txt", "edited\n");
    s.put("gone.txt", "edited too\n");
    expect(await s.keep()).toMatchObject({ files: 2 });
    expect(s.stored("kept.txt")).toBe("edited");
    expect(s.stored("gone.txt")).toBe("edited too");
  });

  test("because the object store takes nothing is not said to be kept", async () => {
    await using s = await scene();
    s.put("precious", "precious\n");
    const objects = join(s.world.root, ".git/objects");
    // A file where each folder of the object store would have to be made: like a full disk, also for root.
    for (let first = 0; first < 256; first += 1) {
      const folder = join(objects, first.toString(16).padStart(2, "0"));
      if (!existsSync(folder)) writeFileSync(folder, "");
    }
    const failure = await s.keep().then(
      () => null,
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(Error);
    expect(readFileSync(join(s.path, "precious"), "utf8")).toBe("precious\n");
  });

  test("because its name is no text is missed, and the others are kept", async () => {
    await using s = await scene({ ".gitattributes": "*.lfs filter=broken\n" });
    s.world.git("config", "filter.broken.clean", "false");
    s.world.git("config", "filter.broken.required", "true");
    s.put("other", "other\n");
    writeFileSync(Buffer.concat([Buffer.from(`${s.path}/bad`), Buffer.from([0xff]), Buffer.from(".lfs")]), "x");
    const failure = await s.keep().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(NotAllKept);
    expect((failure as NotAllKept).kept).toMatchObject({ ref: wip });
    expect(s.stored("other")).toBe("other");
  });
});

describe("a repository inside the worktree", () => {
  const init = (s: Scene, folder: string) => {
    mkdirSync(join(s.path, folder), { recursive: true });
    s.world.git("-C", join(s.path, folder), "init", "-q");
    for (const [key, value] of [
      ["user.name", "T"],
      ["user.email", "t@example.invalid"],
    ] as const)
      s.world.git("-C", join(s.path, folder), "config", key, value);
  };

  for (const committed of [false, true]) {
    test(`${committed ? "with" : "without"} a commit: its files are kept, also of one inside it`, async () => {
      await using s = await scene();
      init(s, "sub");
      s.put("sub/precious.txt", "precious\n");
      s.put("sub/.gitignore", "junk\n");
      s.put("sub/junk", "junk\n");
      if (committed) {
        s.world.git("-C", join(s.path, "sub"), "add", "-A");
        s.world.git("-C", join(s.path, "sub"), "commit", "-qm", "x");
        s.put("sub/more.txt", "more\n");
      }
      init(s, "sub/deep");
      s.put("sub/deep/deeper.txt", "deeper\n");
      await s.keep();
      const wanted = ["sub/.gitignore", "sub/deep/deeper.txt", ...(committed ? ["sub/more.txt"] : [])];
      expect(s.names().filter((name) => name.startsWith("sub/"))).toEqual([...wanted, "sub/precious.txt"]);
      expect(s.stored("sub/deep/deeper.txt")).toBe("deeper");
    });
  }

  test("that is a submodule as it was cloned keeps nothing; edited, committed to or never cloned but used, it does", async () => {
    await using s = await scene();
    const library = join(s.world.dir, "library");
    mkdirSync(library);
    s.world.git("-C", library, "init", "-q");
    writeFileSync(join(library, "lib.txt"), "lib\n");
    s.world.git("-C", library, "add", "-A");
    s.world.git("-C", library, "-c", "user.name=T", "-c", "user.email=t@e.invalid", "commit", "-qm", "lib");
    const add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q", library];
    s.inside(...add, "one");
    s.inside(...add, "two");
    s.inside("commit", "-qm", "submodules");
    expect(await s.keep()).toBeNull();
    s.put("one/new.txt", "new\n");
    await s.keep();
    expect(s.names().filter((name) => /^(?:one|two)/.test(name))).toEqual(["one/lib.txt", "one/new.txt", "two"]);
    rmSync(join(s.path, "one/new.txt"));
    s.world.git(
      "-C",
      join(s.path, "two"),
      "-c",
      "user.name=T",
      "-c",
      "user.email=t@e.invalid",
      "commit",
      "-q",
      "--allow-empty",
      "-m",
      "x",
    );
    await s.keep();
    expect(s.names().filter((name) => /^(?:one|two)/.test(name))).toEqual(["one", "two/lib.txt"]);
    s.inside("submodule", "deinit", "-q", "--all", "--force");
    s.put("two/lost", "lost\n");
    await s.keep();
    expect(s.stored("two/lost")).toBe("lost");
  });
});

describe("a worktree that git has lost", () => {
  const damages: Record<string, (s: Scene) => void> = {
    "its .git file": (s) => rmSync(join(s.path, ".git")),
    "git's record of it": (s) => rmSync(admin(s), { recursive: true }),
    "its .git file and git's record of it": (s) => {
      rmSync(admin(s), { recursive: true });
      rmSync(join(s.path, ".git"));
    },
    "what its .git file said": (s) => writeFileSync(join(s.path, ".git"), ""),
    "its HEAD": (s) => rmSync(join(admin(s), "HEAD")),
  };
  for (const [what, damage] of Object.entries(damages)) {
    test(`${what}: its files are kept all the same, and then it can go`, async () => {
      await using s = await scene();
      s.put("work", "work\n");
      s.inside("add", "-A");
      s.inside("commit", "-qm", "work");
      s.put("precious", "precious\n");
      s.put("kept.txt", "new\n");
      s.put("ignored", "x");
      damage(s);
      expect(await s.keep()).toEqual({ ref: wip, files: 2 });
      expect(s.stored("precious")).toBe("precious");
      expect(s.stored("work")).toBe("work");
      expect(s.names()).not.toContain("ignored");
      expect(s.world.git("rev-parse", `${wip}^1`)).toBe(s.world.git("rev-parse", branch));
      const request = { root: s.world.root, path: s.path, branch: null };
      expect(await removeWorktree({ ...request, saved: true })).toEqual({ ok: true });
      expect(existsSync(s.path)).toBe(false);
      expect(s.world.git("worktree", "list", "--porcelain")).not.toContain("0a0a0a0a");
      expect(s.world.git("status", "--porcelain")).toBe("");
    });
  }

  for (const text of ["x", ""]) {
    test(`its index (${text === "" ? "empty" : "damaged"})`, async () => {
      await using s = await scene();
      s.put("precious", "precious\n");
      rmSync(join(s.path, "gone.txt"));
      writeFileSync(join(admin(s), "index"), text);
      expect(await s.keep()).toEqual({ ref: wip, files: 2 });
      expect(s.stored("precious")).toBe("precious");
    });
  }

  test("to a repository that took its place: the files are kept, the directory stays", async () => {
    await using s = await scene();
    rmSync(join(s.path, ".git"));
    s.inside("init", "-q");
    s.put("precious", "precious\n");
    expect(await s.keep()).toEqual({ ref: wip, files: 1 });
    const request = { root: s.world.root, path: s.path, branch: null, saved: true };
    expect(await removeWorktree(request)).toMatchObject({ ok: false });
    expect(readFileSync(join(s.path, "precious"), "utf8")).toBe("precious\n");
  });
});

test("what was kept once stays reachable when less is left, and the same is not kept twice", async () => {
  await using s = await scene();
  s.put("one", "one\n");
  s.put("two", "two\n");
  expect(await s.keep()).toEqual({ ref: wip, files: 2 });
  const first = s.world.git("rev-parse", wip);
  await s.keep();
  expect(s.world.git("rev-parse", wip)).toBe(first);
  rmSync(join(s.path, "one"));
  expect(await s.keep()).toEqual({ ref: wip, files: 1 });
  expect(await readWip(s.world.root, runId)).toEqual({ ref: wip, files: 1 });
  expect(s.world.git("merge-base", first, wip)).toBe(first);
  rmSync(join(s.path, "two"));
  expect(await s.keep()).toBeNull();
  expect(s.names()).toContain("two");
});

describe("a commit that only the worktree knows", () => {
  const commitFile = (s: Scene, name: string): string => {
    s.put(name, name);
    s.inside("add", "-A");
    s.inside("commit", "-qm", name);
    return s.inside("rev-parse", "HEAD");
  };
  const keepAll = async (s: Scene) => [await keepTip(s.run), ...(await keepDetached(s.run))];
  const reaching = (s: Scene, oid: string) =>
    s.world.git("for-each-ref", "--format=%(refname)", "--contains", oid, "refs/sloop/kept");

  test("on a detached HEAD is kept, also without .git file or directory, beside the branch's tip", async () => {
    await using s = await scene();
    expect(await keepAll(s)).toEqual([null]);
    s.inside("checkout", "-q", "--detach");
    const one = commitFile(s, "one");
    expect(await keepAll(s)).toEqual([null, kept]);
    expect(await keepAll(s)).toEqual([null]);
    const two = commitFile(s, "two");
    rmSync(join(s.path, ".git"));
    expect(await keepAll(s)).toEqual([null, kept]);
    expect(s.world.git("rev-parse", kept)).toBe(two);
    expect(reaching(s, one)).toBe(kept);
    await dropKept(s.world.root, runId);
    s.world.git("branch", "-f", branch, s.world.git("commit-tree", "-m", "tip", "main^{tree}", "-p", "main"));
    rmSync(s.path, { recursive: true });
    expect(await keepAll(s)).toEqual([kept, `${kept}-head`]);
    expect(reaching(s, two)).toBe(`${kept}-head`);
    expect(await listKeptRuns(s.world.root)).toEqual([runId]);
    await dropKept(s.world.root, runId);
    expect(s.world.git("for-each-ref", "refs/sloop")).toBe("");
  });

  test("in a rebase, an autostash or a reference of its own is kept", async () => {
    await using s = await scene();
    const base = s.inside("rev-parse", "HEAD");
    s.inside("checkout", "-q", "--detach");
    commitFile(s, "one");
    s.put("one", "mine");
    const tip = commitFile(s, "two");
    s.inside("reset", "-q", "--hard", base);
    const other = commitFile(s, "one");
    s.put("one", "conflict");
    s.inside("commit", "-qam", "conflict");
    const onto = s.inside("rev-parse", "HEAD");
    s.inside("checkout", "-q", tip);
    s.put("kept.txt", "stashed\n");
    s.inside("config", "rebase.autoStash", "true");
    Bun.spawnSync(["git", "rebase", onto], { cwd: s.path, stderr: "ignore", stdout: "ignore" });
    expect(existsSync(join(admin(s), "rebase-merge/autostash"))).toBe(true);
    const stash = readFileSync(join(admin(s), "rebase-merge/autostash"), "utf8").trim();
    const odd = s.inside("commit-tree", "-m", "odd", "HEAD^{tree}");
    s.inside("update-ref", "refs/worktree/odd", odd);
    await keepAll(s);
    for (const oid of [tip, other, onto, stash, odd]) expect(reaching(s, oid)).not.toBe("");
  });
});

// Which directory is the repository.

import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { findRoot } from "../../src/system/root.ts";

function scratch(): { dir: string } & Disposable {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "sloop-paths-")));
  return { dir, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}

function configure(root: string, text = "version: 1\n"): string {
  mkdirSync(join(root, ".agents/sloop"), { recursive: true });
  writeFileSync(join(root, ".agents/sloop/config.yaml"), text);
  return root;
}

const readDir = (text: string) => /^worktree_dir: (.+)$/m.exec(text)?.[1] ?? null;

test("the root is the nearest directory with a config, symbolic links resolved", async () => {
  using place = scratch();
  const root = configure(join(place.dir, "repo"));
  const deep = join(root, "a/b");
  mkdirSync(deep, { recursive: true });
  symlinkSync(deep, join(place.dir, "link"));
  expect(await findRoot(realpathSync(join(place.dir, "link")), readDir)).toBe(root);
  expect(await findRoot(root, readDir)).toBe(root);
  const inner = configure(join(root, "inner"));
  expect(await findRoot(inner, readDir)).toBe(inner);
  expect(await findRoot(place.dir, () => null)).toBeNull();
});

test("a directory named like the config is no config", async () => {
  using place = scratch();
  mkdirSync(join(place.dir, ".agents/sloop/config.yaml"), { recursive: true });
  expect(await findRoot(place.dir, readDir)).toBeNull();
});

test("a pipe named like the config is no config, and nobody waits for its writer", async () => {
  using place = scratch();
  mkdirSync(join(place.dir, ".agents/sloop"), { recursive: true });
  expect(Bun.spawnSync(["mkfifo", join(place.dir, ".agents/sloop/config.yaml")]).exitCode).toBe(0);
  expect(await findRoot(place.dir, readDir)).toBeNull();
});

test("a run worktree is passed over, a linked worktree elsewhere is not", async () => {
  using place = scratch();
  const root = configure(join(place.dir, "repo"));
  const run = configure(join(root, ".worktrees/3f2a9c1b"));
  writeFileSync(join(run, ".git"), "gitdir: elsewhere\n");
  mkdirSync(join(run, "src"));
  expect(await findRoot(join(run, "src"), readDir)).toBe(root);
  const linked = configure(join(root, "trees/x"));
  writeFileSync(join(linked, ".git"), "gitdir: elsewhere\n");
  expect(await findRoot(linked, readDir)).toBe(linked);
  configure(root, "worktree_dir: trees\n");
  expect(await findRoot(linked, readDir)).toBe(root);
  expect(await findRoot(run, readDir)).toBe(run);
});

test("a repository cloned into the worktree folder has a .git directory and stays its own", async () => {
  using place = scratch();
  const root = configure(join(place.dir, "repo"));
  const clone = configure(join(root, ".worktrees/clone"));
  mkdirSync(join(clone, ".git"));
  expect(await findRoot(clone, readDir)).toBe(clone);
  expect(dirname(dirname(clone))).toBe(root);
});

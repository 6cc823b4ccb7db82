// The documentation's examples are read by the real loaders, and its generated pages are what the sources give.

import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { commands } from "../src/cli/commands.ts";
import { renderReference } from "../src/cli/reference.ts";
import { topics } from "../src/cli/topics.ts";
import { parseFlow } from "../src/parse/flow.ts";

const root = join(import.meta.dir, "..");

function markdownFiles(): string[] {
  const found = ["README.md", ...new Bun.Glob("docs/**/*.md").scanSync({ cwd: root })];
  return found.filter((file) => existsSync(join(root, file))).sort();
}

/** Blocks that look like a flow: a line `stages:` or one that starts with `- name:`. */
async function flowBlocks(): Promise<{ file: string; text: string }[]> {
  const blocks: { file: string; text: string }[] = [];
  for (const file of markdownFiles()) {
    const text = await Bun.file(join(root, file)).text();
    for (const match of text.matchAll(/^( *)```ya?ml\n([\s\S]*?)^\1```$/gm)) {
      const block = match[2]!;
      const looksLikeFlow = block
        .split("\n")
        .some((line) => line.trim() === "stages:" || line.trim().startsWith("- name:"));
      if (looksLikeFlow) blocks.push({ file, text: block });
    }
  }
  return blocks;
}

test("every flow in the documentation is a flow", async () => {
  const blocks = await flowBlocks();
  for (const { file, text } of blocks) expect(() => parseFlow("example", file, text)).not.toThrow();
  expect(blocks.length).toBeGreaterThanOrEqual(7);
  expect(new Set(blocks.map(({ file }) => file)).size).toBeGreaterThanOrEqual(5);
});

test("the flow that `sloop help flows` shows is a flow", () => {
  const text = topics["flows"]!.text;
  const block = text.slice(text.indexOf("  stages:"), text.indexOf("\n\nFiles stand")).replace(/^ {2}/gm, "");
  expect(parseFlow("help", "help", block).stages.map(({ name }) => name)).toEqual(["build", "test", "merge"]);
});

test("the command reference is up to date: `bun build.ts docs` writes it", async () => {
  expect(await Bun.file(join(root, "docs/reference/cli.md")).text()).toBe(renderReference());
});

test("every command that the documentation shows exists", async () => {
  const names = new Set(commands.map(({ name }) => name));
  const unknown: string[] = [];
  for (const file of markdownFiles()) {
    const text = await Bun.file(join(root, file)).text();
    const fenced = [...text.matchAll(/^ *```[a-z]*\n([\s\S]*?)^ *```$/gm)].map((match) => match[1]!).join("\n");
    const typed = fenced.matchAll(/^\s*(?:\$ )?sloop (?:--json )?([a-z]+)/gm);
    const inline = text.matchAll(/`sloop (?:--json )?([a-z]+)/g);
    for (const [, name = ""] of [...typed, ...inline]) {
      if (!names.has(name)) unknown.push(`${file}: sloop ${name}`);
    }
  }
  expect(unknown).toEqual([]);
});

test("links between documents lead somewhere", async () => {
  const broken: string[] = [];
  for (const file of markdownFiles()) {
    const text = await Bun.file(join(root, file)).text();
    for (const match of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)) {
      if (!existsSync(join(root, file, "..", match[1]!))) broken.push(`${file}: ${match[1]}`);
    }
  }
  expect(broken).toEqual([]);
});

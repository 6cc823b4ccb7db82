// The protocol's reference is what the sources give, and its examples are what a daemon answers today.

import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { guide } from "../../src/protocol/guide.ts";
import { prettyJson, renderProtocol } from "../../src/protocol/reference.ts";
import { type Verb, verbs } from "../../src/protocol/verbs.ts";
import { projectRoot } from "../support/bin.ts";
import { readExamples, recordExamples } from "./examples.ts";

setDefaultTimeout(120_000);

test("the reference is up to date: `bun build.ts docs` writes it", async () => {
  const page = await Bun.file(join(projectRoot, "docs/reference/protocol.md")).text();
  expect(page).toBe(renderProtocol(readExamples()));
});

test("every verb has an example, and every member of its reply is described", () => {
  const examples = readExamples();
  for (const verb of Object.keys(verbs) as Verb[]) {
    const own = examples.filter(({ request }) => request["verb"] === verb);
    expect(own.length).toBeGreaterThan(0);
    for (const { name, reply } of own) {
      if (name === "show, as a worker") continue;
      for (const key of Object.keys(reply.data ?? {})) expect(Object.keys(guide[verb].reply)).toContain(key);
    }
  }
});

test("links within the page lead to its headings, of which none stands twice", () => {
  const page = renderProtocol(readExamples());
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => title.toLowerCase().replaceAll(" ", "-"));
  expect(new Set(headings).size).toBe(headings.length);
  for (const [, anchor = ""] of page.matchAll(/\]\(#([^)]+)\)/g)) expect(headings).toContain(anchor);
});

test("a printed example is still the same JSON", () => {
  for (const example of readExamples()) expect(JSON.parse(prettyJson(example)) as typeof example).toEqual(example);
});

test("a daemon answers as the examples say: `bun run examples` records them anew", async () => {
  expect(await recordExamples()).toEqual(readExamples());
});

// docs/configuration.md and docs/tickets.md: their examples are read by the real loaders, and what they say sloop prints, it prints.

import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { parseConfig } from "../../src/parse/config.ts";
import { parseProject } from "../../src/parse/project.ts";
import { parsePulled } from "../../src/parse/pulled.ts";
import { parseTicket } from "../../src/parse/ticket.ts";
import { projectRoot } from "../support/bin.ts";
import { newScene } from "../support/scene.ts";

setDefaultTimeout(60_000);

async function blocks(page: string, language: string): Promise<string[]> {
  const text = await Bun.file(join(projectRoot, "docs", page)).text();
  return [...text.matchAll(/^```([a-z]+)\n([\s\S]*?)^```$/gm)].flatMap((found) =>
    found[1] === language ? [found[2]!] : [],
  );
}

test("every configuration is one", async () => {
  const configs = (await blocks("configuration.md", "yaml")).filter((text) => text.startsWith("version:"));
  expect(configs.length).toBeGreaterThanOrEqual(4);
  for (const text of configs) {
    const file = { path: "/docs", text };
    const userLevel = text.includes("\ndefaults:");
    const input = userLevel
      ? { repository: { path: "/c", text: "version: 1\n" }, user: file }
      : { repository: file, user: null };
    expect(parseConfig(input).warnings).toEqual([]);
  }
});

test("the source's answer is one", async () => {
  for (const text of await blocks("configuration.md", "json")) expect(parsePulled(text)).toMatchObject({ ok: true });
});

test("every ticket and every project is one", async () => {
  const [ticket = "", project = ""] = await blocks("tickets.md", "markdown");
  expect(parseTicket(ticket, "t.md")).toMatchObject({ name: "Expire idle sessions", blockedBy: ["WEB-3"] });
  expect(parseProject(project, "p.md")).toEqual({ id: "web", title: "Web frontend" });
});

test("the messages are what the binary says", async () => {
  await using scene = await newScene();
  const config = ".agents/sloop/config.yaml";
  const [mistake, warning] = await blocks("configuration.md", "text");
  const here = (text = "") => text.replaceAll("/home/ana/shop", scene.root);
  scene.write(config, "version: 1\nscheduler:\n  stall_after: 90\n");
  expect((await scene.sloop(["daemon"])).stderr).toStartWith(here(mistake));
  scene.write(config, "version: 1\nschedulers: {}\n");
  expect((await scene.sloop(["daemon"])).stderr).toBe(here(warning));
  scene.write(config, "version: 1\n");
  const [problems] = await blocks("tickets.md", "text");
  scene.write(".agents/sloop/tickets/expire-sessions.md", "---\ntitle: Sessions\n---\nDo it.\n");
  const refused = await scene.sloop(["post", ".agents/sloop/tickets/expire-sessions.md"]);
  expect(refused.stderr).toStartWith(problems!);
});

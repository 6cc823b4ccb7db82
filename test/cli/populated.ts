// A scene with a ticket in every state that lasts, for tests that only look.

import { newScene, type Scene } from "../support/scene.ts";

export type Populated = Scene & {
  ids: { merged: string; failed: string; review: string; held: string; ready: string; blocked: string };
};

const flows = {
  reviewed: `stages:
  - { name: build, action: agent }
  - { name: test, action: { exec: ["false"] }, fail_action: fail }
  - { name: merge, action: { builtin: merge } }
`,
};

async function posted(scene: Scene, stem: string, frontmatter = "", flags: string[] = []): Promise<string> {
  return ((await scene.post(stem, frontmatter, flags))["ticket"] as { id: string }).id;
}

async function ended(scene: Scene, stem: string, frontmatter = ""): Promise<string> {
  const id = await posted(scene, stem, frontmatter);
  await scene.wait(id);
  return id;
}

/** Six tickets: merged, failed, needs_review, held, ready with nothing queued, blocked by that one. */
export async function newPopulated(config = ""): Promise<Populated> {
  const scene = await newScene({
    agent:
      'case "$SLOOP_TICKET_ID" in TICK-2) echo no; exit 3;; esac; seq 1 100; echo x > "f-$SLOOP_TICKET_ID"; git add -A; git commit -qm work',
    flows,
    config,
  });
  const merged = await ended(scene, "drop-header", "title: Drop legacy header");
  const failed = await ended(scene, "fix-upload");
  const review = await ended(scene, "trim-image", "flow: reviewed");
  const held = await posted(scene, "split-table", "", ["--hold"]);
  const ready = await posted(scene, "rotate-keys", "", ["--manual"]);
  const blocked = await posted(scene, "paginate-log", `blocked_by: [${ready}]`, ["--manual"]);
  return {
    ...scene,
    ids: { merged, failed, review, held, ready, blocked },
    [Symbol.asyncDispose]: scene[Symbol.asyncDispose],
  };
}

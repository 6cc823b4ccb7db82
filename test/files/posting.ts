// One repository for many posts: files put, posted, and what is refused proved to have changed nothing.

import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { newScene, type Scene, type SceneOptions } from "../support/scene.ts";
import { type Refusal, refusal } from "./refusal.ts";

export type Posted = {
  ticket: { id: string; name: string; state: string; blocked_by: string[]; worktree: string; flow: string };
  created: boolean;
  file_rewritten: boolean;
  trigger: { id: string; kind: string; eligible_at_ms?: number } | null;
  trigger_suppressed: { reason: string; state: string } | null;
};

export const folder = ".agents/sloop/tickets";

/** A ticket with the fields that are needed, but those given. */
export function valid(lines = "", body = "Do it.\n"): string {
  const name = /^name:/m.test(lines) ? "" : "name: A ticket\n";
  const blocked = /^blocked_by:/m.test(lines) ? "" : "blocked_by: []\n";
  return `---\n${name}${blocked}${lines}${lines === "" ? "" : "\n"}---\n${body}`;
}

/** Changes the daemon's database under it, as other programs may. */
export function writeDatabase(scene: Scene, sql: string): void {
  const db = new Database(join(scene.stateDir(), "sloop.db"));
  try {
    db.run("PRAGMA busy_timeout=5000");
    db.run(sql);
  } finally {
    db.close();
  }
}

/** Everything a post may change but the file. */
export function everything(scene: Scene): string {
  return JSON.stringify([
    scene.query("select * from tickets order by id"),
    scene.query("select * from ticket_blockers order by ticket_id, position"),
    scene.query("select * from triggers order by id"),
    scene.query("select * from id_counters order by kind"),
  ]);
}

export type Posting = Scene & {
  /** Writes a ticket file; a bare name stands for one in the ticket directory. The path to post. */
  put(path: string, text: string): string;
  posted(path: string, text: string, flags?: string[]): Promise<Posted>;
  /** Posts what must be refused, and nothing may have changed by it: no byte, no row, no counter. */
  refused(path: string, text: string, flags?: string[]): Promise<Refusal & { file: string }>;
};

/** A paused daemon with the projects `default`, `web` and `api` and the ticket `T1`. */
export async function openPosting(options: SceneOptions = {}): Promise<Posting> {
  const scene = await newScene(options);
  for (const id of ["web", "api"]) scene.write(`.agents/sloop/projects/${id}.md`, `---\nid: ${id}\n---\n`);
  await scene.data(["pause"]);
  const put = (path: string, text: string): string => {
    const file = path.includes("/") ? path : `${folder}/${path}`;
    scene.write(file, text);
    return file;
  };
  const posting: Posting = {
    ...scene,
    [Symbol.asyncDispose]: scene[Symbol.asyncDispose],
    put,
    async posted(path, text, flags = []) {
      return (await scene.data(["post", put(path, text), ...flags])) as unknown as Posted;
    },
    async refused(path, text, flags = []) {
      const file = put(path, text);
      const before = everything(scene);
      const beside = readdirSync(dirname(join(scene.root, file)));
      const error = await refusal(scene, ["post", file, ...flags]);
      expect(scene.read(file)).toBe(text);
      expect(everything(scene)).toBe(before);
      expect(readdirSync(dirname(join(scene.root, file)))).toEqual(beside);
      return { ...error, file };
    },
  };
  await posting.posted("t1.md", valid("id: T1"));
  return posting;
}

// A repository with a shell agent and flows of its own, for end-to-end tests of the compiled binary.

import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Ran } from "./bin.ts";
import { newWorld, type World, type WorldOptions } from "./repo.ts";
import { until } from "./until.ts";

export type SceneOptions = WorldOptions & {
  /** Shell text of the agent; runs in the worktree with `$COUNT` naming a folder outside it. Default: one commit. */
  agent?: string;
  /** Lines added to config.yaml. */
  config?: string;
  /** Flows by name, as YAML. */
  flows?: Record<string, string>;
};

type Json = Record<string, unknown>;

export type Scene = World & {
  /** A folder outside the repository, for what agents leave to be counted. */
  outside: string;
  stateDir(): string;
  /** Writes a ticket file, its frontmatter given as lines; returns its path. */
  ticket(stem: string, frontmatter?: string, body?: string): string;
  /** Posts a ticket made by `ticket`; returns the reply's data. */
  post(stem: string, frontmatter?: string, flags?: string[]): Promise<Json>;
  /** The reply's data of a command; throws when it failed. */
  data(args: string[], env?: Record<string, string>): Promise<Json>;
  /** `show <ref>`'s value. */
  value(ref: string): Promise<Json>;
  wait(ref: string): Promise<number>;
  daemonPid(): number;
  /** kill -9 of the daemon alone; resolves once it is gone. */
  killDaemon(): Promise<void>;
  /** How often the agent or a command appended to `outside/<name>`. */
  count(name: string): number;
  /** Every captured record of a run. */
  records(runId: string): Json[];
  /** The operational log's events. */
  events(): { event: string; fields?: Json }[];
  query<T>(sql: string): T[];
  hooks: string;
};

const commitOnce = `echo work >> "work-$SLOOP_TICKET_ID"; git add -A; git commit -qm "work on $SLOOP_TICKET_ID"`;

function setUp(world: World, outside: string, options: SceneOptions): void {
  const agent = join(outside, "agent.sh");
  writeFileSync(agent, `COUNT='${outside}'\n${options.agent ?? commitOnce}\n`);
  world.write(
    ".agents/sloop/config.yaml",
    `version: 1
agent:
  default_target: sh
  targets:
    sh:
      cmd: [sh, ${JSON.stringify(agent)}, "{prompt}"]
${options.config ?? ""}
`,
  );
  world.write(".agents/sloop/projects/default.md", "---\nid: default\ntitle: Default\n---\n");
  mkdirSync(join(world.root, ".agents/sloop/tickets"), { recursive: true });
  for (const [name, text] of Object.entries(options.flows ?? {})) {
    world.write(`.agents/sloop/flows/${name}.yaml`, text.replaceAll("OUTSIDE", outside));
  }
}

/** A world that is ready for its first ticket; nothing of it is committed but the README. */
export async function newScene(options: SceneOptions = {}): Promise<Scene> {
  const base = await newWorld(options);
  const outside = join(base.dir, "outside");
  const hooks = join(base.dir, "hooks");
  mkdirSync(outside);
  mkdirSync(hooks);
  setUp(base, outside, options);
  const stateDir = (): string => {
    const folder = join(base.dir, "state/sloop/repositories");
    return join(folder, readdirSync(folder)[0]!);
  };
  const data = async (args: string[], env: Record<string, string> = {}): Promise<Json> => {
    const ran = await base.sloop(["--json", ...args], { env });
    if (ran.code !== 0) throw new Error(`sloop ${args.join(" ")}: ${ran.code} ${ran.stderr}`);
    return (JSON.parse(ran.stdout) as { data: Json }).data;
  };
  const daemonPid = () => (JSON.parse(readFileSync(join(stateDir(), "daemon.lock"), "utf8")) as { pid: number }).pid;
  const lines = (path: string): string[] =>
    existsSync(path)
      ? readFileSync(path, "utf8")
          .split("\n")
          .filter((line) => line !== "")
      : [];
  const scene: Scene = {
    ...base,
    outside,
    hooks,
    stateDir,
    data,
    daemonPid,
    [Symbol.asyncDispose]: base[Symbol.asyncDispose],
    ticket(stem, frontmatter = "", body = "Do it.") {
      const path = `.agents/sloop/tickets/${stem}.md`;
      const blocked = frontmatter.includes("blocked_by") ? "" : "blocked_by: []\n";
      base.write(path, `---\nname: ${stem}\n${blocked}${frontmatter}${frontmatter === "" ? "" : "\n"}---\n${body}\n`);
      return path;
    },
    async post(stem, frontmatter, flags = []) {
      return await data(["post", scene.ticket(stem, frontmatter), ...flags]);
    },
    async value(ref) {
      return (await data(["show", ref]))["value"] as Json;
    },
    async wait(ref) {
      const ran: Ran = await base.sloop(["wait", ref, "--timeout", "50"]);
      if (ran.code === 2) throw new Error(`sloop wait ${ref}: ${ran.stderr}`);
      return ran.code;
    },
    async killDaemon() {
      const pid = daemonPid();
      process.kill(pid, "SIGKILL");
      await until(
        () => !existsSync(`/proc/${pid}/exe`) || readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z "),
        "the daemon to be gone",
      );
    },
    count: (name) => lines(join(outside, name)).length,
    records: (runId) => lines(join(stateDir(), "runs", runId, "output.ndjson")).map((line) => JSON.parse(line) as Json),
    events: () => lines(join(stateDir(), "logs/daemon.ndjson")).map((line) => JSON.parse(line)),
    query<T>(sql: string): T[] {
      const db = new Database(join(stateDir(), "sloop.db"), { readonly: true });
      try {
        db.run("PRAGMA busy_timeout = 10000");
        return db.query<T, []>(sql).all();
      } finally {
        db.close();
      }
    },
  };
  return scene;
}

/** Arms a pause point for daemons started with `hookEnv`. */
export function arm(scene: Scene, name: string): void {
  writeFileSync(join(scene.hooks, `${name}.armed`), "");
}

export function disarm(scene: Scene, name: string): void {
  rmSync(join(scene.hooks, `${name}.armed`), { force: true });
}

/** Lets whoever waits at the point go on. */
export function release(scene: Scene, name: string): void {
  writeFileSync(join(scene.hooks, `${name}.release`), "");
}

export async function reached(scene: Scene, name: string): Promise<void> {
  await until(() => existsSync(join(scene.hooks, `${name}.reached`)), `the pause point ${name}`);
}

/** The environment in which pause points are looked for. */
export function hookEnv(scene: Scene): Record<string, string> {
  return { SLOOP_TEST_HOOK_DIR: scene.hooks };
}

/** Writes a file next to nothing else, making its folder. */
export function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

// The repository that the conformance tests stand on: shell agents that do what each ticket's own script says.

import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newScene, type Scene, type SceneOptions } from "../../support/scene.ts";
import { until } from "../../support/until.ts";
import { type Json, type Wire, wireTo } from "./wire.ts";

/** An instant at which a steered clock begins: 2027-03-01T02:00:00Z. */
export const startMs = 1_803_866_400_000;

export type Stage = AsyncDisposable & {
  scene: Scene;
  wire: Wire;
  /** What the agent of a ticket does, as shell text; without one it commits once. */
  agent(ticket: string, script: string): void;
  /** Posts a new ticket file over the wire; resolves to its id. */
  post(stem: string, options?: PostOptions): Promise<string>;
  /** Waits until the run has settled; resolves to `wait`'s data. */
  settled(run: string): Promise<Json>;
  /** Waits until the agent of a ticket waits at `meet`; resolves to a client of its run's worker socket, token included. */
  worker(ticket: string): Promise<Worker>;
  /** Lets the agent of a ticket go on from `meet`. */
  go(ticket: string): void;
  /** Moves the steered clock; only with `clock`. */
  setNow(ms: number): void;
  /** Stops the daemon and waits until its process is gone. */
  stop(): Promise<void>;
  value(ref: string): Promise<Json>;
  row(ticket: string): Promise<Json>;
};

export type Worker = { wire: Wire; socket: string; token: string };
export type PostOptions = { front?: string; trigger?: Json; body?: string; project?: string; flow?: string };

/** Shell text of an agent that hands its credential to the test and waits for `go`. */
export const meet = `printf '%s\\n%s\\n' "$SLOOP_SOCKET" "$SLOOP_TOKEN" > "$COUNT/$SLOOP_TICKET_ID.tmp"
mv "$COUNT/$SLOOP_TICKET_ID.tmp" "$COUNT/$SLOOP_TICKET_ID.met"
while [ ! -e "$COUNT/$SLOOP_TICKET_ID.go" ]; do sleep 0.02; done; rm "$COUNT/$SLOOP_TICKET_ID.go"`;

export const commit = `echo work >> "work-$SLOOP_TICKET_ID"; git add -A; git commit -qm "work on $SLOOP_TICKET_ID"`;

const dispatcher = `if [ -e "$COUNT/$SLOOP_TICKET_ID.sh" ]; then . "$COUNT/$SLOOP_TICKET_ID.sh"; else ${commit}; fi`;

export type StageOptions = Omit<SceneOptions, "agent"> & { clock?: boolean; paused?: boolean };

/** Starts a repository and its daemon. `clock`: a steered clock that stands at `startMs`. `paused`: nothing is dispatched. */
export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const { clock = false, paused = false, ...rest } = options;
  const scene = await newScene({ ...rest, agent: dispatcher });
  const clockFile = join(scene.dir, "clock");
  const setNow = (ms: number) => {
    writeFileSync(`${clockFile}.next`, String(ms));
    renameSync(`${clockFile}.next`, clockFile);
  };
  if (clock) {
    setNow(startMs);
    scene.env["SLOOP_TEST_CLOCK_PATH"] = clockFile;
  }
  const daemon = await scene.data(["daemon"]);
  const wire = wireTo(daemon["socket"] as string);
  if (paused) await wire.ok("pause");
  const outside = (name: string) => join(scene.outside, name);
  const stage: Stage = {
    scene,
    wire,
    setNow,
    agent: (ticket, script) => writeFileSync(outside(`${ticket}.sh`), `${script}\n`),
    async post(stem, { front = "", trigger = { kind: "auto" }, body, ...more } = {}) {
      const file = scene.ticket(stem, front, body);
      const { ticket } = (await wire.ok("post", { file, trigger, ...more })) as { ticket: { id: string } };
      return ticket.id;
    },
    settled: (run) =>
      until(async () => {
        const reply = await wire.ask("wait", { run });
        return reply.ok && reply.data!["terminal"] === true ? reply.data! : null;
      }, `${run} to settle`),
    async worker(ticket) {
      const met = outside(`${ticket}.met`);
      await until(() => existsSync(met), `the agent of ${ticket}`);
      const [socket = "", token = ""] = readFileSync(met, "utf8").split("\n");
      renameSync(met, `${met}.taken`);
      return { socket, token, wire: wireTo(socket, { token }) };
    },
    go: (ticket) => writeFileSync(outside(`${ticket}.go`), ""),
    async stop() {
      const { pid } = await wire.ok("stop");
      await until(() => !existsSync(`/proc/${pid}/cwd`), "the daemon to exit");
    },
    value: async (ref) => (await wire.ok("show", { ref }))["value"] as Json,
    async row(ticket) {
      const { tickets } = (await wire.ok("list")) as { tickets: Json[] };
      return tickets.find((row) => row["id"] === ticket)!;
    },
    [Symbol.asyncDispose]: scene[Symbol.asyncDispose],
  };
  return stage;
}

// One stage process for a test: its folder, its request, its records, and an end that leaves nothing behind.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Started, type Supervised, startSupervised } from "../../src/daemon/supervise.ts";
import { type OutputRecord, parseRecord, recordContent } from "../../src/system/output.ts";
import { processStopped, signalGroup, stopDescendants } from "../../src/system/process.ts";
import {
  type ExitRecord,
  exitRecordPath,
  readExitRecord,
  readStartRecord,
  type StageProcess,
  startRecordPath,
} from "../../src/system/stage-process.ts";
import { until } from "../support/until.ts";

export const supervisorCommand: string[] = [process.execPath, join(import.meta.dir, "entry.ts")];

export type Stage = AsyncDisposable & {
  dir: string;
  /** The command's directory. */
  work: string;
  request: StageProcess;
  start(onOutput?: (sequence: number) => void): Promise<Started>;
  /** `start`, which must succeed. */
  run(onOutput?: (sequence: number) => void): Promise<Supervised>;
  /** Starts it from a process of its own, which is not waited for and may be killed. */
  runElsewhere(): Promise<{ starter: Bun.Subprocess<"pipe", "pipe", "inherit">; pid: number }>;
  records(): OutputRecord[];
  /** What one stream carried. */
  output(stream: OutputRecord["stream"]): string;
  exitRecord(): ExitRecord | null;
  awaitExitRecord(): Promise<ExitRecord>;
  supervisorPid(): number;
  /** Names left in the channel's folder. */
  sockets(): string[];
};

export type StageOptions = Partial<Pick<StageProcess, "gated" | "cwd" | "labels">> & {
  env?: Record<string, string>;
  attempt?: number;
};

/** A stage process that runs `argv`; a single string is a shell script. */
export function newStage(argv: string[] | string, options: StageOptions = {}): Stage {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "slt-sup-")));
  const work = join(dir, "wörk dir");
  mkdirSync(work);
  const runId = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
  const execution = { stageIndex: 0, attempt: options.attempt ?? 1, phase: "action" };
  const request: StageProcess = {
    runId,
    argv: typeof argv === "string" ? ["sh", "-c", argv] : argv,
    cwd: options.cwd ?? work,
    environment: { PATH: process.env["PATH"] ?? "", SLOOP_RUN_ID: runId, ...options.env },
    gated: options.gated ?? false,
    outputLog: join(dir, "output.ndjson"),
    labels: options.labels ?? { source: "stage", stage: "test", attempt: 1 },
    startRecord: startRecordPath(dir, execution),
    exitRecord: exitRecordPath(dir, execution),
    channel: join(dir, "run/x/c.sock"),
  };
  const deps = { command: supervisorCommand, environment: process.env };
  const start: Stage["start"] = (onOutput) =>
    startSupervised(request, { ...deps, ...(onOutput === undefined ? {} : { onOutput }) });
  const starters: Bun.Subprocess[] = [];
  const records = () =>
    existsSync(request.outputLog)
      ? readFileSync(request.outputLog, "utf8")
          .split("\n")
          .flatMap((line) => parseRecord(line) ?? [])
      : [];
  return {
    dir,
    work,
    request,
    start,
    async run(onOutput) {
      const started = await start(onOutput);
      if (!started.ok) throw new Error(started.problem);
      return started.process;
    },
    async runElsewhere() {
      const script = join(import.meta.dir, "starter.ts");
      const starter = Bun.spawn([process.execPath, script, JSON.stringify(request)], { stdin: "pipe", stdout: "pipe" });
      starters.push(starter);
      const { value } = await starter.stdout.getReader().read();
      const said = JSON.parse(new TextDecoder().decode(value));
      if (!said.ok) throw new Error(said.problem);
      return { starter, pid: said.pid };
    },
    records,
    output: (stream) =>
      Buffer.concat(
        records()
          .filter((record) => record.stream === stream)
          .map(recordContent),
      ).toString(),
    exitRecord: () => readExitRecord(request.exitRecord),
    awaitExitRecord: () => until(() => readExitRecord(request.exitRecord), "the exit record"),
    supervisorPid: () => {
      const pid = readStartRecord(request.startRecord)?.supervisor_pid;
      // Never 0 or -1: to those a signal means ourselves, or everybody.
      if (pid === undefined || pid <= 1) throw new Error("no start record names a supervisor");
      return pid;
    },
    sockets: () => (existsSync(join(dir, "run/x")) ? readdirSync(join(dir, "run/x")) : []),
    async [Symbol.asyncDispose]() {
      for (const starter of starters) starter.kill("SIGKILL");
      const record = readStartRecord(request.startRecord);
      if (record?.spawned !== null && record?.spawned !== undefined) signalGroup(record.spawned.pid, "SIGKILL");
      if (record !== null && processStopped(record.supervisor_pid)) process.kill(record.supervisor_pid, "SIGKILL");
      await stopDescendants(runId);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

// The daemon's end of a supervisor's channel.

import type { Socket } from "bun";
import { LineReader, LineWriter } from "../system/lines.ts";
import { processStart } from "../system/process.ts";
import { connectUnix } from "../system/socket.ts";
import {
  type ChannelCommand,
  type ChannelEvent,
  parseExitRecord,
  parseFields,
  parseSpawnFacts,
} from "../system/stage-process.ts";
import { type Spawned, spawnedFrom } from "./ending.ts";

type ChannelListener = {
  onEvent(event: ChannelEvent): void;
  /** The supervisor is gone, or another daemon took the channel. */
  onEnd(): void;
};

export type ChannelClient = { send(command: ChannelCommand): void; close(): void };

const lineLimit = 1_048_576;

function integers(value: unknown): number[] {
  return Array.isArray(value) ? value.filter((one) => Number.isSafeInteger(one)) : [];
}

function parseExited(fields: Record<string, unknown>): ChannelEvent | null {
  const inner = fields["record"];
  if (typeof inner !== "object" || inner === null) return null;
  const record = parseExitRecord(inner as Record<string, unknown>);
  return record === null ? null : { type: "exited", record, holders: integers(fields["holders"]) };
}

/** The newest record of an execution, and when it was captured (epoch ms; NaN when that is not known). */
export type OnOutput = (sequence: number, atMs: number) => void;

function parseEvent(line: string | null): ChannelEvent | null {
  const fields = line === null ? null : parseFields(line);
  if (fields === null) return null;
  const { type, sequence, problem } = fields;
  if (type === "exited") return parseExited(fields);
  if (type === "output" && typeof sequence === "number") {
    // A supervisor of an older program does not say when.
    const at = fields["at_ms"];
    return { type, sequence, at_ms: typeof at === "number" ? at : Number.NaN };
  }
  if (type === "failed" && typeof problem === "string") return { type, problem };
  const facts = type === "spawned" ? parseSpawnFacts(fields) : null;
  return facts === null ? null : { type: "spawned", ...facts };
}

/** Takes the channel at `path`. Rejects with the system's error when no supervisor serves it. */
async function connectChannel(path: string, listener: ChannelListener): Promise<ChannelClient> {
  let ended = false;
  const end = () => {
    if (!ended) listener.onEnd();
    ended = true;
  };
  const reader = new LineReader({
    limit: lineLimit,
    onLine: (line) => {
      const event = parseEvent(line);
      if (event !== null) listener.onEvent(event);
    },
    onTooLong: end,
  });
  let writer: LineWriter | null = null;
  const socket: Socket = await connectUnix(path, {
    data: (_socket, bytes) => reader.feed(bytes),
    drain: () => writer?.drain(),
    end,
    close: end,
    error: end,
  });
  writer = new LineWriter(socket);
  const live = writer;
  const identity: ChannelCommand = { type: "daemon", pid: process.pid, pid_start_time: processStart(process.pid) };
  live.send(JSON.stringify(identity));
  return {
    send: (command) => void live.send(JSON.stringify(command)),
    close: () => live.endAfterFlush(),
  };
}

export type Exited = Extract<ChannelEvent, { type: "exited" }>;

/** One channel as it turns out: who was spawned, how it ended, or that it broke off. */
export class ChannelLine {
  /** Rejects with what the supervisor said, or that it said nothing. */
  readonly spawned: Promise<Spawned>;
  /** Null when the channel ended without a word of an exit. */
  readonly exited: Promise<Exited | null>;
  /** When the supervisor closed it, or another daemon took it. */
  readonly ended: Promise<void>;
  private problem = "the supervisor ended before it started the command";
  private readonly onOutput: OnOutput | undefined;
  private readonly settleSpawned: { resolve(value: Spawned): void; reject(error: Error): void };
  private readonly settleExited: (value: Exited | null) => void;
  private readonly settleEnded: () => void;

  constructor(onOutput: OnOutput | undefined) {
    this.onOutput = onOutput;
    const spawned = Promise.withResolvers<Spawned>();
    const exited = Promise.withResolvers<Exited | null>();
    const ended = Promise.withResolvers<void>();
    this.spawned = spawned.promise;
    // Who takes up a running process waits for its end only.
    this.spawned.catch(() => undefined);
    this.exited = exited.promise;
    this.settleSpawned = spawned;
    this.settleExited = exited.resolve;
    this.ended = ended.promise;
    this.settleEnded = ended.resolve;
  }

  /** Takes the channel at `path`. Rejects with the system's error when no supervisor serves it. */
  connect(path: string): Promise<ChannelClient> {
    return connectChannel(path, { onEvent: (event) => this.take(event), onEnd: () => this.end() });
  }

  private take(event: ChannelEvent): void {
    switch (event.type) {
      case "spawned":
        this.settleSpawned.resolve(spawnedFrom(event));
        return;
      case "output":
        this.onOutput?.(event.sequence, event.at_ms);
        return;
      case "exited":
        this.settleExited(event);
        return;
      case "failed":
        this.problem = event.problem;
        return;
    }
  }

  private end(): void {
    this.settleSpawned.reject(new Error(this.problem));
    this.settleExited(null);
    this.settleEnded();
  }
}

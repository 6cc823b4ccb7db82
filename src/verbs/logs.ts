// `logs`: one page of a run's captured output (protocol.md 7.12, 9).

import { SloopError } from "../core/errors.ts";
import { primaryIndex } from "../core/flow.ts";
import { runAlias } from "../core/ids.ts";
import { parseFlowSnapshot } from "../core/snapshot.ts";
import { terminal } from "../core/ticket.ts";
import type { Daemon } from "../daemon/context.ts";
import { lineLimitBytes } from "../protocol/envelope.ts";
import type { LogEntry, LogsPage } from "../protocol/replies.ts";
import type { Params } from "../protocol/verbs.ts";
import type { RunRow } from "../store/tables.ts";
import type { OutputRecord } from "../system/output.ts";
import { type OutputFilter, readForward, readTail } from "../system/output-read.ts";
import { outputLog } from "../system/paths.ts";
import type { Handler } from "./handler.ts";
import { resolveRun } from "./reference.ts";

const pageEntries = 64;
const longestTail = 1000;
/** Room in a reply for its keys and the id of the request, unless that is longer. */
const envelopeBytes = 2048;

type Selector = { stage: string; attempt: number | null };

function parseSelector(text: string): Selector {
  const at = text.lastIndexOf("#");
  if (at < 0) return { stage: text, attempt: null };
  const digits = text.slice(at + 1);
  const attempt = /^[0-9]+$/.test(digits) ? Number(digits) : 0;
  if (at > 0 && attempt >= 1) return { stage: text.slice(0, at), attempt };
  throw new SloopError(
    "invalid_arguments",
    `stage selector \`${text}\` is malformed; write \`<stage>\` or \`<stage>#<attempt>\`, attempts count from 1`,
  );
}

/** Which records a selector keeps. Throws `invalid_arguments` for a stage that the run's flow does not have. */
function filterOf(run: RunRow, selector: Selector): OutputFilter {
  const { stage, attempt } = selector;
  const flow = parseFlowSnapshot(run.flowJson);
  if (flow !== null && !flow.stages.some((known) => known.name === stage)) {
    const names = flow.stages.map((known) => `\`${known.name}\``).join(", ");
    const alias = runAlias(run.ticketId, run.attempt);
    throw new SloopError(
      "invalid_arguments",
      `run \`${alias}\` has no stage \`${stage}\`; the stages of its flow \`${flow.name}\` are ${names}`,
    );
  }
  const first = flow?.stages[primaryIndex(flow)]?.name;
  return (labels) => {
    const own = labels.stage ?? (labels.source === "agent" ? first : undefined);
    return own === stage && (attempt === null || (labels.attempt ?? 1) === attempt);
  };
}

type Page = Pick<LogsPage, "entries" | "next_cursor" | "complete" | "elided">;
type Request = { after: number; tail: number | null; maxBytes: number; filter?: OutputFilter };

function entriesOf(records: readonly OutputRecord[]): LogEntry[] {
  return records as LogEntry[];
}

async function readPage(path: string, { tail, ...request }: Request): Promise<Page> {
  if (tail === null) {
    const { records, nextCursor, complete } = await readForward(path, { ...request, limit: pageEntries });
    return { entries: entriesOf(records), next_cursor: nextCursor, complete, elided: 0 };
  }
  const { records, nextCursor, elided } = await readTail(path, { ...request, count: Math.min(tail, longestTail) });
  return { entries: entriesOf(records), next_cursor: nextCursor, complete: true, elided };
}

function requestOf(args: Params<"logs">, run: RunRow): { request: Omit<Request, "maxBytes">; stage: string | null } {
  const stage = args.stage ?? null;
  const filter = stage === null ? {} : { filter: filterOf(run, parseSelector(stage)) };
  const tail = args.tail ?? null;
  if (tail === 0) throw new SloopError("invalid_arguments", "`tail` must be at least 1");
  return { request: { after: Number(args.after ?? 0), tail, ...filter }, stage };
}

async function logsPage(daemon: Daemon, args: Params<"logs">, idBytes: number): Promise<LogsPage> {
  const { run, note } = resolveRun(daemon.store.db, args.run);
  const { request, stage } = requestOf(args, run);
  // The state was read before the file: `complete` and `terminal` together mean that nothing more will come.
  const head = { id: run.id, alias: runAlias(run.ticketId, run.attempt), note, stage };
  const headBytes = Buffer.byteLength(JSON.stringify(head)) + envelopeBytes + idBytes;
  const page = await readPage(outputLog(daemon.paths, run.id), { ...request, maxBytes: lineLimitBytes - headBytes });
  const unmoved = page.next_cursor === request.after;
  return {
    ...head,
    ...page,
    next_cursor: unmoved ? (args.after ?? 0) : page.next_cursor,
    terminal: terminal(run.state),
  };
}

export const logs: Handler<"logs"> = (daemon, args, caller) => logsPage(daemon, args, caller.idBytes ?? 0);

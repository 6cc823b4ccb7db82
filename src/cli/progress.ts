// The one line on a terminal's standard error that says how a silent wait is going (cli.md 17.5).

import { writeSync } from "node:fs";
import { formatSpan } from "../core/duration.ts";
import type { ShowReply } from "../protocol/replies.ts";
import { writeError } from "./output.ts";
import { renderStrip } from "./strip.ts";
import { type Style, visible, visibleDeep } from "./style.ts";
import { errorIsTerminal, terminalColumns } from "./terminal.ts";

export type Progress = {
  update(shown: ShowReply): Promise<void>;
  erase(): Promise<void>;
  /** For a signal handler, which cannot wait. */
  eraseNow(): void;
  finish(shown: ShowReply): Promise<void>;
};

const eraseLine = "\r\x1b[2K";
const silent: Progress = { async update() {}, async erase() {}, eraseNow() {}, async finish() {} };

type Subject = { name: string; state: string; strip: string; startedMs: number | null; endedMs: number | null };

function subjectOf(shown: ShowReply, style: Style): Subject | null {
  if (shown.kind === "run") {
    const { alias, state, stages, claimed_at_ms: claimed, finished_at_ms: endedMs } = shown.value;
    return { name: alias, state, strip: renderStrip(stages, style), startedMs: claimed, endedMs };
  }
  if (shown.kind !== "ticket") return null;
  const { id, state, runs } = shown.value;
  const newest = runs[0];
  return {
    name: id,
    state,
    strip: newest === undefined ? "" : renderStrip(newest.stages, style),
    startedMs: newest?.started_at_ms ?? null,
    endedMs: newest?.finished_at_ms ?? null,
  };
}

function elapsed(subject: Subject, sinceMs: number, now: number): string {
  return formatSpan((subject.endedMs ?? now) - (subject.startedMs ?? sinceMs));
}

/** One line, cut to the terminal's width: a longer one would be drawn over two and erased from one. The strip gives way first. */
function oneLine(subject: Subject, time: string): string {
  const columns = terminalColumns(2) - 1;
  const room = columns - Bun.stringWidth([subject.name, subject.state, "", time].join("  "));
  const strip = room > 1 ? Bun.sliceAnsi(subject.strip, 0, room, "…") : "";
  const parts = [subject.name, subject.state, strip, time].filter((part) => part !== "");
  return Bun.sliceAnsi(parts.join("  "), 0, columns, "…");
}

/** A progress line, or nothing at all where standard error is no terminal. `now` gives epoch ms. */
export function openProgress(style: Style, now: () => number): Progress {
  if (!errorIsTerminal()) return silent;
  const sinceMs = now();
  const erase = () => writeError(eraseLine);
  return {
    async update(shown) {
      const subject = subjectOf(visibleDeep(shown), style);
      if (subject === null) return;
      await writeError(`${eraseLine}${oneLine(subject, elapsed(subject, sinceMs, now()))}`);
    },
    erase,
    eraseNow: () => void writeSync(2, eraseLine),
    async finish(shown) {
      await erase();
      const subject = subjectOf(shown, style);
      if (subject === null) return;
      await writeError(`${visible(`${subject.name} ${subject.state} after ${elapsed(subject, sinceMs, now())}`)}\n`);
    },
  };
}

// The one line on a terminal's standard error that says how a silent wait is going (cli.md 17.5).

import { writeSync } from "node:fs";
import { formatSpan } from "../core/duration.ts";
import type { ShowReply } from "../protocol/replies.ts";
import { writeError } from "./output.ts";
import { renderStrip } from "./strip.ts";
import { type Style, visible } from "./style.ts";
import { errorIsTerminal } from "./terminal.ts";

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

/** A progress line, or nothing at all where standard error is no terminal. `now` gives epoch ms. */
export function openProgress(style: Style, now: () => number): Progress {
  if (!errorIsTerminal()) return silent;
  const sinceMs = now();
  const erase = () => writeError(eraseLine);
  return {
    async update(shown) {
      const subject = subjectOf(shown, style);
      if (subject === null) return;
      const parts = [subject.name, subject.state, subject.strip, elapsed(subject, sinceMs, now())];
      await writeError(`${eraseLine}${visible(parts.filter((part) => part !== "").join("  "))}`);
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

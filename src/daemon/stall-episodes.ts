// Silences that an earlier daemon has warned about: read back from its log, so that nobody is warned twice (engine.md 14.2).

import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** More than any daemon writes while a run is going; what is older concerns runs that are settled. */
const readBytes = 32 * 1024 * 1024;

function readEnd(path: string): string {
  const descriptor = openSync(path, "r");
  try {
    const { size } = fstatSync(descriptor);
    const bytes = Buffer.alloc(Math.min(size, readBytes));
    readSync(descriptor, bytes, 0, bytes.length, size - bytes.length);
    return bytes.toString();
  } finally {
    closeSync(descriptor);
  }
}

type Episode = { runId: string; sequence: number | null };

function parseEpisode(line: string): Episode | null {
  try {
    const { event, fields } = JSON.parse(line) as { event?: unknown; fields?: Record<string, unknown> };
    const runId = fields?.["run_id"];
    const sequence = fields?.["last_output_sequence"];
    if (event !== "run_output_stalled" || typeof runId !== "string") return null;
    return { runId, sequence: typeof sequence === "number" ? sequence : null };
  } catch {
    return null;
  }
}

/** By run, the last output sequence that was warned about (null: before any output). Empty when there is no log to read. */
export function readStallEpisodes(logFile: string): Map<string, number | null> {
  const episodes = new Map<string, number | null>();
  let text = "";
  try {
    text = readEnd(logFile);
  } catch {
    return episodes;
  }
  for (const line of text.split("\n")) {
    const episode = line.includes("run_output_stalled") ? parseEpisode(line) : null;
    if (episode !== null) episodes.set(episode.runId, episode.sequence);
  }
  return episodes;
}

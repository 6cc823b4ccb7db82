// The one line a supervisor is told what to do with.

import { readSync } from "node:fs";
import { systemCode } from "../system/files.ts";
import { parseFields, type SupervisorRequest } from "../system/stage-process.ts";

function isTextMap(value: unknown): value is Record<string, string> {
  return typeof value === "object" && value !== null && Object.values(value).every((one) => typeof one === "string");
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

const textKeys = ["runId", "cwd", "outputLog", "startRecord", "exitRecord", "channel"] as const;

/** The request in a line, null when it is none. Our own daemon wrote it, so its labels are taken as they are. */
function parseRequest(line: string): SupervisorRequest | null {
  const fields = parseFields(line);
  if (fields === null || !textKeys.every((key) => typeof fields[key] === "string")) return null;
  if (!isTextList(fields["argv"]) || fields["argv"].length === 0) return null;
  if (!isTextMap(fields["environment"]) || typeof fields["gated"] !== "boolean") return null;
  if (typeof fields["labels"] !== "object" || fields["labels"] === null) return null;
  return Number.isSafeInteger(fields["starter"]) ? (fields as SupervisorRequest) : null;
}

const standardInput = 0;
const blockBytes = 65_536;
const againMs = 1;

/** The next bytes of standard input, null when there are none yet, empty at its end. */
function readSome(): Uint8Array | null {
  const block = Buffer.alloc(blockBytes);
  try {
    return block.subarray(0, readSync(standardInput, block, 0, blockBytes, null));
  } catch (error) {
    if (systemCode(error) === "EAGAIN") return null;
    throw error;
  }
}

/** Reads the request from standard input; null when there is none. A stream would cost memory that is never used again. */
export async function readRequest(): Promise<SupervisorRequest | null> {
  const parts: Uint8Array[] = [];
  for (;;) {
    const some = readSome();
    if (some === null) await Bun.sleep(againMs);
    else if (some.length > 0) parts.push(some);
    if (some?.length === 0 || some?.includes(0x0a)) break;
  }
  return parseRequest(Buffer.concat(parts).toString("utf8"));
}
